/** Every command of package.json, without its `drover.` prefix. Each has one handler in commands.ts. */
export const commandIds = [
  'startSession',
  'openSession',
  'searchSessions',
  'interrupt',
  'continueSession',
  'approveNext',
  'denyNext',
  'focusApproval',
  'approve',
  'deny',
  'alwaysAllow',
  'manageRules',
  'showDiff',
  'archiveSession',
  'unarchiveSession',
  'takeOver',
  'openLogFile',
  'setApiKey',
  'pickModel',
  'rehearse',
  'openSample',
  'checkEngine',
  'showDiagnostics',
] as const;

export type CommandId = (typeof commandIds)[number];
