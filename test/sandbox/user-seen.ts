/** What `user-child.ts` says where all that a sandbox wrote is the person's who runs it, and `serving` the engine. */
export const asThePerson = (uid: number, serving: unknown) => ({
  user: uid,
  serving,
  // The sessions' logs are hidden: not even a copy of them is there.
  plain: `${uid}\nmine\n`,
  owners: { '.': uid, 'mine.txt': uid, made: uid, 'made/m.txt': uid, '.drover/log.jsonl': uid },
  open: { 'open.txt': uid },
  devcontainer: 'dev\n',
  devcontainerOwners: { 'post.txt': uid, 'dev.txt': uid },
  log: 'truth\n',
});
