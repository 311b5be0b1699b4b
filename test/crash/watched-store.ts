import type { SessionStore, SessionWriter } from '../../src/log/log.ts';
import { openStore } from '../../src/log/store.ts';
import type { LogRecord } from '../../src/protocol/record.ts';

/** Told what the log does, at the moment it does it. Nothing goes on before these return. */
export interface Watch {
  /** A batch is about to be handed to the log. */
  before(): void;
  /** A batch is as safe as was asked; nobody else has been told yet. */
  after(records: readonly LogRecord[]): void;
  /** The log asks for the time while it makes a session or takes its lease. */
  opening(): void;
}

/** The real store, with an eye on it. It changes nothing of what the store does. */
export function watchedStore(root: string, leaseMs: number | undefined, watch: Watch): SessionStore {
  const writers = new Map<SessionWriter, SessionWriter>();
  let opening = 0;
  let announced = false;
  const now = () => {
    if (opening > 0) watch.opening();
    return new Date();
  };
  const store = openStore({ root, leaseMs, now });

  /** The first opening in this process appends too: the session's first records, or that somebody woke. */
  async function open(act: () => Promise<SessionWriter>): Promise<SessionWriter> {
    if (!announced) watch.before();
    announced = true;
    opening += 1;
    try {
      const inner = await act();
      const known = writers.get(inner);
      if (known) return known;
      const writer = watchedWriter(inner, watch);
      writers.set(inner, writer);
      watch.after([]);
      return writer;
    } finally {
      opening -= 1;
    }
  }

  return except(store, {
    create: (id, first) => open(() => store.create(id, first)),
    acquire: (id, why) => open(() => store.acquire(id, why)),
    takeOver: (id, why) => open(() => store.takeOver(id, why)),
  });
}

function watchedWriter(inner: SessionWriter, watch: Watch): SessionWriter {
  // The first listener: it hears of a batch before the harness does.
  inner.onAppend((records) => watch.after(records));
  return except(inner, {
    append: (drafts, options) => {
      if (drafts.length > 0) watch.before();
      return inner.append(drafts, options);
    },
  });
}

/** The very same object, but for a few of its methods. */
function except<T extends object>(inner: T, replaced: Partial<T>): T {
  return new Proxy(inner, {
    get(target, name) {
      const own: unknown = Reflect.get(replaced, name);
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
