/*
 * What runs a thread's command inside: `sh -c START drover <name of the thread's state> IN_BASH IN_SH`, in bash where
 * there is one. The command itself comes in DROVER_COMMAND, or where it is too long for that on standard input, so its
 * quoting doesn't matter; it has no standard input of its own.
 *
 * What a command leaves in its shell is found by the thread's next one: the working directory, variables, and in bash
 * functions, aliases and options too. It is saved when the shell ends, however it ends. Variables that a call is given
 * and the shell did not change are not saved: the next call is given its own.
 */
export const START = `
if command -v bash >/dev/null && [ -r /proc/self/environ ]; then exec bash --noprofile --norc -c "$2" bash "$1" "$3"; fi
exec sh -c "$3" sh "$1"
`;

/** Forgets what a thread's shell left. $1 as above. */
export const RESET = `rm -f "\${TMPDIR:-/tmp}/.drover-shell/$1" "\${TMPDIR:-/tmp}/.drover-shell/$1".* /dev/shm/drover-*-"$1".*`;

/** Characters of a variable's value that are kept. */
const KEPT = 64 * 1024;

/** Variables that a shell sets by itself, or that are this program's. */
const ITS_OWN = [
  ...['BASH', 'BASH_*', 'BASHOPTS', 'BASHPID', 'COMP_*', 'DIRSTACK', 'EPOCH*', 'EUID', 'FUNCNAME', 'GROUPS', 'HISTCMD'],
  ...[
    'HOSTNAME',
    'HOSTTYPE',
    'IFS',
    'LINENO',
    'MACHTYPE',
    'OLDPWD',
    'OPT*',
    'OSTYPE',
    'PIPESTATUS',
    'PPID',
    'PS4',
    'PWD',
  ],
  ...['RANDOM', 'SECONDS', 'SHELLOPTS', 'SHLVL', 'SRANDOM', 'UID', '_', '__*'],
].join(' | ');

/** Takes the command in. */
const TAKE = `
__drover=\${TMPDIR:-/tmp}/.drover-shell/$1
shift $#
if [ -n "\${DROVER_COMMAND+x}" ]; then __command=$DROVER_COMMAND; unset DROVER_COMMAND
else __command=$(cat; echo .); __command=\${__command%.}; fi
exec </dev/null
[ -d "\${__drover%/*}" ] || mkdir -p "\${__drover%/*}"
`;

/*
 * No forks but one, for the name under which the state appears whole; and none where it is what it was, as after most
 * commands. It restores options last, in the same breath as the command: under `set -x` nothing of this is to be seen.
 * Drafts are made in memory where that can be: a new file on a disk costs as much as all the rest.
 */
export const IN_BASH = `
[ "\${BASH_VERSINFO:-0}" -ge 4 ] || exec bash --noprofile --norc -c "$2" bash "$1"
${TAKE}
__draft=$__drover
[ ! -w /dev/shm ] || __draft=/dev/shm/drover-$UID-\${__drover##*/}
declare -A __was=()
while IFS= read -r -d '' __line; do __was["\${__line%%=*}"]=\${__line#*=}; done </proc/self/environ
shopt -s expand_aliases
[ ! -f "$__drover" ] || { IFS= read -r -d '' __before <"$__drover"; . "$__drover" 2>/dev/null; }
__variables() {
  while read -r __name; do
    case $__name in ${ITS_OWN}) continue ;; esac
    __value=\${!__name-}
    [ "\${#__value}" -lt ${KEPT} ] || continue
    [ -z "\${__was["$__name"]+x}" ] || [ "$__value" != "\${__was["$__name"]}" ] || continue
    declare -p "$__name"
  done
  for __name in "\${!__was[@]}"; do
    case $__name in *[!A-Za-z0-9_]* | [0-9]* | '') continue ;; esac
    [ -n "\${!__name+x}" ] || echo "unset -v $__name"
  done
}
__state() {
  shopt -p; declare -f; alias -p
  __variables <"$__draft.names"
  printf 'cd -- %q\\n__restore="' "$PWD"
  for __name in braceexpand hashall interactive-comments; do
    [[ $__options == *:$__name:* ]] || printf 'set +o %s;' $__name
  done
  for __name in \${__options//:/ }; do printf 'set -o %s;' $__name; done
  echo '"'
}
__save() {
  __options=:$SHELLOPTS: IFS=$' \\t\\n'
  set +eufvxnC
  compgen -v >"$__draft.names" || { __draft=$__drover; compgen -v >"$__draft.names"; }
  if __state >"$__draft.now"; then
    IFS= read -r -d '' __now <"$__draft.now"
    [ -z "$__now" ] || [ "$__now" != "\${__before-}" ] || return
  fi
  __state >"$__drover.new" && mv -f "$__drover.new" "$__drover"
}
trap '{ __save; } 2>/dev/null' EXIT
eval "\${__restore-} $__command"
`;

/** Without lists of names a shell can only save all that is exported; what each call is given anew is put back. */
export const IN_SH = `
${TAKE}
__given=$(export -p)
[ ! -f "$__drover" ] || . "$__drover" 2>/dev/null
while IFS= read -r __line; do
  case $__line in 'export '*_[pP][rR][oO][xX][yY]=*) eval "$__line" ;; esac
done <<__END
$__given
__END
[ ! -f "$__drover.cwd" ] || cd "$(cat "$__drover.cwd")" 2>/dev/null
trap '{ export -p >"$__drover.new" && mv -f "$__drover.new" "$__drover"; pwd >"$__drover.cwd"; } 2>/dev/null' EXIT
eval "$__command"
`;
