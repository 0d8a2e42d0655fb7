/**
 * The table of settings: the flag, the default, the reader and the description of each. Flags, environment variables, the config
 * file, the documentation and the error messages are all derived from it.
 */

import { ENV, type SettingName } from '../env.ts'
import { readChoice, readList, readOnOff, readPath, readSwitch, readWordOr } from '../readers/read-choice.ts'
import {
  readCidr,
  readCorsOrigin,
  readHostName,
  readListenHost,
  readMountPrefix,
  readPublicUrl,
} from '../readers/read-network.ts'
import { DAY, MIB, readBytes, readCount, readDurationMs, SECOND, TIB, YEAR } from '../readers/read-quantity.ts'
import { readToken } from '../secrets.ts'
import { ACCOUNT_SETTINGS } from './account-settings.ts'
import { FLEET_SETTINGS } from './fleet-settings.ts'
import { ROLE_SETTINGS } from './role-settings.ts'
import { ROUTER_SETTINGS } from './router-settings.ts'
import type { Setting } from './setting.ts'
import { STORAGE_SETTINGS } from './storage-settings.ts'

export const KINDS = ['local', 'cloud', 'serverless'] as const
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

const BRAND = /^[A-Za-z][A-Za-z0-9-]{0,31}$/

function readBrand(text: string): string {
  if (BRAND.test(text)) return text
  throw new Error(`has the item ${JSON.stringify(text)}, which is no word for a header name; give for example Service`)
}

function readBrands(text: string): readonly string[] {
  const brands = readList(readBrand)(text)
  if (brands.length >= 1 && brands.length <= 4) return brands
  throw new Error('needs one to four words; give for example Service,Comfy')
}

export const SETTINGS = {
  kind: {
    group: 'Service',
    argument: '<kind>',
    fallback: 'local',
    read: readChoice(KINDS),
    help: 'The kind of deployment. `local` serves one implicit account; `cloud` and `serverless` serve many, with keys, tiers and credits. See docs/accounts.md.',
  },
  role: ROLE_SETTINGS.role,
  host: {
    group: 'Network',
    argument: '<address>',
    fallback: '127.0.0.1',
    read: readListenHost,
    help: 'The address to listen on. Anything but loopback (also an empty value, `0.0.0.0` and `::`) needs a `token` in the kind `local`; in the others callers show keys of their accounts.',
  },
  port: {
    group: 'Network',
    argument: '<port>',
    fallback: '8189',
    read: readCount({ min: 0, max: 65_535, example: 8189 }),
    help: 'The port to listen on. `0` takes any free port; the address printed at the start names it.',
  },
  token: {
    group: 'Network',
    argument: '<token>',
    fallback: 'none',
    read: readWordOr('none', null, readToken),
    help: 'A bearer token that every request must carry, except for health (`/healthz`, `/readyz`, `/api/v2/health`), `/docs` and preflight. For the kind `local` only. Prefer the variable: a command line is visible to others.',
    isSecret: true,
  },
  allowInsecureBind: {
    group: 'Network',
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'For the kind `local`: allows a non-loopback `host` without a `token`. Whoever reaches the port can then run jobs and read every result.',
  },
  allowedHosts: {
    group: 'Network',
    argument: '<names>',
    fallback: '',
    read: readList(readHostName),
    help: 'Further host names that clients may use in `Host`, comma separated, without port. Loopback names, `host` and the host of `publicUrl` always count.',
  },
  corsOrigins: {
    group: 'Network',
    argument: '<origins>',
    fallback: '',
    read: readList(readCorsOrigin),
    help: 'Browser origins that may call the service, comma separated and exact, such as `https://app.example.com`. `*` is refused.',
  },
  publicUrl: {
    group: 'Network',
    argument: '<url>',
    fallback: 'none',
    read: readWordOr('none', null, readPublicUrl),
    help: 'Scheme, host and port under which clients reach the service: the base of absolute links. `none`: what the request says.',
  },
  mountPrefix: {
    group: 'Network',
    argument: '<path>',
    fallback: '',
    read: readMountPrefix,
    help: 'A path in front of every route, such as `/deployment/demo`; links begin with it.',
  },
  absoluteUrls: {
    group: 'Network',
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'Gives the links of a job (`urls`) with scheme and host, as the official proxy does, instead of beginning with a slash.',
  },
  trustedProxies: {
    group: 'Network',
    argument: '<ranges>',
    fallback: '',
    read: readList(readCidr),
    help: 'Addresses or ranges of proxies whose `X-Forwarded-*` headers count, comma separated. From anywhere else they are ignored.',
  },
  maxBody: {
    group: 'Network',
    argument: '<size>',
    fallback: '32MiB',
    read: readBytes({ min: 1024, max: 1024 * MIB }),
    help: 'The largest JSON body, workflows included.',
  },
  maxBodies: {
    group: 'Network',
    argument: '<size>',
    fallback: '256MiB',
    read: readBytes({ min: MIB, max: 65_536 * MIB }),
    help: 'What bodies that are held in memory may take together. Beyond it requests are refused and may be sent again seconds later. Uploads stream and do not count; one body of the largest size always fits.',
  },
  maxBodiesPerCaller: {
    group: 'Network',
    argument: '<size>',
    fallback: '128MiB',
    read: readBytes({ min: MIB, max: 65_536 * MIB }),
    help: 'The same for the bodies of one account.',
  },
  maxStreams: {
    group: 'Network',
    argument: '<count>',
    fallback: '10000',
    read: readCount({ min: 1, max: 1_000_000 }),
    help: 'Event streams and sockets open at once; further ones get `too_many_streams`, polling stays available.',
  },
  brand: {
    group: 'Network',
    argument: '<words>',
    fallback: 'Service,Comfy',
    read: readBrands,
    help: 'The words of branded header names, comma separated: each such header goes out once per word (`X-Service-Request-Id`, `X-Comfy-Request-Id`).',
  },
  transferGc: {
    group: 'Network',
    argument: '<on or off>',
    fallback: 'on',
    read: readOnOff,
    help: 'Asks for a minor garbage collection with every 32 MiB that are uploaded or downloaded, which saves processor time on large transfers. `off` leaves it to the runtime.',
  },
  ...STORAGE_SETTINGS,
  workers: {
    group: 'Jobs',
    argument: '<count>',
    fallback: 'auto',
    read: readWordOr('auto', 'auto', readCount({ min: 0, max: 1024, example: 4 })),
    help: 'Jobs that run at once. `auto`: with the built-in engine the number of processor cores, at least 2, so that a long job does not hold up a short one; with ComfyUI servers as many as they take together. `0`: jobs are accepted and wait.',
  },
  maxQueue: {
    group: 'Jobs',
    argument: '<count>',
    fallback: '10000',
    read: readCount({ min: 1, max: 10_000_000 }),
    help: 'Jobs that may wait; a further submit gets `queue_full` with `Retry-After`.',
  },
  retention: {
    group: 'Jobs',
    argument: '<duration>',
    fallback: '7d',
    read: readDurationMs({ min: SECOND, max: 100 * YEAR }),
    help: 'How long a job and its outputs are kept, counted from its submission.',
  },
  expiredGrace: {
    group: 'Jobs',
    argument: '<duration>',
    fallback: '1h',
    read: readDurationMs({ min: 0, max: YEAR }),
    help: 'How long a job that reached its retention before it ended stays readable as `expired`.',
  },
  maxRunTime: {
    group: 'Jobs',
    argument: '<duration>',
    fallback: '1h',
    read: readWordOr('none', null, readDurationMs({ min: SECOND, max: YEAR })),
    help: 'The longest time that one job may run; then it fails with `timeout`. Where accounts have tiers, the smaller of this and their `runSeconds` counts. `none`: no limit.',
  },
  cancelGrace: {
    group: 'Jobs',
    argument: '<duration>',
    fallback: '10s',
    read: readDurationMs({ min: 0, max: 3600 * SECOND }),
    help: 'How long a running job may take to stop after a cancel before its engine thread is ended by force.',
  },
  drainTimeout: {
    group: 'Jobs',
    argument: '<duration>',
    fallback: '30s',
    read: readDurationMs({ min: 0, max: 3600 * SECOND }),
    help: 'How long running jobs may take to finish after SIGTERM; then they go back to the queue.',
  },
  drainDelay: ROLE_SETTINGS.drainDelay,
  pools: ROLE_SETTINGS.pools,
  previewOutputs: {
    group: 'Jobs',
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'Also keeps the temporary pictures of preview nodes as outputs.',
  },
  maxUpload: {
    group: 'Assets',
    argument: '<size>',
    fallback: '10GiB',
    read: readBytes({ min: 1, max: 64 * TIB }),
    help: 'The largest uploaded file.',
  },
  assetRetention: {
    group: 'Assets',
    argument: '<duration>',
    fallback: 'never',
    read: readWordOr('never', null, readDurationMs({ min: 60 * SECOND, max: 100 * YEAR })),
    help: 'After how long an uploaded asset expires when the upload does not say. Outputs live as long as their job.',
  },
  blobGrace: {
    group: 'Assets',
    argument: '<duration>',
    fallback: '1h',
    read: readDurationMs({ min: 10 * SECOND, max: YEAR }),
    help: 'How long stored bytes stay after the last job or asset that refers to them is gone. It bounds how long a backup of a running service may take between the copy of the database and that of the bytes.',
  },
  modelsDir: {
    group: 'Assets',
    argument: '<folder>',
    fallback: 'none',
    read: readWordOr('none', null, readPath),
    help: 'The folder below which uploads with a `models/…` path are placed. `none`: such uploads are refused.',
  },
  importDirs: {
    group: 'Assets',
    argument: '<folder>',
    fallback: '',
    read: readList(readPath),
    help: 'Folders of this machine, comma separated, whose files `POST /api/v2/assets/from-path` may make assets of. Empty: none.',
  },
  ...ACCOUNT_SETTINGS,
  ...ROUTER_SETTINGS,
  engineThreads: {
    group: 'Engine',
    argument: '<count>',
    fallback: 'auto',
    read: readWordOr('auto', 'auto', readCount({ min: 1, max: 256 })),
    help: 'Threads of the built-in engine. `auto`: one less than the processor cores, so that requests stay quick while it computes.',
  },
  engineMemory: {
    group: 'Engine',
    argument: '<size>',
    fallback: 'auto',
    read: readWordOr('auto', 'auto', readBytes({ min: 64 * MIB, max: 64 * TIB })),
    help: 'Memory for the built-in engine. `auto`: half of the machine, at most 8 GiB.',
  },
  maxImagePixels: {
    group: 'Engine',
    argument: '<count>',
    fallback: '268435456',
    read: readCount({ min: 1, max: 2 ** 40 }),
    help: 'The most pixels that a picture may decode to; the default is 16384 × 16384.',
  },
  nodes: {
    group: 'Engine',
    argument: '<folder>',
    fallback: '',
    read: readList(readPath),
    help: 'Folders with nodes of your own, comma separated; see docs/custom-nodes.md. They are trusted code. Read at the start only.',
  },
  nodeTimeout: {
    group: 'Engine',
    argument: '<duration>',
    fallback: '10m',
    read: readDurationMs({ min: 100, max: 30 * DAY }),
    help: 'The longest time that one call of a node may take, built-in or your own; then its job fails and its thread is ended.',
  },
  ...FLEET_SETTINGS,
  logLevel: {
    group: 'Logs',
    argument: '<level>',
    fallback: 'info',
    read: readChoice(LOG_LEVELS),
    help: 'The least important log line that is still written.',
  },
  logRequests: {
    group: 'Logs',
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'Writes one log line per request. Costs about a third of a small request.',
  },
} as const satisfies Record<SettingName, Setting<unknown>>

export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[]

/** The values of all settings, each of the type that its reader returns. */
export type SettingValues = { readonly [Name in SettingName]: ReturnType<(typeof SETTINGS)[Name]['read']> }

/** What joins the items of a flag that was repeated, or of a list in the file. */
export function separatorOf(name: SettingName): string {
  const setting: Setting<unknown> = SETTINGS[name]
  return setting.separator ?? ','
}

/** `maxQueue` is `--max-queue` on the command line; null when the setting has no flag. */
export function flagOf(name: SettingName): string | null {
  if (SETTINGS[name].argument === null) return null
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

export function envOf(name: SettingName): string {
  return ENV[name]
}
