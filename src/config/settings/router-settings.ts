/** The Model Router, the log and the traces. */
import { readBlock, readChoice, readList, readOnOff, readPath, readWordOr } from '../readers/read-choice.ts'
import { readOtlpUrl } from '../readers/read-network.ts'
import { DAY, readDurationMs } from '../readers/read-quantity.ts'
import type { SettingTable } from './setting.ts'

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

export const ROUTER_SETTINGS = {
  catalogs: {
    argument: '<folder>',
    fallback: '',
    read: readList(readPath),
    help: 'Folders with models of your own, comma separated, besides those that come with Atelier; see docs/router.md. They are read again when a file changes.',
    who: 'Operators who offer models of their own, or other providers.',
  },
  providers: {
    argument: null,
    fallback: 'none',
    read: readWordOr('none', null, readBlock),
    help: 'Keys and settings of providers: a JSON file, or, in the config file, the object itself; see docs/router.md. `none`: only `sandbox` and `local` models run.',
    who: 'Whoever has a key of a provider.',
    isBlock: true,
    isSecret: true,
  },
  sandboxModels: {
    argument: '<on or off>',
    fallback: 'on',
    read: readOnOff,
    help: 'Whether the free `sandbox/*` models for tests are offered. Set `off` for an installation that is open to the public.',
    who: 'Operators of a public service: `off`.',
  },
  routerDeadline: {
    argument: '<duration>',
    fallback: '600s',
    read: readDurationMs({ min: 100, max: DAY }),
    help: 'How long a call holds its connection before it gets `deadline_exceeded`; the generation continues. Proxies in front need a timeout that is 60 s longer.',
    who: 'Operators whose proxies cut connections sooner, or whose models take longer than ten minutes.',
  },
  routerLimits: {
    argument: '<file>',
    fallback: 'none',
    read: readWordOr('none', null, readBlock),
    help: 'What one account may do with the router, as a JSON file, or, in the config file, as an object: `maxCalls` (model calls under way; a quarter of it for calls above 5 USD), `spendCeiling` (what those calls may cost together, in US dollars), `rate` (requests per minute, catalogue and queue reads included). Where accounts have tiers, the smaller of both applies. `none`: no limits.',
    who: 'Whoever pays for the calls of others, or does not want one account to use up the limits of a provider.',
    isBlock: true,
  },
} as const satisfies SettingTable

export const LOG_SETTINGS = {
  logLevel: {
    argument: '<level>',
    fallback: 'info',
    read: readChoice(LOG_LEVELS),
    help: 'The lowest level of log lines that are written. `debug` also writes a line for each request, which makes a small request about a third more expensive.',
    who: 'Whoever looks for a fault: `debug`; operators who pay for log lines: `warn`.',
  },
} as const satisfies SettingTable

export const TRACE_SETTINGS = {
  otlpEndpoint: {
    argument: '<url>',
    fallback: '',
    read: readOtlpUrl,
    help: 'The base address of an OTLP/HTTP collector, such as `http://127.0.0.1:4318`; `/v1/traces` is added. Setting it turns traces on. The other standard variables of OpenTelemetry are read from the environment: see docs/traces.md.',
    who: 'Operators who collect traces.',
  },
} as const satisfies SettingTable
