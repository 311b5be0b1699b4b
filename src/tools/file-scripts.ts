/*
 * The small programs that do the file tools' work inside the sandbox. They need sh and coreutils (or busybox).
 *
 * Each is called with the workspace as $1 and an absolute, lexically normal path as $2. It answers on standard error,
 * in fields separated by one space, the path last and relative to the workspace: `ok …`, or `no <reason> …`.
 * Standard output is content. Where a path really leads is checked at the act itself: on the opened file, or in the
 * directory that was entered, never on a name that could be changed in between.
 */
const COMMON = `
answer() { printf '%s' "$*" >&2; }
no() { answer no "$@"; exit 0; }
root=$(cd "$1" 2>/dev/null && pwd -P) || no noworkspace
inside() { case $1/ in "$root"/*) rel=\${1#"$root"}; rel=\${rel#/} ;; *) no outside "$1" ;; esac; }
path=$2
[ "$path" = "$1" ] || case $path in "$1"/*) path=$root/\${path#"$1"/} ;; esac
`;

/** $3 first line, $4 number of lines (0: all), $5 cap in bytes. Answers `ok <size> <lines> <path>`. */
export const READ = `${COMMON}
[ -e "$path" ] || no missing
[ ! -d "$path" ] || no folder
[ -f "$path" ] || no special
[ -r "$path" ] || no unreadable
exec 3<"$path"
real=$(readlink /proc/self/fd/3 2>/dev/null || readlink -f "$path") || no missing
inside "$real"
size=$(($(wc -c <"$real"))) lines=0
if [ "$size" -gt "$5" ] || [ "$3" -gt 1 ] || [ "$4" -gt 0 ]; then lines=$(($(wc -l <"$real"))); fi
answer ok "$size" "$lines" "$rel"
if [ "$3" -le 1 ] && [ "$4" -eq 0 ]; then head -c "$5" <&3
elif [ "$4" -eq 0 ]; then tail -n "+$3" <&3 2>/dev/null | head -c "$5"
else tail -n "+$3" <&3 2>/dev/null | head -n "$4" | head -c "$5"; fi
exit 0
`;

/**
 * Standard input is the content, $3 its size, $4 the SHA-256 the file must have now, or `-`.
 * Answers `ok created|replaced <path>`. The new content appears whole or not at all.
 */
export const WRITE = `${COMMON}
hops=0
while [ -L "$path" ]; do
  hops=$((hops + 1)); [ $hops -le 40 ] || no loop
  to=$(readlink "$path")
  case $to in /*) path=$to ;; *) path=\${path%/*}/$to ;; esac
done
dir=\${path%/*} name=\${path##*/}
[ -n "$dir" ] || dir=/
case $name in '' | . | ..) no folder ;; esac
up=$dir
while [ ! -d "$up" ]; do
  [ ! -L "$up" ] || no deadlink
  [ ! -e "$up" ] || no notfolder
  up=\${up%/*}; [ -n "$up" ] || up=/
done
inside "$(cd -P "$up" 2>/dev/null && pwd -P)"
guard() {
  case /$(printf %s "$1" | tr 'A-Z' 'a-z')/ in
  */.git/* | */.vscode/* | */.devcontainer/* | */.devcontainer.json/* | */.drover/*) no protected "$1" ;;
  esac
}
guard "$rel/\${path#"$up"/}"
mkdir -p "$dir" 2>/dev/null || no unwritable
cd -P "$dir" 2>/dev/null || no unwritable
here=$(pwd -P)
inside "$here/$name"
guard "$rel"
[ ! -d "./$name" ] || no folder
mode= did=created
if [ -e "./$name" ]; then
  [ -f "./$name" ] || no special
  [ -w "./$name" ] || no readonly
  did=replaced mode=$(stat -c %a "./$name" 2>/dev/null || stat -f %Lp "./$name" 2>/dev/null)
fi
new=.drover-new-$$
trap 'rm -f "./$new"' EXIT
(set -C; : >"./$new") 2>/dev/null || no unwritable
cat >"./$new" 2>/dev/null
[ $(($(wc -c <"./$new"))) -eq "$3" ] || no full
[ -z "$mode" ] || chmod "$mode" "./$new" 2>/dev/null
if [ "$4" != - ]; then
  now=$(sha256sum <"./$name" 2>/dev/null || shasum -a 256 <"./$name" 2>/dev/null); now=\${now%% *}
  [ "$now" = "$4" ] || no changed
fi
mv -f "./$new" "./$name" 2>/dev/null || no unwritable
answer ok "$did" "$rel"
`;

/** Lists files below a folder, newest information first field: \`<mtime> ./<path>\` a line, at most $3 of them. */
export const LIST = `${COMMON}
[ -e "$path" ] || no missing
cd -P "$path" 2>/dev/null || no notfolder
inside "$(pwd -P)"
command -v find >/dev/null || no nofind
answer ok "$rel"
if stat -c %Y . >/dev/null 2>&1; then set -- "$3" -c '%Y %n'; else set -- "$3" -f '%m %N'; fi
find . \\( -name .git -o -name node_modules -o -name .drover \\) -prune -o \\( -type f -o -type l \\) -exec stat "$2" "$3" {} + 2>/dev/null | head -n "$1"
exit 0
`;

/** Searches: $3 the pattern, $4 cap in bytes, $5 the pattern as a POSIX extended one. Answers `ok <path>`, then on a line of its own `rc <n>` of the search. */
export const SEARCH = `${COMMON}
[ -e "$path" ] || no missing
inside "$(readlink -f "$path")"
target=./$rel
cd "$root" || no missing
answer ok "$rel"
echo >&2
search() {
  if command -v rg >/dev/null; then
    rg --line-number --no-heading --with-filename --color=never --hidden --sort=path --glob='!.git' --glob='!node_modules' --glob='!.drover' -e "$1" -- "$target"
    return
  fi
  kind=-P; if ! echo 1 | grep -qP '\\d' 2>/dev/null; then kind=-E; shift; fi
  text=; if echo a | grep -qI a 2>/dev/null; then text=-I; fi
  echo a | grep -q "$kind" -e "$1"
  [ $? -le 1 ] || return 2
  if [ ! -d "$target" ]; then grep -nH $text $kind -e "$1" "$target"; return; fi
  command -v find >/dev/null || { echo 'find is missing' >&2; return 2; }
  find "$target" \\( -name .git -o -name node_modules -o -name .drover \\) -prune -o -type f -exec grep -nH $text $kind -e "$1" {} + 2>/dev/null
  return 0
}
{ search "$3" "$5"; echo "rc $?" >&2; } | head -c "$4"
exit 0
`;
