/*
 * Runs one command as `ONE` does, by two shells that are there before the command is known, one of them in the process
 * group that it will have: nothing is left to be forked then. Bash only. Until the command comes that one reads the requests in the
 * server's place: no shell has to pass it on. To the server it speaks through a pipe, 7:
 *   h           it is ready, and reads from now on
 *   b …         it begins a command; the server reads again
 *   q           nobody is connected any more
 * or a request that is not for it, which is the last it has read. When the pipe ends without a word it was killed.
 */
export const SPARE = `
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
