/** One kind of the service with data to ask for, and the error codes with which each of its surfaces refuses. */
import assert from 'node:assert/strict'
import type { ReleasesHere } from '../../src/compose/engines/open-released.ts'
import { startTestApp } from '../support/app/start-app.ts'
import { MODELS } from '../support/app/start-router.ts'
import { ADMIN_TOKEN } from '../support/app/start-shared.ts'
import { type Answer, call } from '../support/clients/call.ts'
import { createFakeEngine, type FakeEngine } from '../support/engines/fake-engine.ts'
import { createFakeProvider } from '../support/providers/fake-provider.ts'
import type { IsMalformed } from './judge.ts'
import type { KnownValues } from './valid-values.ts'

export const KINDS = ['local', 'local with a token', 'cloud', 'serverless'] as const
export type Kind = (typeof KINDS)[number]

export interface SurfaceUnderTest {
  readonly name: string
  readonly documentPath: string
  readonly headers: Readonly<Record<string, string>>
  readonly known: KnownValues
  readonly isMalformed: IsMalformed
  /** Whether a refusal is written as this surface writes them. */
  readonly errorSchema: string
}

export interface ServiceUnderTest extends AsyncDisposable {
  readonly url: string
  readonly surfaces: readonly SurfaceUnderTest[]
  /** Its runs wait at a FakeGate until it is opened. */
  readonly engine: FakeEngine
}

const FILES = ['a.json', 'folder/b.json', 'folder/c.json']
const TOKEN = 'token-of-this-test'
const GRAPHS = [
  { '1': { class_type: 'FakeSave', inputs: { text: 'made' } } },
  { '1': { class_type: 'FakeSampler', inputs: { steps: 2 } }, '2': { class_type: 'FakeLog', inputs: { text: 'x' } } },
  { '1': { class_type: 'FakeFail', inputs: {} } },
]
/**
 * Refusals that tell of a request that is wrong in itself, by the words of each surface. Left out is what only the service can
 * know and what the documents say in words: cursors that were not given out, files of this machine that are not there, bytes that are no picture, names that are taken.
 */
const MALFORMED_JOBS = ['invalid_request', 'invalid_metadata_filter', 'metadata_invalid']
const EXPLAINED_JOBS =
  /^not_before (must be in|is too far)|^expires_queued_after (is too far|must end after)|^move needs|^only_waiting is for|^priority must be given|^filter\.like must be the id|^cursor |^path |^the URL is too long|^metadata as one text must have at most|^items .* its table(?:$|,)|^deployment is no deployment|^value must |^time_zone must |^cron (must|has|names)|^workflow must be given|^inputs belong|^(endpoint|workflow) cannot be run|^name must be one line|^(limit_usd|raise\.usd) must be more|^raise\.until must|^name cannot be added|must have no control characters|^file_path (must have at most|cannot be a models)/
const MALFORMED_PROMPT = ['no_prompt', 'invalid_prompt_id', 'invalid_request']
const EXPLAINED_LEGACY =
  /this is not a picture|^original_ref |^metadata_filter |^user_metadata must|^tags (must have|must be JSON|must not|cannot|must name)|^nothing to change|^file_path |^name must|^after is not/
// What is wrong with a definition is told by field, and documented in words.
const MALFORMED_FLAT = ['INVALID_REQUEST']
const MALFORMED_ADMIN = ['invalid_request', 'invalid_field']
const EXPLAINED_BUILDER = /^cursor |^snapshot must be|^workflow (must be|has no nodes)/
const EXPLAINED_DEPLOY = /^after |^min and max must be|^give one change/
const EXPLAINED_ADMIN =
  /^weights (or a|names|cannot|are for a)|^workflow (needs|has no|is no|must be a graph)|^not_before (must be in|is too far)|^move needs|^only_waiting is for|^priority must be given|^filter\.like must be the id|^name (must (be left out|name the)|names no pool)|^tier must be one of|^value must |^time_zone must |^(limit_usd|raise\.usd) must be more|^raise\.until must|^name cannot be added|^id is taken|names no account|not metered|^tz must be the name of|^(from|to) must (be a date|lie before)|^a period has at most|out of bounds|lie in the future|is not a valid pair of metadata|metadata filters are allowed/

export async function startServiceUnderTest(kind: Kind): Promise<ServiceUnderTest> {
  const engine = createFakeEngine()
  const isLocal = kind.startsWith('local')
  const settings: Record<string, string> = {
    kind: isLocal ? 'local' : kind,
    adminToken: ADMIN_TOKEN,
    maxUpload: '1MiB',
    webhookPrivateNetwork: 'true',
    builds: 'all',
  }
  if (kind === 'local with a token') settings['token'] = TOKEN
  const service = await startTestApp({
    settings,
    overrides: { engine, models: { providers: [createFakeProvider()], models: MODELS }, releases: RELEASES },
  })
  const { url } = service
  const admin = (path: string, body: object) =>
    send(url, `/admin/v1${path}`, { Authorization: `Bearer ${ADMIN_TOKEN}` }, body)
  const key = isLocal ? (kind === 'local' ? null : TOKEN) : await openAccount(admin, 'caller')
  const headers: Record<string, string> = key === null ? {} : { Authorization: `Bearer ${key}` }
  const known = await fillIn(url, headers)
  const built = await fillBuilds(url, headers)
  const engines = await send(url, '/admin/v1/engines', { Authorization: `Bearer ${ADMIN_TOKEN}` })
  const engineIds = (engines.json.engines as { readonly id: string }[]).map(({ id }) => id)
  const adminKnown: KnownValues = isLocal ? { id: engineIds } : await fillAdmin(admin, engineIds)
  return {
    url,
    engine,
    surfaces: [
      {
        name: 'jobs-v2',
        documentPath: '/api/v2/openapi.json',
        headers,
        known,
        errorSchema: 'ErrorEnvelope',
        isMalformed: ({ status, json }) =>
          status !== 416 && MALFORMED_JOBS.includes(json?.error?.code) && !EXPLAINED_JOBS.test(json.error.message),
      },
      {
        name: 'router-v2',
        documentPath: '/v2/models/openapi.json',
        headers,
        known,
        errorSchema: 'RouterErrorResponse',
        isMalformed: ({ status, json }) =>
          status === 400 && json?.error_type === 'invalid_input' && !/^cursor /.test(json.detail),
      },
      {
        name: 'legacy-v1',
        documentPath: '/api/openapi.json',
        headers,
        known,
        errorSchema: 'Error',
        isMalformed: ({ status, json }) =>
          status === 400 &&
          (json?.error?.type === undefined
            ? json?.code !== 'UNSUPPORTED_SOURCE' && !EXPLAINED_LEGACY.test(json?.message ?? '')
            : MALFORMED_PROMPT.includes(json.error.type) && !/in use already/.test(json.error.message)),
      },
      {
        name: 'builder-v1',
        documentPath: '/builder/v1/openapi.json',
        headers,
        known: built,
        errorSchema: 'Problem',
        isMalformed: ({ json }) => MALFORMED_FLAT.includes(json?.error) && !EXPLAINED_BUILDER.test(json.message),
      },
      {
        name: 'deploy-v1',
        documentPath: '/deploy/v1/openapi.json',
        headers,
        known: { ...built, id: await fillDeployments(url, headers) },
        errorSchema: 'Error',
        isMalformed: ({ json }) => MALFORMED_FLAT.includes(json?.error) && !EXPLAINED_DEPLOY.test(json.message),
      },
      {
        name: 'admin',
        documentPath: '/admin/v1/openapi.json',
        headers: { Authorization: `Bearer ${ADMIN_TOKEN}` },
        known: adminKnown,
        errorSchema: 'Error',
        isMalformed: ({ json }) =>
          MALFORMED_ADMIN.includes(json?.error?.type) && !EXPLAINED_ADMIN.test(json.error.message),
      },
    ],
    async [Symbol.asyncDispose]() {
      engine.release()
      await service[Symbol.asyncDispose]()
    },
  }
}

function send(url: string, path: string, headers: Readonly<Record<string, string>>, body?: object): Promise<Answer> {
  const text = body === undefined ? undefined : JSON.stringify(body)
  return call(url, path, { method: body === undefined ? 'GET' : 'POST', headers, body: text })
}

type Admin = (path: string, body: object) => Promise<Answer>

async function openAccount(admin: Admin, id: string): Promise<string> {
  const limits = {
    creditFloorMicros: null,
    requestsPerMinute: null,
    concurrentJobs: 10,
    queuedJobs: 1000,
    routerConcurrency: 50,
  }
  const made = await admin('/accounts', { id, limits })
  assert.equal(made.status, 201, made.text)
  return (await admin(`/accounts/${id}/keys`, {})).json.text as string
}

/** An ended job with an output, a file that was uploaded, and a finished request to a model. */
async function fillIn(url: string, headers: Readonly<Record<string, string>>): Promise<KnownValues> {
  const made = await send(url, '/api/v2/jobs', headers, { workflow: GRAPHS[0], metadata: { a: 'b' } })
  assert.equal(made.status, 201, made.text)
  const jobId = made.json.id as string
  await send(url, `/api/v2/jobs/${jobId}/events`, headers)
  const { json: job } = await send(url, `/api/v2/jobs/${jobId}`, headers)
  const output = job.outputs[0]
  const request = await send(url, '/v2/models/fake/direct/requests', headers, { prompt: 'x' })
  assert.equal(request.status, 201, request.text)
  for (const file of FILES) await send(url, `/api/userdata/${encodeURIComponent(file)}`, headers, {})
  const picture = { filename: output.name, subfolder: '', type: 'output' }
  return {
    id: [jobId, output.id, jobId.slice(0, 8)],
    hash: [output.hash],
    workflow: GRAPHS,
    prompt: GRAPHS,
    request_id: [request.json.request_id],
    provider: ['fake'],
    model: ['direct', 'direct', 'direct', 'polled', 'strict', 'old'],
    model_provider: ['default'],
    filename: [output.name],
    original_ref: [JSON.stringify(picture)],
    folder: ['checkpoints', 'output', 'input', 'temp'],
    classType: GRAPHS.map((graph) => Object.values(graph)[0].class_type),
    file: FILES,
    file_path: ['picture.png'],
    content_type: ['image/png'],
    dest: ['moved.json'],
    dir: ['folder'],
    job_ids: [[jobId]],
    delete: [[jobId]],
    prompt_id: [jobId],
    'If-None-Match': ['"x"'],
  }
}

/** Can be deployed, and is on no machine: no engine of it is started. */
const RELEASE = 'rel-0123456789abcdef01234567'
const RELEASES: ReleasesHere = {
  source: {
    find: async (_, id) =>
      id === RELEASE ? { id, buildId: 'bld-1', version: 1, whyNot: () => null, sizeBytes: null } : null,
  },
  find: async () => null,
  bring: async () => ({ place: 'gone' as const, reason: 'no engine is started here' }),
  mayDeploy: () => true,
  targets: [{ os: 'linux', gpu: 'cpu' }],
}
const CPU = { gpuClass: 'cpu', region: 'local' }

/** A build with a release, and a file that was announced. */
async function fillBuilds(url: string, headers: Readonly<Record<string, string>>): Promise<KnownValues> {
  const definition = { baseComfyVersion: 'v0.3.40' }
  const build = await send(url, '/builder/v1/builds', headers, { name: 'studio', definition })
  assert.equal(build.status, 201, build.text)
  const targets = [{ os: 'linux', gpu: 'cpu' }]
  const release = await send(url, `/builder/v1/builds/${build.json.id}/releases`, headers, { targets })
  const file = { kind: 'model', filename: 'a.safetensors', sha256: '0'.repeat(64), sizeBytes: 7 }
  const { json: blob } = await send(url, '/builder/v1/blobs', headers, file)
  return {
    id: [build.json.id, release.json.releaseId, blob.blobId],
    definition: [definition, {}],
    targets: [targets],
    kind: ['model', 'node_zip'],
    os: ['linux'],
    gpu: ['cpu'],
    releaseId: [RELEASE],
    gpuClass: [CPU.gpuClass],
    region: [CPU.region],
    computeConfig: [{ ...CPU, min: 0, max: 1 }],
    baseRevision: [1],
  }
}

async function fillDeployments(url: string, headers: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const asked = { releaseId: RELEASE, computeConfig: { ...CPU, min: 0, max: 1 }, name: 'live' }
  const made = await send(url, '/deploy/v1/deployments', headers, asked)
  assert.equal(made.status, 201, made.text)
  return [made.json.id as string]
}

async function fillAdmin(admin: Admin, engineIds: readonly string[]): Promise<KnownValues> {
  await openAccount(admin, 'subject')
  const key = await admin('/accounts/subject/keys', {})
  const deployment = await admin('/deployments', { id: 'one', workers: 1 })
  assert.equal(deployment.status, 201, deployment.text)
  return {
    id: ['subject', 'one', key.json.id, ...engineIds],
    account_id: ['subject'],
    hold_id: ['no-such-hold'],
    tier: ['free'],
  }
}
