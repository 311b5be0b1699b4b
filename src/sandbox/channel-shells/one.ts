/*
 * Runs one command and writes down its end. In bash this is a subshell of the server, else a shell of its own that was
 * started in the foreground: what a shell starts in the background would ignore SIGINT.
 */
export const ONE = `
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

/** Becomes the command, where the shell can't make a process group by itself. */
export const INNER = `
{ born self; echo "pid $_pid $_born" >>"$0"; facts "$0"; } 2>/dev/null
[ -z "$_stop" ] || exit 143
cd "$1" || exit 126
[ -z "$2" ] || eval "$2"
shift 2; exec "$@"
`;

/** Reads what the server hands to a shell of its own, where it is not a subshell. */
export const ARGS = `
_base=$1 _live=$1/exec _id=$2 _slot=$3 _in=$4 _seconds=$5 _cwd=$6 _env=$7 _common=$8 _inner=$9; shift 9
exec 2>/dev/null
one "$@"
`;
