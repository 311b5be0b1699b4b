/*
 * The small programs that do the file tools' work inside the sandbox. They need sh and coreutils (or busybox), and
 * start as few programs as they can: starting one takes longer than reading a source file.
 *
 * Each is called with the workspace as $1 and an absolute, lexically normal path as $2. It answers on standard error,
 * in fields separated by one space, the path last and relative to the workspace: `ok …`, or `no <reason> …`.
 * Standard output is content. Where a path really leads is checked at the act itself: on the opened file, or in the
 * folder that was entered, never on a name that could be changed in between.
 */
const COMMON = `
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

/** Enters the folder, or the folder of the file, and says in $rel which one it is. */
const ENTER = `${COMMON}
[ -e "$path" ] || no missing
if [ -d "$path" ]; then cd -P "$path" 2>/dev/null || no unreadable; inside "$PWD"
else
  name=\${path##*/}
  cd -P "\${path%/*}/" 2>/dev/null || no unreadable
  if [ -L "./$name" ]; then inside "$(readlink -f "./$name")"; else inside "\${PWD%/}/$name"; fi
fi
`;

/**
 * `rg_`, from the workspace: hidden files too, ignore files with or without a repository, but none from above the
 * workspace, where a person may keep one for their whole home.
 */
const RG = `
command -v rg >/dev/null || no norg
cd "$root"
parents=
if [ ! -e .git ]; then
  up=$root
  while [ -n "$up" ]; do
    up=\${up%/*}
    [ ! -f "$up/.gitignore" ] && [ ! -f "$up/.ignore" ] || parents=no
  done
fi
rg_() {
  if [ -n "$parents" ]; then
    set -- --no-ignore-parent "$@"
    [ -z "$rel" ] || [ ! -f .gitignore ] || set -- --ignore-file=.gitignore "$@"
  fi
  rg --no-config --color=never --hidden --no-require-git --glob='!.git' --glob='!node_modules' --glob='!.drover' "$@"
}
`;

/**
 * Lists files with ripgrep: $3 cap in bytes of their names, $4 an option for it. A line of the output is a time in
 * seconds and a path. Answers \`ok <path>\`.
 */
export const LIST = `${ENTER}
[ -d "$path" ] || no notfolder
command -v xargs >/dev/null || no norg
${RG}
answer ok "$rel"
if stat -c %Y . >/dev/null 2>&1; then form=-c look='%Y %n'; else form=-f look='%m %N'; fi
# Ripgrep's own sorting by time goes folder by folder.
rg_ --files --null \${4:+"$4"} "./$rel" 2>/dev/null | head -c "$3" | xargs -0 stat $form "$look" 2>/dev/null
exit 0
`;

/**
 * Searches with ripgrep: $3 the pattern, $4 cap in bytes, $5 an option for it. A line of the output is the file, a NUL,
 * the line's number, a colon, the line. Answers \`ok <path>\`, then on a line of its own \`rc <n>\` of the search.
 */
export const SEARCH = `${ENTER}
${RG}
answer ok "$rel"
echo >&2
{
  rg_ --engine=auto --line-number --no-heading --with-filename --null --max-columns=65536 --max-columns-preview \${5:+"$5"} -e "$3" -- "./$rel"
  echo "rc $?" >&2
} | head -c "$4"
exit 0
`;

/**
 * One level of a walk without ripgrep: what is in the folders that are given, relative to $2, from $4 on; \`.\` is $2
 * itself. $3 is \`up\` where the ignore files of the folders above $2 are wanted too. A line of the output is an entry:
 * its mode in hex or, after a \`0\`, octal, its time in seconds, its path; if $2 is a file, that alone. After a NUL come the ignore files, each as
 * its path, a NUL, its beginning, a NUL; those above $2 have paths from the workspace, after a \`/\`.
 * Answers \`ok <path>\`.
 */
export const LEVEL = `${ENTER}
[ -d "$path" ] || { answer ok "$rel"; printf '8000 0 ./'; exit 0; }
command -v find >/dev/null || no nofind
here=$PWD base=$rel above=$3; shift 3
if stat -c %f . >/dev/null 2>&1; then form=-c look='%f %Y %n'; else form=-f look='0%p %m %N'; fi
answer ok "$rel"
find "$@" -mindepth 1 -maxdepth 1 -exec stat $form "$look" {} + 2>/dev/null
printf '\\0'
give() { printf '%s\\0' "$1"; head -c 65536 "$2"; printf '\\0'; }
if [ "$above" = up ]; then
  [ ! -f "$root/.git/info/exclude" ] || give /.git/info/exclude "$root/.git/info/exclude"
  at=
  while [ "$at" != "$base" ]; do
    for file in .gitignore .ignore; do [ ! -f "$root/$at/$file" ] || give "/\${at:+$at/}$file" "$root/$at/$file"; done
    part=\${base#"$at"}; part=\${part#/}; at=\${at:+$at/}\${part%%/*}
  done
fi
for folder; do
  for file in .gitignore .ignore; do [ ! -f "./$folder/$file" ] || give "$folder/$file" "./$folder/$file"; done
done
exit 0
`;

/**
 * Searches the files of the workspace that are given from $6 on, without ripgrep: $3 the pattern, $4 the same as a
 * POSIX extended one, $5 cap in bytes. A line of the output is \`<path>:<number>:<line>\`.
 * Answers \`ok <path>\`, then on a line of its own \`rc <n>\`, above 1 where the pattern can't be used.
 */
export const GREP = `${COMMON}
rel=
perl=$3 posix=$4 cap=$5; shift 5
command -v grep >/dev/null || no nogrep
answer ok "$rel"
echo >&2
# In another locale a file in another encoding counts as binary, and would be passed over without a word.
LC_ALL=C; export LC_ALL
kind=-P pattern=$perl
echo 1 | grep -qP '\\d' 2>/dev/null || { kind=-E pattern=$posix; }
text=; if echo a | grep -qI a 2>/dev/null; then text=-I; fi
echo a | grep -q $kind -e "$pattern"; rc=$?
# It would look for a question mark, and find nothing.
case $kind$pattern in -E*'(?'*) rc=2; echo 'this sandbox has no grep that knows "(?"' >&2 ;; esac
[ $rc -gt 1 ] || grep -nH $text $kind -e "$pattern" -- "$@" 2>/dev/null | head -c "$cap"
echo "rc $rc" >&2
exit 0
`;
