import type { ExecutionId } from '../protocol/ids.ts';
import { pathSafe } from './runner.ts';

/*
 * The program that starts a server inside a sandbox, and ends it. It needs `sh` and coreutils (or busybox), nothing
 * else.
 *
 *   sh -c PROGRAM drover open <base> <id> <cwd> <program> <argument>…
 *   sh -c PROGRAM drover stop <base> <id>…
 *   sh -c PROGRAM drover sweep <base>
 *
 * `open` waits for the server, in whose input and output it has no part, and then ends what the server has left, so that
 * nothing holds the output open. While it runs, <base>/open/<id> has its process group: whoever comes after a crash
 * ends what stands there (`sweep`). All that a server starts has its id in a variable, so that also what made a process
 * group of its own, as browsers do, is found. Where there is no /proc the group alone is ended.
 */
export const LIVING_PROGRAM = `
mode=$1 base=$2; shift 2
born() {
  if [ -r /proc/self/stat ]; then
    { read -r s <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -- \${s##*) }
    case $1 in Z | X) return 1 ;; esac
    shift 19; b=$1
  else b=$(ps -o lstart= -p "$1" 2>/dev/null) && [ -n "$b" ]; fi
}
# Those whose variables name server $1. Some kinds of grep end a line where a variable ends.
marked() {
  if printf 'a\\000b' | grep -qF b; then grep -lF -e "DROVER_SERVER=$1" /proc/[0-9]*/environ; return; fi
  for f in /proc/[0-9]*/environ; do
    while IFS= read -r l || [ -n "$l" ]; do
      case $l in *"DROVER_SERVER=$1"*) echo "$f"; break ;; esac
    done <"$f"
  done
}
# Sends signal $1 to all that server $2 has started. False: there is nothing.
mark() {
  found=
  for f in $(marked "$2" 2>/dev/null); do
    p=\${f#/proc/}; kill "-$1" "\${p%/environ}" 2>/dev/null && found=yes
  done
  [ -n "$found" ]
}
# The same for its process group, if it is still the one that was noted.
group() {
  { read -r g n <"$base/open/$2"; } 2>/dev/null || return 1
  born "$g" && [ "$b" = "$n" ] || return 1
  kill "-$1" "-$g" 2>/dev/null || kill "-$1" "$g" 2>/dev/null
}
signal() {
  s_=$1 any=; shift
  for id; do
    group "$s_" "$id" && any=yes
    mark "$s_" "$id" && any=yes
  done
  [ -n "$any" ]
}
stop() {
  i=0
  signal TERM "$@" || i=20
  while [ $i -lt 20 ]; do sleep 0.1; i=$((i + 1)); signal 0 "$@" || i=21; done
  [ $i -gt 20 ] || signal KILL "$@"
  for id; do rm -f "$base/open/$id"; done
}
case $mode in
open)
  id=$1 cwd=$2; shift 2
  mkdir -p "$base/open" && born $$ && echo "$$ $b" >"$base/open/$id" || exit 125
  cd "$cwd" || exit 126
  # No builtin of this shell is meant.
  ( DROVER_SERVER=$id; export DROVER_SERVER; exec "$@" )
  code=$?
  trap '' TERM
  kill -TERM "-$$" 2>/dev/null
  i=0
  mark TERM "$id" || i=10
  while [ $i -lt 10 ]; do sleep 0.1; i=$((i + 1)); mark 0 "$id" || i=11; done
  [ $i -gt 10 ] || mark KILL "$id"
  rm -f "$base/open/$id"
  exit $code
  ;;
stop) stop "$@" ;;
sweep)
  cd "$base/open" 2>/dev/null || exit 0
  set -- *
  [ ! -e "$1" ] || stop "$@"
  ;;
esac
`;

const argvOf = (mode: string, base: string): string[] => ['sh', '-c', LIVING_PROGRAM, 'drover', mode, base];

/** @param base absolute, inside: the folder in which its process group is noted. */
export const openArgv = (base: string, of: { executionId: ExecutionId; cwd: string; argv: readonly string[] }) => [
  ...argvOf('open', base),
  ...[pathSafe(of.executionId), of.cwd],
  ...of.argv,
];

export const endArgv = (base: string, id: ExecutionId): string[] => [...argvOf('stop', base), pathSafe(id)];

/** Ends all that a process that is no more has left. */
export const sweepArgv = (base: string): string[] => argvOf('sweep', base);
