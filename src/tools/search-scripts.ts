import { COMMON } from './file-scripts.ts';

/*
 * The small programs that list and search files inside the sandbox: with ripgrep where there is one, else with find and
 * grep. They are called and answer as those in file-scripts.ts; `no norg` means that there is no ripgrep.
 */

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
