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
export const SERVER = `
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
