import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { sh, textOf } from './rig.ts';

/** Everything that could put a file at a path; what of it worked. */
export const attacks = async (sandbox: Sandbox, path: string): Promise<string> => {
  const line = `
    p=$1; d=\${p%/*}; [ "$d" = "$p" ] && d=.
    try() { "$@" 2>/dev/null && echo "$*"; }
    write() { mkdir -p "$(dirname "$1")" && echo evil >"$1"; }
    replace() { mv "$1" "$1.moved" && write "$p"; }
    link() { mkdir -p elsewhere && mv "$1" "$1.old" && ln -s elsewhere "$1"; }
    [ -e "$p" ] && was=yes
    try write "$p"; [ -n "$was" ] && try rm -rf "$p"
    try replace "$p"; try link "$p"
    while [ "$d" != . ]; do try replace "$d"; try link "$d"; d=$(dirname "$d"); done
    grep -q evil "$p" 2>/dev/null && echo "evil in $p"
    rm -rf elsewhere`;
  const { stdout } = await sh(sandbox, `set -- '${path}'; ${line}`);
  return textOf(stdout).trim();
};
