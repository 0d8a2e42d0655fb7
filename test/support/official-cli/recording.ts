/**
 * What the official command line asked, and of each answer the part that it reads (section 2 of what it expects, in bold). Ids, signed
 * queries, revisions and hosts stand as names in braces: a replay learns them from the answers that it gets, as the client does. Times,
 * logs and what depends on how fast an engine starts stand as `{any}`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { RecordedCommand } from './official-cli.ts'
import type { Exchange } from './recorder.ts'

const FILE = new URL('../../fixtures/comfy-cli/exchange-1.23.0.json', import.meta.url)

export interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly host?: string
  readonly headers: Readonly<Record<string, string>>
  readonly json?: unknown
  readonly base64?: string
  readonly status: number
  readonly type: string
  /** What the client reads of the answer; left out: nothing. */
  readonly reads?: unknown
}

export interface Recorded {
  readonly command: string
  readonly code: number
  readonly requests: readonly RecordedRequest[]
}

export function readRecording(): readonly Recorded[] {
  return JSON.parse(readFileSync(FILE, 'utf8')) as readonly Recorded[]
}

export async function writeRecording(commands: readonly RecordedCommand[], key: string): Promise<void> {
  const namer = createNamer(key)
  const recorded = commands.map(({ words, code, exchanges }) => ({
    command: words.map((word) => (word.startsWith('/') ? path.basename(word) : namer.name(word))).join(' '),
    code,
    requests: withoutPolls(exchanges.map((exchange) => toRecorded(exchange, namer))),
  }))
  writeFileSync(FILE, `${JSON.stringify(recorded, null, 1)}\n`)
}

/** Of reads that were repeated until something had happened, the last. */
function withoutPolls(requests: readonly RecordedRequest[]): RecordedRequest[] {
  const isSame = (one: RecordedRequest, other: RecordedRequest | undefined) =>
    one.method === 'GET' && other?.method === 'GET' && one.path === other.path
  return requests.filter((request, index) => !isSame(request, requests[index + 1]))
}

function toRecorded(exchange: Exchange, namer: Namer): RecordedRequest {
  const { method, host, headers, body, status, type, answer } = exchange
  const isJson = headers['content-type'] === 'application/json'
  const sent = isJson
    ? { json: JSON.parse(namer.name(body.toString())) }
    : body.length > 0 && { base64: body.toString('base64') }
  const shown = {
    ...{ method, path: namer.name(exchange.path), ...(host !== null && { host: namer.name(host) }) },
    headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, namer.name(text)])),
    ...sent,
  }
  const reads = type === 'application/json' ? readsOf(method, exchange.path, status, answer.toString()) : undefined
  // Names of what is read first are given in its order.
  const named = reads === undefined ? {} : { reads: JSON.parse(namer.learn(JSON.stringify(reads))) }
  return { ...shown, status, type, ...named }
}

const LEARNED =
  /\b(?:bld|rel|blob|dep)-[0-9a-z][0-9a-z-]{8,}[0-9a-z]|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<=\?)(?:expires=|X-Goog-Date=)[^"]+|\d{4}-\d\d-\d\dT[\d:.]+Z|http:\/\/127\.0\.0\.1:\d+/g

interface Namer {
  /** With the names that were given so far. */
  name(text: string): string
  /** The same, and gives names to what an answer tells first. */
  learn(text: string): string
}

function createNamer(key: string): Namer {
  const names = new Map<string, string>([[key, '{key}']])
  const kindOf = (value: string) => {
    if (value.startsWith('http')) return 'origin'
    if (/^\d{4}-/.test(value)) return 'revision'
    return /^(bld|rel|blob|dep)-/.exec(value)?.[1] ?? (value.includes('=') ? 'signed' : 'id')
  }
  const name = (text: string) => [...names].reduce((shown, [value, given]) => shown.replaceAll(value, given), text)
  return {
    name,
    learn(text) {
      for (const [value] of text.matchAll(LEARNED)) {
        const kind = kindOf(value)
        const number = [...names.values()].filter((given) => given.startsWith(`{${kind} `)).length + 1
        if (!names.has(value)) names.set(value, kind === 'origin' ? '{origin}' : `{${kind} ${number}}`)
      }
      return name(text)
    },
  }
}

const DEPLOYMENT = [
  ...['id', 'status', 'releaseId', 'computeConfig', 'revision', 'endpointUrl', 'name', 'error', 'stopReason'],
  ...['pendingUpdate'],
]
const JOB = [
  'id',
  'status',
  'release_version',
  'urls',
  'outputs.id',
  'outputs.name',
  'outputs.node_id',
  'outputs.type',
  'outputs.url',
]

/** The fields in bold, by method and path; a dot leads into an object, or into each of a list. `?`: any value. */
const READ: readonly (readonly [RegExp, readonly string[]])[] = [
  [/^POST \/builder\/v1\/blobs$/, ['blobId', 'uploadUrl', 'deduplicated']],
  [/^GET \/builder\/v1\/blobs/, ['blobs.blobId', 'blobs.filename', 'blobs.kind']],
  [/^POST \/builder\/v1\/builds$/, ['id', 'warnings']],
  [/^GET \/builder\/v1\/builds(\?|$)/, ['builds.id', 'builds.name', 'nextCursor']],
  [/^GET \/builder\/v1\/builds\/[^/]+$/, ['id', 'name', 'description', 'definition', 'updatedAt']],
  [/^PATCH \/builder\/v1\/builds\/[^/]+$/, ['updatedAt', 'warnings']],
  [/^POST \/builder\/v1\/builds\/[^/]+\/releases$/, ['releaseId', 'statusUrl']],
  [
    /^GET \/builder\/v1\/builds\/[^/]+\/releases/,
    [
      'releases.id',
      'releases.version',
      'releases.deployable',
      'releases.status',
      'releases.buildId',
      'releases.createdAt?',
    ],
  ],
  [/^GET \/builder\/v1\/releases\/[^/]+$/, ['id', 'buildId', 'version', 'status', 'deployable', 'artifactCounts']],
  [/^GET \/builder\/v1\/releases\/[^/]+\/logs/, ['log?', 'truncated']],
  [
    /^GET \/builder\/v1\/releases\/[^/]+\/manifest/,
    ['models.type', 'models.filename', 'models.sha256', 'models.downloadUrl', 'modelPolicy'],
  ],
  [/^POST \/builder\/v1\/models\/resolve/, ['results.filename', 'results.candidates']],
  [/^POST \/builder\/v1\/(snapshots|workflows)\/resolve/, ['definition', 'report']],
  [/^GET \/builder\/v1\/base-images/, ['baseImages?']],
  [/^GET \/builder\/v1\/build-targets/, ['targets.target', 'targets.label']],
  [/^GET \/builder\/v1\/model-directories/, ['directories']],
  [/^(POST|GET|PATCH) \/deploy\/v1\/deployments\/[^/?]+$/, DEPLOYMENT],
  [/^POST \/deploy\/v1\/deployments$/, ['id', 'status', 'name']],
  [
    /^GET \/deploy\/v1\/deployments(\?|$)/,
    [...['id', 'status', 'releaseId', 'name', 'deletedAt?'].map((name) => `deployments.${name}`), 'nextCursor'],
  ],
  [/^POST \/deploy\/v1\/deployments\/[^/]+\/rollback/, ['id', 'revision', 'releaseId', 'pendingUpdate']],
  [/^DELETE \/deploy\/v1\/deployments\/[^/]+\/pending-update/, ['status', 'releaseId', 'cancelledUpdate']],
  [
    /^GET \/deploy\/v1\/deployments\/[^/]+\/revisions/,
    ['revision', 'releaseId', 'kind', 'createdBy?', 'createdAt?', 'fromRevision'].map((name) => `items.${name}`),
  ],
  [/^POST \/deploy\/v1\/deployments\/[^/]+\/(start|stop)/, ['id', 'status', 'releaseId', 'revision']],
  [/^GET \/deploy\/v1\/deployments\/[^/]+\/events/, ['deploymentId', 'events?']],
  [/^GET \/deploy\/v1\/deployments\/[^/]+\/logs/, ['deploymentId', 'comfyuiLog?', 'capturedAt?']],
  [/^GET \/deploy\/v1\/deploy-estimate/, ['enabled', 'etaSecondsLow', 'etaSecondsHigh', 'bytesToFetch']],
  [/^GET \/deploy\/v1\/compute-catalog/, ['regions.region', 'regions.gpus.gpuClass', 'regions.gpus.availability?']],
  [/^POST \/api\/v2\/assets/, ['id', 'hash']],
  [/^(POST|GET) \/api\/v2\/jobs(\/[^/]+)?$/, JOB],
  [/^GET \/api\/billing\/status/, ['subscription_status', 'is_active', 'has_funds']],
  [/^GET \/api\/workspaces\/current/, ['id', 'name', 'type', 'role']],
  [/^GET \/api\/billing\/plans/, ['current_plan_slug', 'plans']],
  [/^GET \/api\/features/, ['max_concurrent_jobs']],
  [/^POST \/api\/workflows$/, ['id', 'latest_version']],
  [/^GET \/api\/workflows\?/, ['data.id', 'data.name', 'data.latest_version', 'data.updated_at?']],
  [/^GET \/api\/workflows\/[^/]+\/content/, ['workflow_json', 'version']],
]
const REFUSAL = ['error', 'code', 'invalid', 'message']

/** Of an answer, in the same shape; undefined: the client reads none of it. */
export function readsOf(method: string, at: string, status: number, text: string): unknown {
  const answer: unknown = JSON.parse(text)
  if (status >= 400) return calm(pick(answer, REFUSAL))
  const fields = READ.find(([route]) => route.test(`${method} ${at}`))?.[1]
  return fields === undefined ? undefined : calm(pick(answer, fields))
}

function pick(value: unknown, fields: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((each) => pick(each, fields))
  if (typeof value !== 'object' || value === null) return value
  const picked: Record<string, unknown> = {}
  for (const [name, below] of Map.groupBy(fields, (field) => field.split('.')[0] ?? '')) {
    const bare = name.replace('?', '')
    if (!Object.hasOwn(value, bare)) continue
    const found = (value as Readonly<Record<string, unknown>>)[bare]
    const inner = below.flatMap((field) => (field.includes('.') ? [field.slice(name.length + 1)] : []))
    if (name.endsWith('?')) picked[bare] = found === null ? null : '{any}'
    else picked[bare] = inner.length === 0 ? found : pick(found, inner)
  }
  return picked
}

const MOVING: ReadonlySet<unknown> = new Set(['queued', 'provisioning', 'starting', 'stopping', 'running'])

/** What a moment later may be otherwise says only that it is there. */
function calm(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(calm)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  const waits = entries.some(([name, inner]) => name === 'pendingUpdate' && inner !== null)
  return Object.fromEntries(
    entries.map(([name, inner]) => {
      if (name === 'status' && MOVING.has(inner)) return [name, '{any}']
      if (waits && ['pendingUpdate', 'revision', 'releaseId'].includes(name)) return [name, '{any}']
      return [name, calm(inner)]
    }),
  )
}
