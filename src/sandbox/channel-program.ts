/*
 * The programs that stay inside a sandbox as long as somebody is connected to it. They need `sh` and coreutils (or
 * busybox), nothing else; where there is bash they are run by it, because it can start a process group without help.
 *
 * Two shells share the work. The server reads requests from standard input and starts what they ask for; the writer
 * writes to standard output, so that answers never mix. Everybody tells the writer what happened in lines through a
 * named pipe: such a line is written whole or not at all. So is the one line that others write to standard output: the
 * end of a command without output. It begins with a random word that the host has chosen and finds also between bytes.
 *
 * Of every command files stay, which is how one who was not there finds out what became of it. <live>/<id> is made by
 * whoever comes first: the one who runs it, or one who asks or ends it before, and then it never will run. It only
 * grows, by whole lines:
 *   begun <pid> <birth> <slot> <seconds> <from>   the shell that waits for the command, and where its output is
 *   pid <pid> <birth>                             the command's process group
 *   ended cancelled|timed_out                     who asked for its end
 *   rc <ended> <code> <from> <to>                 its end
 * <live> is <base>/exec, or where there is bash a folder of /dev/shm. That is empty after a restart of the container;
 * what begun and rc said is then in <base>/exec/<slot>.id.
 * <slot>.out and <slot>.err are plain files, so that a server it leaves in the background holds nothing up.
 *
 * A fork costs half a millisecond, with another program 1.2, a new file 0.3, one in memory 0.03: the way of a call is
 * made of what a shell does by itself, and the files for the next call's output are made before it comes.
 * A bash that can't fork, because there may be no more processes, sleeps for up to 15 s in all and tries again; SIGCHLD
 * ends such a sleep and the attempt with it. A third shell, that never forks, sends it to the two when nothing was heard
 * for a second: else the order to end the command that took all the processes would wait for its end.
 * No traps: one that bash 5.2 runs while it parses a substitution spoils that substitution.
 */

/**
 * Known to all of the shells; their errors go nowhere. Sets `_up`, 1/100 s since the system's start; `_pid` and `_born`,
 * in the same measure, of a living process.
 */
const COMMON = `
now() { read -r _up _rest </proc/uptime; _up=\${_up%.*}\${_up#*.}; }
born() {
  read -r _stat <"/proc/$1/stat" || return 1
  _pid=\${_stat%% *}
  set -- \${_stat##*) }
  case $1 in Z | X) return 1 ;; esac
  shift 19; _born=$1
}
alive() { [ -n "$2" ] && born "$1" && [ "$_born" = "$2" ]; }
facts() {
  _by= _at= _stop= _end=
  while read -r _key _value; do
    case $_key in begun) _by=$_value ;; pid) _at=$_value ;; ended) _stop=$_value ;; rc) _end=$_value ;; esac
  done <"$1"
}
watched() { alive \${_by% * * *} || alive $_at; }
slot() { _file=\${_by#* }; _file=\${_file#* }; _file=$_base/exec/\${_file%% *}; }
`;

/*
 * Runs one command and writes down its end. In bash this is a subshell of the server, else a shell of its own that was
 * started in the foreground: what a shell starts in the background would ignore SIGINT.
 */
const ONE = `
try() { _got=; { _got=yes; echo "$1" >&4; } 4>"$_e"; }
# Begins it by writing $1 down, or says that it does not begin.
claim() {
  set -C
  try "$1"
  if [ -z "$_got" ] && [ ! -d "$_live" ]; then mkdir -p "$_live"; try "$1"; fi
  if [ -z "$_got" ]; then if [ -s "$_e" ]; then echo "N $_id decided"; else echo "N $_id full"; fi >&$_say; return 1; fi
  set +C
}
over() {
  now; facts "$_e"
  _end="\${_stop:-exited} $_code $_from $_up"
  echo "rc $_end" >>"$_e"
  [ -z "$_trace" ] || echo "rc $_end" >&9
  # Where there is no output, nothing has to be sent before.
  if [ -n "$_mark" ] && [ ! -s "$_o.out" ] && [ ! -s "$_o.err" ]; then echo "$_mark$_id $_end" >&4; echo "d $_id"
  else echo "e $_id $_end $_slot $_nonce $_head"; fi
}
_say=1 _mark= _trace=
one() {
  _e=$_live/$_id _o=$_base/exec/$_slot
  born self; _from=$_born
  claim "begun $_pid $_born $_slot $_seconds $_from" || exit 125
  if [ "$_live" != "$_base/exec" ]; then
    exec 9>"$_o.id"; _trace=yes
    echo "begun $_pid $_born $_slot $_seconds $_from $_id" >&9
  fi
  if [ -n "$BASH_VERSION" ]; then
    set -m
    (
      exec 2>>"$_o.err"
      cd "$_cwd" || exit 126
      [ -z "$_env" ] || eval "$_env"
      [ -n "$_ours" ] || exec "$@"
      _script=$3; shift 4; eval "$_script"
    ) <"$_in" >>"$_o.out" 4>&- 7>&- 9>&- &
    _c=$!; set +m
    # Whoever ends it now finds it here, or has said so before we look.
    ! born $_c || echo "pid $_c $_born" >>"$_e"
    facts "$_e"; [ -z "$_stop" ] || kill -TERM "-$_c"
    wait $_c; _code=$?
  else
    _group=; if command -v setsid >/dev/null; then _group=setsid; elif command -v timeout >/dev/null; then _group='timeout 0'; fi
    $_group sh -c "$_common$_inner" "$_e" "$_cwd" "$_env" "$@" <"$_in" >>"$_o.out" 2>>"$_o.err"
    _code=$?
  fi
  over
}
`;

/*
 * The same, by two shells that are there before the command is known, and one of them in the process group that it will
 * have: nothing is left to be forked then. Bash only. Until the command comes that one reads the requests in the
 * server's place: no shell has to pass it on. To the server it speaks through a pipe, 7:
 *   h           it is ready, and reads from now on
 *   b …         it begins a command; the server reads again
 *   q           nobody is connected any more
 * or a request that is not for it, which is the last it has read. When the pipe ends without a word it was killed.
 */
const SPARE = `
# After a restart of the container, what is on the disk says which commands had begun.
quickly() {
  _there=/dev/shm/drover\${_base//\\//-}
  if [ ! -e "$_there" ]; then
    [ -w /dev/shm ] && mkdir -m 700 "$_there.$$" || return
    for _i in "$_base"/exec/*; do
      [ -e "$_i" ] || continue
      case \${_i##*/} in
      *.id) facts "$_i"; set -- $_by; [ -z "$6" ] || echo "begun $_by$_nl\${_end:+rc $_end}" >"$_there.$$/$6" ;;
      *.*) ;;
      *) ln -s "$_i" "$_there.$$" ;;
      esac
    done
    mv -T "$_there.$$" "$_there" || rm -rf "$_there.$$"
  fi
  [ ! -d "$_there" ] || [ ! -w "$_there" ] || _live=$_there
}
spare() {
  _o=$_base/exec/$_slot
  # Written over later: on a full disk nothing could be added.
  printf '%200s\\n' '' >"$_o.id" && exec 9<>"$_o.id" || exit
  born self; _waiter="$_pid $_born"
  set -m
  (
    exec 9<>"$_o.id"
    born self
    _say=5
    # What a shell does for the first time since its fork is slow.
    _e=/dev/null; claim -; now; eval 'set -- true'
    echo h >&7
    _begins=
    while read -r _op _id _n _more; do
      case $_op in
      r) if [ "$_n" -gt 0 ]; then _begins=yes; break; else other; fi ;;
      n) ;;
      t) wake; echo t >&5 ;;
      p | m | w) printf '%s\\n' "$_op $_id $_n $_more" >&5 ;;
      *) other ;;
      esac
    done
    _ours= _env= _given= _in=/dev/null
    [ -n "$_begins" ] && IFS= read -r -N "$_more" _text || { echo q >&7; exit; }
    eval "$_text"
    if [ -n "$_given" ]; then _in=$_o.in; printf %s "$_given" >"$_in" || { echo "N $_id full" >&5; refused; }; fi
    now; _from=$_up _e=$_live/$_id
    claim "begun $_waiter $_slot $_seconds $_from\${_nl}pid $_pid $_born" || refused
    echo "begun $_waiter $_slot $_seconds $_from $_id $_nonce $_head" >&9
    echo "b $_id $_nonce $_head" >&7
    exec <"$_in" 4>&- 5>&- 7>&- 8>&- 9>&-
    cd "$_cwd" || exit 126
    [ -z "$_env" ] || eval "$_env"
    [ -n "$_ours" ] || exec "$@"
    _script=$3; shift 4; eval "$_script"
  ) <&0 5>&1 >>"$_o.out" 2>>"$_o.err" &
  _c=$!; set +m
  exec </dev/null 7>&- 8>&-
  _e=/dev/null _trace=yes; over >/dev/null 4>/dev/null 9>/dev/null
  wait $_c; _code=$?
  # Where it did not begin one, the next shell that does may have written there by now.
  read -r _rest _pid _born _rest _rest _from _id _nonce _head <&9 && [ "$_pid $_born" = "$_waiter" ] || exit
  _e=$_live/$_id
  over
}
refused() { echo "b $_id" >&7; exit 125; }
other() { printf '%s\\n' "$_op $_id $_n $_more" >&7; exit; }
`;

/** Becomes the command, where the shell can't make a process group by itself. */
const INNER = `
{ born self; echo "pid $_pid $_born" >>"$0"; facts "$0"; } 2>/dev/null
[ -z "$_stop" ] || exit 143
cd "$1" || exit 126
[ -z "$2" ] || eval "$2"
shift 2; exec "$@"
`;

/*
 * The server. Requests, a line each:
 *   r <id> <lines> <bytes>    run what the next so many lines say; -1: what was sent as the file \`call\`
 *   f <id> <name> <bytes>     so many bytes follow, for the next command's file of that name
 *   s <variable> <bytes>      so many bytes follow, a text to keep for later requests
 *   x <id> <ended> <signal>   end it
 *   l <id>                    what became of it?
 *   n                         nothing is to be done: get ready for the next command
 *   k <mark>                  what begins the lines of others than the writer
 *   t, w, m, p                for the writer
 * When nobody is connected any more it stays until the commands it started have ended, for their time limits.
 */
const SERVER = `
exec 2>/dev/null
cd /
[ -z "$BASH_VERSION" ] || { set +o posix; set -m; }
_nl='
'
_pipe=$_base/pipe.$$
mkdir -p "$_base/exec" && mkfifo "$_pipe" || { echo "X $_base can't be written"; exit 1; }
_live=$_base/exec
[ -z "$BASH_VERSION" ] || quickly
$_shell "$_common$_writer" drover "$_base" "$_root" $$ "$_live" <"$_pipe" &
[ -z "$BASH_VERSION" ] || exec 4>&1
exec >"$_pipe"
rm -f "$_pipe"
born self; _series=\${_pid}_$_born
# Before what may hold this shell up: when it is not heard again, it needs a kick.
wake() { [ -z "$_kicker" ] || ! kill -0 $_kicker || echo >&8; }
kick() {
  while read -r _rest; do
    _n=0
    while [ $_n -lt 20 ]; do
      if read -r -t 1 _rest; then _n=0
      elif [ $? -gt 128 ]; then _n=$((_n + 1)); kill -CHLD $$; kill -CHLD $_writing
      else exit; fi
    done
  done
}
_mine= _bad= _dd= _count=0 _pending= _over= _slots=0 _spare= _held= _begun= _jobs= _raw= _kicker=
if [ -n "$BASH_VERSION" ]; then
  _jobs=$_base/jobs.$$ _pipe=$_base/kick.$$ _writing=$!
  if mkfifo "$_jobs" "$_pipe" && exec 7<>"$_jobs" 6<"$_jobs" 8<>"$_pipe" 9<"$_pipe"; then
    # It ends with this shell and the one that reads in its place, the only ones that keep the other end.
    ( kick ) <&9 >/dev/null 4>&- 6<&- 7>&- 8>&- 9<&- &
    _kicker=$!
    exec 7>&- 9<&-
  else _kicker=none; fi
  rm -f "$_jobs" "$_pipe"
  [ "$_kicker" != none ] || _jobs= _kicker=
fi

prepare() {
  [ -n "$_slot" ] || next
  [ $_count -lt 50 ] || tidy
  [ -n "$_jobs" ] && exec 7>/proc/self/fd/6 || return
  _last=$!
  ( spare ) 6<&- &
  exec 7>&-
  [ "$_last" != "$!" ] || return
  _spare=$!
  # It may be without the processes it needs.
  until read -r -t 1 _op <&6; do
    [ $? -gt 128 ] || return
    kill -CHLD $_spare
  done
  _held=yes
}
# The next request, or what the shell says that reads them in this one's place.
ask() {
  [ -n "$_held" ] || { read -r _op _id _n _more; return; }
  # Killed: it may have been in the middle of a request.
  read -r _op _id _n _more <&6 || exit
  _held=
  [ "$_op" != q ]
}
begins() {
  eval "_shell_$_id=$_spare"
  _begun="$_begun\${_begun:+$_nl}b $_id $_n $_more $_slot"
  _mine="$_mine $_id" _slot= _count=$((_count + 1))
  [ $((_count % 20)) -gt 0 ] || tell
}
tell() { [ -z "$_begun" ] || printf '%s\\n' "$_begun"; _begun=; }
next() {
  # Not while a command begins: both would make files in the same folder, one after the other.
  _slots=$((_slots + 1)) _slot=$_series.$_slots _in=/dev/null
  _o=$_base/exec/$_slot
  { true >"$_o.out" && true >"$_o.err"; } || mkdir -p "$_base/exec"
}
take() {
  _text=
  if [ -n "$BASH_VERSION" ]; then IFS= read -r -N "$_more" _text; return; fi
  while [ $_n -gt 0 ]; do IFS= read -r _line || return; _text=$_text$_line$_nl; _n=$((_n - 1)); done
}
bulk() {
  _raw=yes
  true >>"$1" || { _bad=$_id; set -- /dev/null "$2"; }
  if [ -z "$_dd" ]; then
    if dd if=/dev/null of=/dev/null bs=1 count=1 iflag=fullblock; then _dd=yes; else _dd=no; fi
  fi
  if [ $_dd = yes ]; then dd bs="$2" count=1 iflag=fullblock >>"$1"; else head -c "$2" >>"$1"; fi || _bad=$_id
  _raw=
}
start() {
  [ -n "$_slot" ] || next
  _o=$_base/exec/$_slot _ours= _given= _env=
  if [ $_n -ge 0 ]; then take || return; else _text=$(cat "$_o.call"; echo .); _text=\${_text%.}; fi
  [ "$_bad" != "$_id" ] || { echo "N $_id full"; return; }
  eval "$_text"
  if [ -n "$_given" ]; then _in=$_o.in; printf %s "$_given" >"$_in" || { echo "N $_id full"; return; }; fi
  echo "b $_id $_nonce $_head $_slot"
  _pending=$_id
  if [ -n "$BASH_VERSION" ]; then
    wake; _last=$!
    ( one "$@" ) 6<&- 8>&- &
    [ "$_last" != "$!" ] || return
    eval "_shell_$_id=$!"
  elif command -v setsid >/dev/null; then
    # The first makes a session of itself, so the second leaves a child in one of its own and is done.
    setsid setsid sh -c "$_common$_one$_args" drover "$_base" "$_id" "$_slot" "$_in" "$_seconds" "$_cwd" "$_env" "$_common" "$_inner" "$@" </dev/null
  else
    ( one "$@" ) </dev/null &
  fi
  _pending= _mine="$_mine $_id" _slot=
  _count=$((_count + 1))
}
tidy() {
  _count=0 _kept=
  for _i in $_mine; do
    facts "$_live/$_i"
    if [ -n "$_end" ]; then unset "_shell_$_i"; else _kept="$_kept $_i"; fi
  done
  _mine=$_kept
  ( cd "$_live" && ls -1t | grep -v '[.]' | tail -n +101 | {
    set --
    while read -r _old; do facts "./$_old"; if [ -n "$_end" ]; then slot; set -- "$@" "./$_old" "$_file".*; fi; done
    [ $# -eq 0 ] || rm -f "$@"
  } ) </dev/null >/dev/null 4>&- &
}
stop() {
  _e=$_live/$1
  facts "$_e"
  [ -n "$_end$_stop" ] || echo "ended $2" >>"$_e"
  _p=\${_at% *}
  [ -n "$_p" ] || child "$1" || { kill -CHLD "\${_by%% *}"; return; }
  kill "-$3" "-$_p" || kill "-$3" "$_p"
}
child() {
  eval "_parent=\\$_shell_$1"
  [ -n "$_parent" ] || return 1
  for _i in /proc/[0-9]*; do
    read -r _stat <"$_i/stat" || continue
    _p=\${_stat%% *}; _stat=\${_stat##*) }; _stat=\${_stat#* }
    [ "\${_stat%% *}" != "$_parent" ] || return 0
  done
  _p=; return 1
}
never() { echo never >>"$_e"; [ "$_live" = "$_base/exec" ] || echo never >>"$_base/exec/$_id"; }
look() {
  _e=$_live/$_id _i=0
  if [ ! -e "$_e" ]; then
    set -C; true >"$_e" && _i=never; set +C
    if [ $_i = never ] || [ ! -e "$_e" ]; then never; echo "L $_id absent"; return; fi
  fi
  while [ ! -s "$_e" ] && [ $_i -lt 20 ]; do sleep 0.05; _i=$((_i + 1)); done
  facts "$_e"
  if [ -z "$_end" ] && watched; then echo "L $_id running"; return; fi
  # It may have ended between the two questions.
  facts "$_e"
  if [ -n "$_end" ]; then echo "L $_id finished"; else echo "L $_id absent"; fi
}
serve() {
  while ask; do
    case $_op in
    t) wake; tell; echo t || exit ;;
    b) if [ -n "$_n" ]; then begins; else _slot=; fi ;;
    r) start ;;
    x) stop "$_id" "$_n" "$_more" ;;
    f)
      wake
      [ -n "$_slot" ] || next
      [ $_n != in ] || _in=$_base/exec/$_slot.in; bulk "$_base/exec/$_slot.$_n" "$_more" ;;
    n) wake; prepare ;;
    s)
      wake
      _f=$_base/text.$$; bulk "$_f" "$_n"
      eval "$_id=\\$(cat "$_f"; echo .); $_id=\\\${$_id%.}"; rm -f "$_f" ;;
    l) wake; look ;;
    k) [ -z "$_jobs" ] || _mark=$_id ;;
    *) printf '%s\\n' "$_op $_id $_n $_more" ;;
    esac
  done
  _over=yes
}
guard() {
  echo q
  exec >/dev/null 4>&1
  while :; do
    _kept=
    for _id in $_mine; do
      facts "$_live/$_id"
      [ -z "$_end" ] && watched || continue
      _kept="$_kept $_id"
      now; set -- $_by
      [ $(((_up - $5) / 100)) -gt "$4" ] || continue
      if [ -n "$_stop" ]; then stop "$_id" timed_out KILL; else stop "$_id" timed_out TERM; fi
    done
    _mine=$_kept
    [ -n "$_mine" ] || exit 0
    wake; sleep 1
  done
}
next
# A shell that can't fork gives up what it is doing, and must not give up itself.
while [ -z "$_over" ]; do
  command eval serve
  # Bytes that were not taken would be read as requests.
  [ -z "$_raw" ] || exit
  [ -z "$_pending" ] || { echo "N $_pending fork"; _pending= _slot=; }
done
while :; do command eval guard; done
`;

/*
 * The writer. What it says, a line each; after O, E and P come bytes and then the nonce, on no line of its own:
 *   H                              it is there
 *   T                              all that was asked before this is on its way
 *   O <key> <nonce>, E <key> <nonce>     output
 *   D <key> <ended> <code> <from> <to>   it has ended, and all of its beginning was sent
 *   M <key> <bytes> <bytes>        how much there is of both; the ends follow in O and E; then Z <key>
 *   G <key> begun|never            whoever waited for it was killed, and the command has ended too or never began
 *   N <id> fork|full|decided       it was not begun
 *   L <id> absent|running|finished
 *   P <key> <nonce> <path>         the beginning of a file; Q <key>: it is not that simple
 * A key is an execution's id, or where somebody else began it a name made from it.
 */
const WRITER = `
exec 2>/dev/null
[ -z "$BASH_VERSION" ] || set +o posix
_base=$1 _run=' ' _root= _server=$3 _live=$4 _exact= _bytes= _open= _whole= _told= _early=' ' _late=' '
_nl='
'
# Whether this bash takes every byte as it is; other shells must not even read the question.
if [ -n "$BASH_VERSION" ]; then
  LC_ALL=C
  eval '_odd=$'"'\\001\\177\\200\\303\\377\\\\x '"'; IFS= read -r -d "" _bytes <<<"$_odd"; [ "$_bytes" != "$_odd$_nl" ] || _exact=yes'
fi
cd -P "$2" && _root=$PWD
cd /
add() { eval "_x_$1=$2 _n_$1=$3 _h_$1=$4 _f_$1=$5 _o_$1=0 _e_$1=0"; _run="$_run$1 "; }
drop() {
  case $_run in *" $1 "*) ;; *) return ;; esac
  _run="\${_run%% $1 *} \${_run#* $1 }"; unset "_x_$1" "_n_$1" "_h_$1" "_f_$1" "_o_$1" "_e_$1"
}
load() { eval "_id=\\$_x_$1 _nonce=\\$_n_$1 _head=\\$_h_$1 _file=\\$_base/exec/\\$_f_$1 _so=\\$_o_$1 _se=\\$_e_$1"; }
open() { _open=$3; echo "$1 $2 $3"; }
shut() { echo $_open; _open=; }
part() { if [ $2 -eq 0 ]; then head -c $3 "$1"; else tail -c "+$(($2 + 1))" "$1" | head -c $(($3 - $2)); fi; }
grown() {
  _all=$(wc -c <"$1"); _all=$((_all))
  if [ $_all -gt 1073741824 ]; then facts "$_live/$_id"; kill -KILL "-\${_at% *}"; fi
  _to=$_all; [ $_to -le $_head ] || _to=$_head
  [ $_to -gt $2 ]
}
send() {
  if [ -s "$_file.out" ] && grown "$_file.out" $_so; then
    open O $1 $_nonce; part "$_file.out" $_so $_to; shut; eval "_o_$1=$_to"
  fi
  if [ -s "$_file.err" ] && grown "$_file.err" $_se; then
    open E $1 $_nonce; part "$_file.err" $_se $_to; shut; eval "_e_$1=$_to"
  fi
}
# Text that is not long a bash reads by itself, to its end, unless there is a NUL in it.
copy() {
  if [ -n "$_exact" ] && [ $1 -gt 32768 ] && ! IFS= read -r -d '' -n 32768 _bytes <"$2"; then printf %s "$_bytes"
  else head -c $1 "$2"; fi
}
finish() {
  load "$1"; [ -n "$_nonce" ] || return
  if [ $_so -gt 0 ] || [ $_se -gt 0 ]; then send "$1"
  else
    if [ "$_told" != "$1" ] && [ -s "$_file.out" ]; then open O $1 $_nonce; copy $_head "$_file.out"; shut; fi
    _told=$1
    if [ -s "$_file.err" ]; then open E $1 $_nonce; copy $_head "$_file.err"; shut; fi
  fi
  drop "$1"
  echo "D $1 $2"
}
watch() {
  facts "$_live/$2"; slot
  add "$1" "$2" "$3" "$4" "\${_file##*/}"
  [ -z "$_end" ] || finish "$1" "$_end"
}
# Its own shell is about to say the same.
late() { [ "$_i" != "$_id" ] || _late="$_late$_i "; finish "$_i" "$_end"; }
# The end of a command of which most often nothing was said before.
ended() {
  case $_late in *" $_id "*) _late="\${_late%% $_id *} \${_late#* $_id }"; return ;; esac
  case $_run in
  *" $_id "*) ;;
  *)
    _early="$_early$_id " _file=$_base/exec/$2
    if [ -s "$_file.out" ] || [ -s "$_file.err" ]; then add "$_id" "$_id" "$3" "$4" "$2"
    else echo "D $_id $_a $_b $_c $1"; return; fi ;;
  esac
  finish "$_id" "$_a $_b $_c $1"
}
told() {
  case $_late in *" $_id "*) _late="\${_late%% $_id *} \${_late#* $_id }"; return ;; esac
  case $_run in
  *" $_id "*) drop "$_id" ;;
  *) _early="$_early$_id " ;;
  esac
}
begun() {
  case $_early in
  *" $_id "*) _early="\${_early%% $_id *} \${_early#* $_id }" ;;
  *) add "$_id" "$_id" "$_a" "$_b" "$_c" ;;
  esac
}
tick() {
  for _i in $_run; do
    load "$_i"; facts "$_live/$_id"; _own=$_file; slot
    # Begun before by another, and asked for again: the refusal is on its way.
    [ -z "$_by" ] || [ "$_file" = "$_own" ] || continue
    _file=$_own
    if [ -n "$_end" ]; then late; continue; fi
    send "$_i"
    if watched || [ -z "$_by$_stop" ]; then continue; fi
    facts "$_live/$_id"
    if [ -n "$_end" ]; then late; continue; fi
    load "$_i"; send "$_i"; drop "$_i"
    if [ -n "$_at" ]; then echo "G $_i begun"; else echo "G $_i never"; fi
  done
}
more() {
  facts "$_live/$2"; slot
  _no=0 _ne=0
  [ ! -s "$_file.out" ] || _no=$(($(wc -c <"$_file.out")))
  [ ! -s "$_file.err" ] || _ne=$(($(wc -c <"$_file.err")))
  echo "M $1 $_no $_ne"
  _to=$((_no - $4)); [ $_to -le $6 ] || _to=$6
  if [ $_to -gt 0 ]; then echo "O $1 $3"; tail -c $_to "$_file.out" | head -c $_to; echo $3; fi
  _to=$((_ne - $5)); [ $_to -le $6 ] || _to=$6
  if [ $_to -gt 0 ]; then echo "E $1 $3"; tail -c $_to "$_file.err" | head -c $_to; echo $3; fi
  echo "Z $1"
}
peek() {
  _name=\${4##*/}
  if [ -n "$_root" ] && cd -P "\${4%/*}/" && [ -f "./$_name" ] && [ ! -L "./$_name" ] && [ -r "./$_name" ]; then
    case $PWD/ in
    "$_root"/*) { opened "$@"; } 3<"./$_name" || echo "Q $1" ;;
    *) echo "Q $1" ;;
    esac
  else echo "Q $1"; fi
  cd /
}
# What was opened must be what the folder has under that name, and no link: it may have been changed since we looked.
opened() {
  [ /proc/self/fd/3 -ef "./$_name" ] && [ ! -L "./$_name" ] && [ -f /proc/self/fd/3 ] || return 1
  _at=$PWD/$_name
  printf '%s\\n' "P $1 $2 \${_at#"$_root"/}"
  [ ! -s /proc/self/fd/3 ] || copy $3 /proc/self/fd/3
  echo $2
}
serve() {
  while read -r _op _id _a _b _c _d; do
    case $_op in
    b) begun ;;
    e) kill -0 $_server || exit; ended $_d ;;
    d) kill -0 $_server || exit; told ;;
    w) watch "$_id" "$_a" "$_b" "$_c" ;;
    N) drop "$_id"; echo "N $_id $_a" ;;
    t) tick; echo T || exit ;;
    m) _whole=yes; more "$_id" $_a $_b $_c $_d; _whole= ;;
    p) _whole=yes; peek "$_id" "$_a" "$_b" "$_c\${_d:+ }$_d"; _whole= ;;
    q) exit ;;
    *) printf '%s\\n' "$_op $_id $_a" ;;
    esac
  done
  exit
}
echo H
while :; do
  command eval serve
  # It could not fork. What can be told again is: a command's beginning; over a fresh connection everything.
  [ -z "$_whole" ] || { kill -KILL $_server; exit; }
  [ -z "$_open" ] || shut
  # Or nobody would ask again.
  echo T
done
`;

/** Reads what the server hands to a shell of its own, where it is not a subshell. */
const ARGS = `
_base=$1 _live=$1/exec _id=$2 _slot=$3 _in=$4 _seconds=$5 _cwd=$6 _env=$7 _common=$8 _inner=$9; shift 9
exec 2>/dev/null
one "$@"
`;

const BOOT = `
_base=$1 _root=$2 _common=$3 _one=$4 _inner=$5 _args=$6 _writer=$7 _spare=$8
if [ -z "$9" ] && command -v bash >/dev/null; then exec bash --posix --norc -c "$0" "$0" "$1" "$2" "$3" "$4" "$5" "$6" "$7" "$8" bash; fi
if [ -n "$9" ]; then _shell='bash --posix --norc -c'; else _shell='sh -c'; fi
eval "$_common$_one"
[ -z "$BASH_VERSION" ] || eval "$_spare"
${SERVER}`;

/**
 * The argv of the process to start inside. `base`: the folder under which executions are kept; `root`: the workspace.
 */
export const channelArgv = (base: string, root: string): string[] => [
  ...['sh', '-c', BOOT, BOOT],
  ...[base, root, COMMON, ONE, INNER, ARGS, WRITER, SPARE],
];
