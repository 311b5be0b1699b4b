import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Desk } from '../support/desk.ts';
import { eventually } from '../support/eventually.ts';
import { hasEnded } from '../support/play.ts';

/** Runs Export Session, chooses a form, and answers the editor's own dialog with a path. */
async function exportTo({ workbench }: Desk, form: string, path: string): Promise<void> {
  await workbench.command('Drover: Export Session');
  await workbench.pick(form);
  await workbench.choosePath(path);
}

describe('exporting', () => {
  it('asks for the form in a list and for the place in the editor’s dialog, says the head, and is opened again', async () => {
    await using desk = await Desk.open();
    await desk.start('[rehearsal:say] Words to keep.');
    await eventually('the session to end', 60_000, () => hasEnded(desk));
    const file = join(desk.folder, 'kept.drover.jsonl');
    await exportTo(desk, 'File, with everything', file);
    const head = (await desk.records()).at(-1);
    await desk.workbench
      .notification(`Its last record is ${head?.seq}, hash ${head?.hash}`)
      .waitFor({ timeout: 20_000 });
    expect(await readFile(file, 'utf8')).toContain(`"hash":"${head?.hash}"}`);

    const page = join(desk.folder, 'kept.html');
    await exportTo(desk, 'Web page, without tool inputs and outputs', page);
    await desk.workbench.notification('Open in Browser').waitFor({ timeout: 20_000 });
    expect(await readFile(page, 'utf8')).toMatch(/^<!doctype html>[\s\S]*Words to keep\./i);

    await desk.workbench.closeActiveTab();
    await desk.workbench.command('Drover: Open Exported Session');
    await desk.workbench.choosePath(file);
    await desk.panel.frame.getByText('Read-only', { exact: true }).waitFor({ timeout: 20_000 });
    await desk.panel.message('Words to keep.').first().waitFor({ timeout: 10_000 });
  });

  it('of a session at work is shown as what it was then, and writes nothing when nobody chooses', async () => {
    await using desk = await Desk.open();
    await desk.start('[rehearsal:say] Slowly. [fault:stall ms=600000]');
    await desk.record('a request', 60_000, ({ event }) => event.type === 'span.model_request_start');
    const file = join(desk.folder, 'running.drover.jsonl');
    await desk.workbench.command('Drover: Export Session');
    await desk.workbench.quickPickRow('File, with everything').waitFor({ timeout: 20_000 });
    await desk.workbench.page.keyboard.press('Escape');
    await exportTo(desk, 'File, with everything', file);
    await desk.workbench.notification('was exported to').waitFor({ timeout: 20_000 });
    await desk.workbench.closeActiveTab();
    await desk.workbench.command('Drover: Open Exported Session');
    await desk.workbench.choosePath(file);
    await desk.panel.frame.getByText('Read-only: at work until its last event').waitFor({ timeout: 20_000 });
    await desk.panel.frame.getByText('A request to the model was open at the last event.').waitFor({ timeout: 10_000 });
  });
});

describe('deleting', () => {
  it('asks in a dialog that says what goes, keeps all when it is cancelled, and then takes the session away', async () => {
    await using desk = await Desk.open();
    await desk.start('[rehearsal:say] Soon gone.');
    await eventually('the session to end', 60_000, () => hasEnded(desk));
    const events = (await desk.records()).length;

    await desk.workbench.command('Drover: Delete Session');
    await desk.workbench.dialog('for good?').getByText(`its log of ${events} events`).waitFor({ timeout: 20_000 });
    await desk.workbench.answerDialog('for good?', 'Cancel');
    expect(await desk.sessions()).toHaveLength(1);
    expect(await desk.records()).toHaveLength(events);

    await desk.workbench.command('Drover: Delete Session');
    await desk.workbench.answerDialog('for good?', 'Delete for Good');
    await eventually('the session to go', 20_000, async () => (await desk.sessions()).length === 0);
    await eventually('its tab to close', 10_000, async () => (await desk.workbench.tabs.count()) === 0);
    await desk.workbench.openSideBar();
    await eventually('its row to go', 10_000, async () => (await desk.workbench.treeRow(/Soon gone/).count()) === 0);
  });
});
