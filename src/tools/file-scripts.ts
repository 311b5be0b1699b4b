/*
 * The small programs that do the file tools' work inside the sandbox. They need sh and coreutils (or busybox), and
 * start as few programs as they can: starting one takes longer than reading a source file.
 *
 * Each is called with the workspace as $1 and an absolute, lexically normal path as $2. It answers on standard error,
 * in fields separated by one space, the path last and relative to the workspace: `ok …`, or `no <reason> …`.
 * Standard output is content. Where a path really leads is checked at the act itself: on the opened file, or in the
 * folder that was entered, never on a name that could be changed in between.
 */
export const COMMON = `
answer() { printf '%s' "$*" >&2; }
no() { answer no "$@"; exit 0; }
cd -P "$1" 2>/dev/null || no noworkspace
root=$PWD
inside() {
  case $1/ in "$root"/*) rel=\${1#"$root"}; rel=\${rel#/} ;; *) no outside "$1" ;; esac
  case /$rel/ in */.[dD][rR][oO][vV][eE][rR]/*) no hidden ;; esac
}
path=$2
[ "$path" = "$1" ] || case $path in "$1"/*) path=$root/\${path#"$1"/} ;; esac
`;

/** Opens the file as fd 3, as often as it is called, and says in $rel which one that is. */
const OPEN = `${COMMON}
[ -e "$path" ] || no missing
[ ! -d "$path" ] || no folder
[ -f "$path" ] || no special
[ -r "$path" ] || no unreadable
name=\${path##*/}
cd -P "\${path%/*}/" 2>/dev/null || no missing
open() {
  # What "-r" says to root without its powers is wrong in some shells.
  { true <"./$name"; } 2>/dev/null || no unreadable
  exec 3<"./$name"
  if [ ! -L "./$name" ] && [ "./$name" -ef /proc/self/fd/3 ]; then inside "\${PWD%/}/$name"
  else inside "$(readlink /proc/self/fd/3 2>/dev/null || readlink -f "./$name")"; fi
}
open
`;

/** The first $3 bytes. Answers `ok <path>`. */
export const READ = `${OPEN}
answer ok "$rel"
head -c "$3" <&3
exit 0
`;

/**
 * A stretch of a large file: $3 its first line, $4 how many lines (0: all), $5 at most so many bytes.
 * Answers \`ok <size> <lines> <SHA-256 or -> <path>\`.
 */
export const STRETCH = `${OPEN}
size=$(($(wc -c <&3)))
open; lines=$(($(wc -l <&3)))
# A last line without a line break is one too.
open; [ $(($(tail -c 1 <&3 | wc -l))) -eq 1 ] || lines=$((lines + 1))
open; sum=$(sha256sum <&3 2>/dev/null || { open; shasum -a 256 <&3 2>/dev/null; })
sum=\${sum%% *}
answer ok "$size" "$lines" "\${sum:--}" "$rel"
open
if [ "$4" -eq 0 ]; then tail -n "+$3" <&3 2>/dev/null | head -c "$5"
else tail -n "+$3" <&3 2>/dev/null | head -n "$4" | head -c "$5"; fi
exit 0
`;

/**
 * Standard input is the content, $3 its size; $4 the SHA-256 that the file must have now, \`new\` if there must be none;
 * $5 a name that nothing else has; $6 the SHA-256 of the content, which is only said again for who finds the answer
 * later. Answers \`ok created|replaced <number of the old file's names> <$6> <path>\`.
 * The new content appears whole or not at all.
 */
export const WRITE = `${COMMON}
hops=0
while [ -L "$path" ]; do
  hops=$((hops + 1)); [ $hops -le 40 ] || no loop
  to=$(readlink "$path")
  case $to in /*) path=$to ;; *) path=\${path%/*}/$to ;; esac
done
name=\${path##*/}
case $name in '' | . | ..) no folder ;; esac
# What exists of the folder is entered; the rest is made one by one from where we then stand.
up=\${path%/*} rest=
while [ ! -d "$up/" ]; do
  [ ! -L "$up" ] || no deadlink
  [ ! -e "$up" ] || no notfolder
  rest=\${up##*/}/$rest
  up=\${up%/*}
done
cd -P "$up/" 2>/dev/null || no unwritable
check() {
  inside "\${PWD%/}/$1"
  case /$rel/ in
  */.[gG][iI][tT]/* | */.[vV][sS][cC][oO][dD][eE]/* | */.[dD][eE][vV][cC][oO][nN][tT][aA][iI][nN][eE][rR]/* | */.[dD][eE][vV][cC][oO][nN][tT][aA][iI][nN][eE][rR].[jJ][sS][oO][nN]/*) no protected "$rel" ;;
  esac
}
check "$rest$name"
while [ -n "$rest" ]; do
  part=\${rest%%/*} rest=\${rest#*/}
  case $part in . | ..) no notfolder ;; '') continue ;; esac
  [ -d "./$part" ] || mkdir "./$part" 2>/dev/null || [ -d "./$part" ] || no unwritable
  cd -P "./$part" 2>/dev/null || no unwritable
  check "$rest$name"
done
[ ! -d "./$name" ] || no folder
did=created links=1 new=.drover-new-$5
trap 'rm -f "./$new"' EXIT
if [ -e "./$name" ]; then
  [ -f "./$name" ] || no special
  [ -w "./$name" ] || no readonly
  [ "$4" != new ] || no changed
  did=replaced
  links=$(stat -c %h "./$name" 2>/dev/null || stat -f %l "./$name" 2>/dev/null)
  # The copy brings mode and owner along, as far as this user may give them.
  cp -pP --attributes-only "./$name" "./$new" 2>/dev/null || cp -pP "./$name" "./$new" 2>/dev/null
  [ -f "./$new" ] && [ ! -L "./$new" ] || no unwritable
else
  [ "$4" = new ] || no changed
  (set -C; : >"./$new") 2>/dev/null || no unwritable
fi
{ true >"./$new"; } 2>/dev/null || no readonly
cat >"./$new" 2>/dev/null
[ $(($(wc -c <"./$new"))) -eq "$3" ] || no full
if [ "$did" = created ]; then
  # A second name can't take the place of a file that came meanwhile; where there are no second names, a look must do.
  ln -T "./$new" "./$name" 2>/dev/null || {
    [ ! -e "./$name" ] && [ ! -L "./$name" ] && { ln "./$new" "./$name" || mv -f "./$new" "./$name"; } 2>/dev/null
  } || no changed
else
  now=$(sha256sum <"./$name" 2>/dev/null || shasum -a 256 <"./$name" 2>/dev/null)
  [ "\${now%% *}" = "$4" ] || no changed
  # Into a folder that took the name meanwhile nothing is moved.
  mv -fT "./$new" "./$name" 2>/dev/null || { [ ! -d "./$name" ] && mv -f "./$new" "./$name" 2>/dev/null; } || no unwritable
  trap - EXIT
fi
answer ok "$did" "\${links:-1}" "$6" "$rel"
`;
