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
export const WRITER = `
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
