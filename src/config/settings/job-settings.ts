/** What a process does, how many jobs run and wait, and how long jobs and files are kept. */
import { readChoice, readList, readPath, readSwitch, readWordOr } from '../readers/read-choice.ts'
import { readInputUrls } from '../readers/read-network.ts'
import { readBytes, readCount, readDurationMs, SECOND, TIB, YEAR } from '../readers/read-quantity.ts'
import { readSigningKeys } from '../secrets.ts'
import type { SettingTable } from './setting.ts'

const KINDS = ['local', 'cloud', 'serverless'] as const
const ROLES = ['all', 'api', 'worker'] as const
const POOL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

function readPool(text: string): string {
  if (POOL.test(text)) return text
  throw new Error(`has the item ${JSON.stringify(text)}, which names no pool; give default, or the id of a deployment`)
}

function readPools(text: string): readonly string[] {
  const pools = readList(readPool)(text)
  if (pools.length > 0) return pools
  throw new Error('names no pool; give for example default')
}

export const SERVICE_SETTINGS = {
  kind: {
    argument: '<kind>',
    fallback: 'local',
    read: readChoice(KINDS),
    help: 'The kind of deployment. `local` serves one implicit account; `cloud` and `serverless` serve many, with keys, tiers and credits. See docs/accounts.md.',
    who: 'Whoever serves more than one person: `cloud` or `serverless`.',
  },
  role: {
    argument: '<role>',
    fallback: 'all',
    read: readChoice(ROLES),
    help: 'What this process does. `api`: requests, and no engine. `worker`: engines, and no requests but `/healthz`, `/readyz` and `/metrics`. `all`: both. The first two need a `database`. See docs/scale-out.md.',
    who: 'Operators of several processes, to give requests and engines machines of their own.',
  },
} as const satisfies SettingTable

export const JOB_SETTINGS = {
  pools: {
    argument: '<names>',
    fallback: 'all',
    read: readWordOr('all', null, readPools),
    help: 'The pools whose jobs this process runs, comma separated: `default`, and ids of deployments. A deployment with 0 workers is run by processes that name it here, each with its own `workers`. `all`: every pool.',
    who: 'Operators who give a deployment machines of its own.',
  },
  drainDelay: {
    argument: '<duration>',
    fallback: '0s',
    read: readDurationMs({ min: 0, max: 600 * SECOND }),
    help: 'How long requests are still taken after SIGTERM, while `/readyz` already fails: the time that a load balancer needs to notice.',
    who: 'Operators behind a load balancer that takes seconds to notice `/readyz`.',
  },
  workers: {
    argument: '<count>',
    fallback: 'auto',
    read: readWordOr('auto', 'auto', readCount({ min: 0, max: 1024, example: 4 })),
    help: 'Jobs that run at once. `auto`: with the built-in engine the number of processor cores, at least 2, so that a long job does not hold up a short one; with ComfyUI servers the number of jobs that all of them together take. `0`: jobs are accepted and wait.',
    who: 'Operators who know how many jobs their machine runs well, or who want a process that only accepts: `0`.',
  },
  maxQueue: {
    argument: '<count>',
    fallback: '10000',
    read: readCount({ min: 1, max: 10_000_000 }),
    help: 'Jobs that may wait; a further submit gets `queue_full` with `Retry-After`.',
    who: 'Operators who would rather refuse than let callers wait for hours, or who take batches of many thousands.',
  },
  retention: {
    argument: '<duration>',
    fallback: '7d',
    read: readDurationMs({ min: SECOND, max: 100 * YEAR }),
    help: 'How long a job and its outputs are kept, counted from its submission.',
    who: 'Whoever wants results for longer, or the disk back sooner.',
  },
  maxRunTime: {
    argument: '<duration>',
    fallback: '1h',
    read: readWordOr('none', null, readDurationMs({ min: SECOND, max: YEAR })),
    help: 'The longest time that one job may run; then it fails with `timeout`. Where accounts have tiers, the smaller of this and their `runSeconds` applies. `none`: no limit.',
    who: 'Users of graphs that run for hours, or operators who cut runaway jobs sooner.',
  },
  drainTimeout: {
    argument: '<duration>',
    fallback: '30s',
    read: readDurationMs({ min: 0, max: 3600 * SECOND }),
    help: 'How long running jobs may take to finish after SIGTERM. Then those on ComfyUI servers go on there for the next process, and the others go back to the queue.',
    who: 'Operators whose jobs take longer than 30 s and should end before a new version starts.',
  },
  reuse: {
    argument: '<mode>',
    fallback: 'none',
    read: readChoice(['none', 'exact']),
    help: 'Whether jobs without a `reuse` of their own may be answered with the result of an equal earlier job of their account: `none` or `exact`. See docs/reuse.md.',
    who: 'Operators whose callers send the same graphs again and again.',
  },
  previewOutputs: {
    argument: '',
    fallback: 'false',
    read: readSwitch,
    help: 'Also keeps the temporary pictures of preview nodes as outputs.',
    who: 'Users of graphs that end in preview nodes.',
  },
} as const satisfies SettingTable

export const ASSET_SETTINGS = {
  maxUpload: {
    argument: '<size>',
    fallback: '10GiB',
    read: readBytes({ min: 1, max: 64 * TIB }),
    help: 'The largest uploaded file.',
    who: 'Operators with larger files than 10 GiB, or with a small disk.',
  },
  assetRetention: {
    argument: '<duration>',
    fallback: 'never',
    read: readWordOr('never', null, readDurationMs({ min: 60 * SECOND, max: 100 * YEAR })),
    help: 'After how long an uploaded asset expires if the upload does not say. Outputs are kept as long as their job.',
    who: 'Operators whose callers never delete what they upload.',
  },
  blobGrace: {
    argument: '<duration>',
    fallback: '1h',
    read: readDurationMs({ min: 10 * SECOND, max: YEAR }),
    help: 'How long stored bytes stay after the last job or asset that refers to them is gone. It bounds how long a backup of a running service may take between the copy of the database and that of the bytes.',
    who: 'Operators whose backups take longer than an hour.',
  },
  modelsDir: {
    argument: '<folder>',
    fallback: 'none',
    read: readWordOr('none', null, readPath),
    help: 'The folder below which uploads with a `models/…` path are placed. `none`: such uploads are refused.',
    who: 'The one user whose engine reads models from this machine, to upload them.',
  },
  importDirs: {
    argument: '<folder>',
    fallback: '',
    read: readList(readPath),
    help: 'Folders of this machine, comma separated, from which `POST /api/v2/assets/from-path` may import files. Empty: none.',
    who: 'The one user who has files on this machine that need not be uploaded.',
  },
  inputUrls: {
    argument: '<hosts>',
    fallback: 'auto',
    read: readWordOr('auto', null, readInputUrls),
    help: 'From where the service fetches files that callers name by an address: `off`, `public` (any public host, over https), or hosts, comma separated: `cdn.example.com`, `.example.com` with all hosts below it, or whole origins such as `http://minio.lan:9000`, which may be private and without encryption. With `jobs` in the list also for plain workflows, not only for endpoints. A JSON file, or, in the config file, an object, may give headers for hosts as well. `auto`: `off` in the kind `local`, otherwise `public`. See docs/endpoints.md.',
    who: 'Operators whose callers have their pictures elsewhere, or who do not want their service to call strangers: `off`.',
    isBlock: true,
    isSecret: true,
  },
  signingKeys: {
    argument: null,
    fallback: 'none',
    read: readWordOr('none', [], readSigningKeys),
    help: 'Secrets that sign content addresses, newest first, comma separated: each at least 16 bytes in hex or base64, or `name:secret`. The first signs, all verify. `none`: one is made and kept in the data folder.',
    who: 'Operators who rotate these keys, or whose addresses must stay valid in another data folder.',
    isSecret: true,
  },
} as const satisfies SettingTable
