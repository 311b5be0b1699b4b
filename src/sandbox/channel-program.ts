import { ARGS, INNER, ONE } from './channel-shells/one.ts';
import { SERVER } from './channel-shells/server.ts';
import { SPARE } from './channel-shells/spare.ts';
import { WRITER } from './channel-shells/writer.ts';

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
