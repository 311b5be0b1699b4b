import type { RunRequest } from './sandbox.ts';

/*
 * The program that runs inside a sandbox for every call. It needs `sh` and coreutils (or busybox), nothing else.
 *
 *   sh -c RUNNER drover <mode> <base> <id> <nonce> <head> <tail> …
 *
 * A command gets a folder <base>/exec/<id> with `in`, `out`, `err`, the process group's id in `pid`, and, written
 * last and whole, its end in `rc`. So the command and its result need nobody who watches: whoever asks later finds
 * them. What is sent to us meanwhile is a copy: at most <head> bytes of each stream as they come, at the end at most
 * <tail> more, then one line that starts with <nonce> and says how it ended.
 *
 * The command runs in the foreground of this shell (in the background it would inherit an ignored SIGINT) and in a
 * process group of its own: by setsid, or where that is missing by `timeout 0`, which makes a group too. Its output
 * goes to plain files, so a server it leaves in the background does not hold up the end.
 */
export const RUNNER = `
mode=$1 base=$2 id=$3 nonce=$4 head=$5 tail=$6; shift 6
d=$base/exec/$id
now() { { read -r up rest </proc/uptime; } 2>/dev/null || up=$(date +%s); }
alive() {
  { read -r s <"$d/runner" && kill -0 "$s"; } 2>/dev/null || return 1
  [ ! -r "/proc/$s/cmdline" ] || grep -q "$id" "/proc/$s/cmdline" 2>/dev/null || ! command -v grep >/dev/null
}
stop() {
  [ -f "$d/rc" ] || [ -z "$1" ] || echo "$1" >"$d/ended"
  p= i=0
  while [ $i -lt 20 ] && ! { read -r p <"$d/pid"; } 2>/dev/null; do sleep 0.05; i=$((i + 1)); done
  [ -n "$p" ] || return 0
  kill -TERM "-$p" 2>/dev/null || kill -TERM "$p" 2>/dev/null; i=0
  while [ ! -f "$d/rc" ] && [ $i -lt 20 ]; do sleep 0.1; i=$((i + 1)); done
  kill -KILL "-$p" 2>/dev/null || [ -f "$d/rc" ] || kill -KILL "$p" 2>/dev/null
}
send() {
  if [ -s "$d/out" ]; then
    n=$(($(wc -c <"$d/out"))); [ $n -le "$limit" ] || stop
    [ $n -le "$head" ] || n=$head
    [ $n -le $po ] || { head -c $((n - po)) <&3; po=$n; }
  fi
  if [ -s "$d/err" ]; then
    n=$(($(wc -c <"$d/err"))); [ $n -le "$limit" ] || stop
    [ $n -le "$head" ] || n=$head
    [ $n -le $pe ] || { head -c $((n - pe)) <&4 >&9; pe=$n; }
  fi
}
finish() {
  no=0 ne=0 so=0 se=0
  [ ! -s "$d/out" ] || no=$(($(wc -c <"$d/out")))
  [ ! -s "$d/err" ] || ne=$(($(wc -c <"$d/err")))
  [ $((no - po)) -le "$tail" ] && [ $((ne - pe)) -le "$tail" ] || send
  so=$((no - po)) se=$((ne - pe))
  if [ $se -gt "$tail" ]; then se=$tail; tail -c "$tail" "$d/err" | head -c "$tail" >&9
  elif [ $se -gt 0 ]; then head -c $se <&4 >&9; fi
  if [ $so -gt "$tail" ]; then so=$tail; tail -c "$tail" "$d/out" | head -c "$tail"
  elif [ $so -gt 0 ]; then head -c $so <&3; fi
  read -r ended code from to <"$d/rc"
  echo "$nonce $ended $code $from $to $no $po $so $ne $pe $se"
}
follow() {
  trap '' PIPE USR1
  limit=1073741824 po=0 pe=0 nap=0.01 ticks=0 watch=
  exec 3<"$d/out" 4<"$d/err"
  # A word of this shell itself would be taken for the command's.
  exec 9>&2 2>/dev/null
  if [ "$1" != 0 ]; then sleep "$1" >/dev/null 2>&1 </dev/null & watch=$!; fi
  while [ ! -f "$d/rc" ]; do
    alive || { sleep 0.1; [ -f "$d/rc" ] || return 1; }
    send
    [ -z "$watch" ] || kill -0 "$watch" 2>/dev/null || { watch=; stop timed_out; }
    [ ! -f "$d/rc" ] || break
    # Only the wait may be cut short: a trap that bash runs while it parses a substitution spoils that substitution.
    trap : USR1; sleep $nap >/dev/null 2>&1 </dev/null & z=$!
    wait $z; w=$?; trap '' USR1
    if [ $w -gt 128 ]; then kill $z 2>/dev/null; elif [ $w -ne 0 ]; then nap=1; sleep 1; fi
    ticks=$((ticks + 1))
    case $ticks in 3) nap=0.03 ;; 10) nap=0.1 ;; 40) nap=0.2 ;; esac
  done
  [ -z "$watch" ] || kill "$watch" 2>/dev/null
  finish
}
case $mode in
run)
  limit_s=$1 cwd=$2 bytes=$3; shift 3
  mkdir -p "$base/exec" && mkdir "$d" || exit 125
  : >"$d/out" && : >"$d/err" && echo $$ >"$d/runner" || exit 125
  in=/dev/null
  if [ "$bytes" -gt 0 ]; then
    in=$d/in
    head -c "$bytes" >"$in"
    [ $(($(wc -c <"$in"))) -eq "$bytes" ] || { rm -rf "$d"; exit 125; }
  fi
  # Whoever makes this folder decides: we, that the command begins now; one who looks for it, that it never will.
  mkdir "$d/begun" 2>/dev/null || exit 125
  # Until the follower listens for the signal it must not die of it; what it then misses it sees in \`rc\`.
  trap '' USR1; follow "$limit_s" </dev/null & f=$!; trap - USR1
  # The shell's own "Terminated" is no output of the command.
  exec 2>/dev/null 5>>"$d/out" 6>>"$d/err"
  now; from=$up code=126
  if cd "$cwd" 2>&6; then
    if command -v setsid >/dev/null; then set -- setsid "$@"; elif command -v timeout >/dev/null; then set -- timeout 0 "$@"; fi
    sh -c '[ ! -f "$0/ended" ] || exit 143; echo $$ >"$0/pid"; exec "$@"' "$d" "$@" <"$in" >&5 2>&6 5>&- 6>&-
    code=$?
  fi
  now; ended=exited
  { read -r ended <"$d/ended"; } 2>/dev/null
  echo "$ended $code $from $up" >"$d/rc.tmp" && mv "$d/rc.tmp" "$d/rc"
  kill -USR1 $f 2>/dev/null
  while kill -0 $f 2>/dev/null; do wait $f && break; done
  cd "$base/exec" && ls -1t | tail -n +101 | while read -r old; do [ ! -f "$old/rc" ] || rm -rf "./$old"; done
  ;;
look)
  mkdir -p "$base/exec"; mkdir "$d" 2>/dev/null
  if [ ! -f "$d/pid" ] && mkdir "$d/begun" 2>/dev/null; then echo "$nonce absent"; exit; fi
  if [ ! -f "$d/rc" ] && ! alive; then sleep 0.3; fi
  if [ -f "$d/rc" ]; then follow 0
  elif alive; then echo "$nonce running"
  else echo "$nonce absent"; fi
  ;;
follow) follow 0 ;;
stop) stop "$1" ;;
esac
`;

/** What the runner is asked to do, as the argv of the process to start inside. */
export interface RunnerCall {
  /** Folder inside the sandbox under which executions are kept. */
  base: string;
  executionId: string;
  /** Marks the last line; random, so that output can't be taken for it. */
  nonce: string;
  /** Bytes per stream sent as they come. */
  head: number;
  /** Bytes per stream sent at the end. */
  tail: number;
}

const argvOf = (mode: string, call: RunnerCall): string[] => [
  ...['sh', '-c', RUNNER, 'drover', mode, call.base, pathSafe(call.executionId), call.nonce],
  ...[String(call.head), String(call.tail)],
];

export function runArgv(call: RunnerCall, request: RunRequest, cwd: string): string[] {
  const seconds = (Math.max(1, request.timeoutMs) / 1000).toFixed(3);
  return [...argvOf('run', call), ...[seconds, cwd, String(request.stdin?.byteLength ?? 0)], ...request.argv];
}

export const lookArgv = (call: RunnerCall): string[] => argvOf('look', call);
/** Waits for a command that runs, and sends what it prints from the start. */
export const followArgv = (call: RunnerCall): string[] => argvOf('follow', call);
/** Ends a command with all that it has started. */
export const stopArgv = (call: RunnerCall, ended: 'cancelled' | 'timed_out'): string[] => [
  ...argvOf('stop', call),
  ended,
];

/** An id as a file name: ids are ours, but they come from a log that anyone may have written. */
export const pathSafe = (id: string): string => id.replaceAll(/[^A-Za-z0-9_]/g, '_');

/** The runner's last line. Sizes are bytes: of the whole stream, sent as it came, sent at the end. */
export interface Trailer {
  ended: 'exited' | 'timed_out' | 'cancelled';
  code: number;
  durationMs: number;
  out: StreamSizes;
  err: StreamSizes;
}
export interface StreamSizes {
  whole: number;
  head: number;
  tail: number;
}

/** Reads `<nonce> <ended> <code> <from> <to> …`; undefined if the line is something else. */
export function parseTrailer(line: string, nonce: string): Trailer | 'running' | 'absent' | undefined {
  const [mark, ended, ...rest] = line.trim().split(' ');
  if (mark !== nonce) return undefined;
  if (ended === 'running' || ended === 'absent') return ended;
  if (ended !== 'exited' && ended !== 'timed_out' && ended !== 'cancelled') return undefined;
  const numbers = rest.map(Number);
  if (numbers.length !== 9 || numbers.some(Number.isNaN)) return undefined;
  const [code = 0, from = 0, to = 0, outWhole = 0, outHead = 0, outTail = 0, errWhole = 0, errHead = 0, errTail = 0] =
    numbers;
  return {
    ended,
    code,
    durationMs: Math.round((to - from) * 1000),
    out: { whole: outWhole, head: outHead, tail: outTail },
    err: { whole: errWhole, head: errHead, tail: errTail },
  };
}
