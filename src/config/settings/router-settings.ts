/** Settings of the Model Router: how long, how large and how many its calls may be, and where its catalogue lies. */
import type { SettingName } from '../env.ts'
import { readBlock } from '../readers/read-block.ts'
import { readList, readOnOff, readPath, readWordOr } from '../readers/read-choice.ts'
import { DAY, GIB, KIB, readBytes, readCount, readDurationMs, readUsdMicros, SECOND } from '../readers/read-quantity.ts'
import type { Setting } from './setting.ts'

export const ROUTER_SETTINGS = {
  catalogs: {
    group: 'Router',
    argument: '<folder>',
    fallback: '',
    read: readList(readPath),
    help: 'Folders with models of your own, comma separated, besides those that come with Atelier; see docs/router.md. They are read again when a file changes.',
  },
  providers: {
    group: 'Router',
    argument: null,
    fallback: 'none',
    read: readWordOr('none', null, readBlock),
    help: 'Keys and settings of providers: a JSON file, or, in the config file, the object itself; see docs/router.md. `none`: only `sandbox` and `local` models run.',
    isBlock: true,
    isSecret: true,
  },
  sandboxModels: {
    group: 'Router',
    argument: '<on or off>',
    fallback: 'on',
    read: readOnOff,
    help: 'Whether the free `sandbox/*` models for tests are offered. Set `off` for an installation that is open to the public.',
  },
  routerDeadline: {
    group: 'Router',
    argument: '<duration>',
    fallback: '600s',
    read: readDurationMs({ min: 100, max: DAY }),
    help: 'How long a call holds its connection before it gets `deadline_exceeded`; the generation continues. Proxies in front need a timeout that is 60 s longer.',
  },
  routerMaxBody: {
    group: 'Router',
    argument: '<size>',
    fallback: '100MiB',
    read: readBytes({ min: KIB, max: GIB }),
    help: 'The largest input of a model.',
  },
  routerMaxResult: {
    group: 'Router',
    argument: '<size>',
    fallback: '1GiB',
    read: readBytes({ min: KIB, max: 1024 * GIB }),
    help: 'The largest result that is accepted from a provider.',
  },
  routerMaxReplay: {
    group: 'Router',
    argument: '<size>',
    fallback: '256MiB',
    read: readBytes({ min: 0, max: 1024 * GIB }),
    help: 'The largest result that a repeated `Idempotency-Key` gets again; a larger one is delivered once.',
  },
  routerMaxCalls: {
    group: 'Router',
    argument: '<count>',
    fallback: 'none',
    read: readWordOr('none', null, readCount({ min: 1, max: 1_000_000 })),
    help: 'Model calls that one account may have under way; where accounts have tiers, the smaller of both applies. A quarter of it for calls above 5 USD.',
  },
  routerSpendCeiling: {
    group: 'Router',
    argument: '<usd>',
    fallback: 'none',
    read: readWordOr('none', null, readUsdMicros),
    help: 'What the calls that one account has under way may cost together, in US dollars; where accounts have tiers, the smaller of both applies.',
  },
  routerRate: {
    group: 'Router',
    argument: '<count>',
    fallback: 'none',
    read: readWordOr('none', null, readCount({ min: 1, max: 10_000_000 })),
    help: 'Requests to the router that one account may make per minute, catalogue and queue reads included.',
  },
  routerMaxWaiting: {
    group: 'Router',
    argument: '<count>',
    fallback: '1000',
    read: readCount({ min: 1, max: 1_000_000 }),
    help: 'Queued model calls of one account that may wait; a further one gets `queue_backlog_full`.',
  },
  routerMaxWait: {
    group: 'Router',
    argument: '<duration>',
    fallback: '1h',
    read: readDurationMs({ min: SECOND, max: 30 * DAY }),
    help: 'How long a queued model call may wait before it ends with `queue_timeout`, unbilled.',
  },
  creditsPerUsd: {
    group: 'Router',
    argument: '<count>',
    fallback: '211',
    read: readCount({ min: 1, max: 1_000_000 }),
    help: 'Credits that one US dollar is worth in the cost header.',
  },
} as const satisfies Partial<Record<SettingName, Setting<unknown>>>
