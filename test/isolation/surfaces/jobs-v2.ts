import { createUuidV7 } from '../../../lib/ids.ts'
import type { Tenant } from '../../support/app/start-shared.ts'
import type { Answer } from '../../support/clients/call.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { atDeployments } from '../at-deployments.ts'
import { type Operation, readOperations, verbsOf } from '../contract.ts'
import type { IsolationCase, IsolationRequest, IsolationSurface } from '../surface.ts'
import type { World } from '../world.ts'

const SPEC = 'spec/jobs-v2.openapi.json'
const API = '/api/v2'

interface Named {
  readonly title: string
  readonly foreign: string
  readonly unknown: string
}

interface Things {
  readonly jobs: readonly Named[]
  readonly assets: readonly Named[]
  readonly hashes: readonly Named[]
  readonly webhooks: readonly Named[]
  readonly messages: readonly Named[]
  readonly uploads: readonly Named[]
  readonly batches: readonly Named[]
}

export const jobsV2: IsolationSurface = {
  name: 'jobs-v2',
  spec: SPEC,
  // A webhook and an upload are made of what their caller says, and the common secret is the caller's own.
  harmless: [
    ...['getHealth', 'convertWorkflow', 'createWebhook', 'getWebhookSecret', 'createUpload', 'getUploadProtocol'],
    // Refused to every account: weights are the operator's to change.
    ...['beginWeightUpload', 'listWeightUploads', 'deleteWeight'],
  ],
  lists: [
    { operation: 'listJobs', path: `${API}/jobs` },
    // Which engines have which files is the same for everybody who may use them.
    { operation: 'listWeights', path: `${API}/weights` },
    { operation: 'getOpenapi', path: `${API}/openapi.json` },
    { operation: 'listWebhooks', path: `${API}/webhooks` },
    { operation: 'listWebhookDeliveries', path: `${API}/webhooks/deliveries` },
  ],
  async prepare(world) {
    const things = await makeThings(world)
    const byPath = readOperations(SPEC).flatMap((operation) => byParameter(operation, things))
    const everywhere = byPath.flatMap((each) => [each, ...atDeployments(each, world)])
    const owned = [`${API}/jobs`, ...things.assets.map(({ foreign }) => `${API}/assets/${foreign}`)]
    return { cases: [...everywhere, ...(await byContent(world, things))], owned }
  },
  async settle({ caller }, { status, json }) {
    if (status !== 201) return
    if (json.urls?.events !== undefined) await caller.call(json.urls.events)
    for (const item of json.items ?? []) await caller.call(`${API}/jobs/${item.job_id}/events`)
  },
}

// What a request to an upload must say; others do not mind.
const TUS = { 'tus-resumable': '1.0.0', 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' }

// Every operation of the contract that has a parameter in its path, with every thing of that kind.

function byParameter(operation: Operation, things: Things): IsolationCase[] {
  const { id, path } = operation
  const [parameter] = /\{\w+\}/.exec(path) ?? []
  if (parameter === undefined) return []
  const kind = parameter === '{hash}' ? things.hashes : kindAt(path, things)
  const at = (value: string) => path.replace(parameter, encodeURIComponent(value))
  return kind.flatMap(({ title, foreign, unknown }) =>
    verbsOf(operation).map((method) => ({
      operation: id,
      title: `${method} ${path} of ${title}`,
      foreign: { method, path: at(foreign), headers: TUS },
      unknown: { method, path: at(unknown), headers: TUS },
    })),
  )
}

function kindAt(path: string, { jobs, assets, webhooks, messages, uploads, batches }: Things): readonly Named[] {
  if (path.startsWith(`${API}/batches/`)) return batches
  if (path.startsWith(`${API}/uploads/`)) return uploads
  if (path.startsWith(`${API}/webhooks/deliveries/`)) return messages
  if (path.startsWith(`${API}/webhooks/`)) return webhooks
  return path.startsWith(`${API}/jobs/`) ? jobs : assets
}

// Operations whose bodies, queries and headers could name something.

async function byContent(
  { other, deployment }: World,
  { jobs, assets, hashes, webhooks, messages, batches }: Things,
): Promise<IsolationCase[]> {
  const [hash] = hashes
  const [asset] = assets
  const listed = await other.call(`${API}/jobs?limit=1`)
  const submit = (body: object, headers: Record<string, string> = {}): IsolationRequest => ({
    method: 'POST',
    path: `${API}/jobs`,
    headers,
    body: JSON.stringify(body),
  })
  const validate = (body: object): IsolationRequest => ({ ...submit(body), path: `${API}/jobs/validate` })
  const many = (body: object, headers: Record<string, string> = {}): IsolationRequest => ({
    ...submit({ jobs: [body] }, headers),
    path: `${API}/jobs/batch`,
  })
  const save = { '1': { class_type: 'FakeSave', inputs: { text: 'mine' } } }
  const naming = (id: string) => ({
    '1': { class_type: 'FakeLoad', inputs: { image: { __type: 'core/ASSET', info: { id } } } },
  })
  const byName = (image: string) => ({ '1': { class_type: 'FakeLoad', inputs: { image } } })
  const fromHash = (body: object): IsolationRequest => ({
    method: 'POST',
    path: `${API}/assets/from-hash`,
    body: JSON.stringify(body),
  })
  const list = (query: string): IsolationRequest => ({ method: 'GET', path: `${API}/jobs?${query}` })
  const nowhere = 'x'.repeat(deployment.length)
  const pair = (operation: string, title: string, foreign: IsolationRequest, unknown: IsolationRequest) => ({
    operation,
    title,
    foreign,
    unknown,
  })
  const messagesBy = (query: string): IsolationRequest => ({
    method: 'GET',
    path: `${API}/webhooks/deliveries?${query}`,
  })
  return [
    ...(
      [
        ['webhook_id', webhooks[0]],
        ['job_id', jobs[0]],
        ['before', messages[0]],
      ] as const
    ).map(([name, { foreign, unknown }]) =>
      pair('listWebhookDeliveries', `by ${name}`, messagesBy(`${name}=${foreign}`), messagesBy(`${name}=${unknown}`)),
    ),
    pair(
      'assetFromPath',
      'a file of the machine',
      { method: 'POST', path: `${API}/assets/from-path`, body: JSON.stringify({ path: `/${asset.foreign}` }) },
      { method: 'POST', path: `${API}/assets/from-path`, body: JSON.stringify({ path: `/${asset.unknown}` }) },
    ),
    // Without a bucket nobody can begin one; with one they are sealed for their account (test/domain/assets/direct-upload.test.ts).
    pair(
      'beginDirectUpload',
      'a file path that somebody has',
      direct('', { size_bytes: 10, content_type: 'image/png', file_path: 'theirs.png' }),
      direct('', { size_bytes: 10, content_type: 'image/png', file_path: 'nobody.png' }),
    ),
    ...(['signDirectUploadParts', 'completeDirectUpload', 'abandonDirectUpload'] as const).map((operation) =>
      pair(
        operation,
        'an upload by its id',
        direct(DIRECT_STEPS[operation], { upload_id: asset.foreign, numbers: [1], parts: [{ number: 1, etag: 'x' }] }),
        direct(DIRECT_STEPS[operation], { upload_id: asset.unknown, numbers: [1], parts: [{ number: 1, etag: 'x' }] }),
      ),
    ),
    pair(
      'postJobs',
      'a workflow that names an asset',
      submit({ workflow: naming(asset.foreign) }),
      submit({ workflow: naming(asset.unknown) }),
    ),
    pair(
      'postJobs',
      'a workflow that names an output',
      submit({ workflow: naming(assets[1].foreign) }),
      submit({ workflow: naming(assets[1].unknown) }),
    ),
    pair(
      'postJobs',
      'a workflow that names a hash',
      submit({ workflow: byHash(hash.foreign) }),
      submit({ workflow: byHash(hash.unknown) }),
    ),
    pair(
      'validateJob',
      'a workflow that names an asset',
      validate({ workflow: naming(asset.foreign) }),
      validate({ workflow: naming(asset.unknown) }),
    ),
    pair(
      'validateJob',
      'a workflow that names a hash',
      validate({ workflow: byHash(hash.foreign) }),
      validate({ workflow: byHash(hash.unknown) }),
    ),
    pair(
      'postBatch',
      'a workflow that names an asset',
      many({ workflow: naming(asset.foreign) }),
      many({ workflow: naming(asset.unknown) }),
    ),
    pair(
      'postBatch',
      'an idempotency key that somebody used',
      many({ workflow: save }, { 'idempotency-key': 'batch-of-other' }),
      many({ workflow: save }, { 'idempotency-key': 'batch-of-nobody' }),
    ),
    pair(
      'postJobs',
      'a workflow that names a file',
      submit({ workflow: byName('theirs.png') }),
      submit({ workflow: byName('nobody.png') }),
    ),
    pair(
      'postJobs',
      'an idempotency key that somebody used',
      submit({ workflow: save }, { 'idempotency-key': 'key-of-other' }),
      submit({ workflow: save }, { 'idempotency-key': 'key-of-nobody' }),
    ),
    pair(
      'postJobs',
      'a submit to a deployment',
      { ...submit({ workflow: save }), path: `/deployment/${deployment}${API}/jobs` },
      { ...submit({ workflow: save }), path: `/deployment/${nowhere}${API}/jobs` },
    ),
    pair(
      'assetFromHash',
      'bytes that somebody has',
      fromHash({ hash: hash.foreign }),
      fromHash({ hash: hash.unknown }),
    ),
    pair(
      'assetFromHash',
      'bytes and a path that somebody has',
      fromHash({ hash: hash.foreign, file_path: 'theirs.png' }),
      fromHash({ hash: hash.unknown, file_path: 'theirs.png' }),
    ),
    pair('postAssets', 'bytes that somebody uploaded', upload('bytes-of-the-other'), upload('bytes-of-the-ghost')),
    pair(
      'postAssets',
      'an idempotency key that somebody used',
      upload('bytes-sent-once', { 'idempotency-key': 'upload-of-other' }),
      upload('bytes-sent-late', { 'idempotency-key': 'upload-of-nobody' }),
    ),
    pair(
      'listJobs',
      'labels that somebody uses',
      list('metadata%5Bscene%5D=theirs'),
      list('metadata%5Bscene%5D=nobody'),
    ),
    pair(
      'listJobs',
      'a batch of somebody else',
      list(`batch_id=${batches[0].foreign}`),
      list(`batch_id=${batches[0].unknown}`),
    ),
    pair(
      'listJobs',
      'a cursor of somebody else',
      list(`limit=1&cursor=${listed.json.next_cursor}`),
      list(`limit=1&cursor=${cursorLike(listed.json.next_cursor)}`),
    ),
    pair(
      'listJobs',
      'the list of a deployment',
      { method: 'GET', path: `/deployment/${deployment}${API}/jobs` },
      { method: 'GET', path: `/deployment/${nowhere}${API}/jobs` },
    ),
    pair(
      'cancelJob',
      'a body beside the id',
      { method: 'POST', path: `${API}/jobs/${jobs[0].foreign}/cancel`, body: '{}' },
      { method: 'POST', path: `${API}/jobs/${jobs[0].unknown}/cancel`, body: '{}' },
    ),
    pair(
      'getAssetContent',
      'a range',
      { method: 'GET', path: `${API}/assets/${asset.foreign}/content`, headers: { range: 'bytes=999-' } },
      { method: 'GET', path: `${API}/assets/${asset.unknown}/content`, headers: { range: 'bytes=999-' } },
    ),
  ]
}

const DIRECT_STEPS = {
  signDirectUploadParts: '/parts',
  completeDirectUpload: '/complete',
  abandonDirectUpload: '/abandon',
} as const

function direct(step: string, body: object): IsolationRequest {
  return { method: 'POST', path: `${API}/assets/uploads${step}`, body: JSON.stringify(body) }
}

function byHash(hash: string): object {
  return { '1': { class_type: 'FakeLoad', inputs: { image: { __type: 'core/ASSET', info: { hash } } } } }
}

/** In front of what a cursor says. */
const CURSOR_SEAL_BYTES = 16

/** The same cursor with a job that does not exist. */
function cursorLike(cursor: string): string {
  const bytes = Buffer.from(cursor, 'base64url')
  const [seal, content] = [bytes.subarray(0, CURSOR_SEAL_BYTES), bytes.subarray(CURSOR_SEAL_BYTES)]
  const [filters, createdAt] = JSON.parse(content.toString()) as [string, number]
  return Buffer.concat([seal, Buffer.from(JSON.stringify([filters, createdAt, newJobId()]))]).toString('base64url')
}

const BOUNDARY = 'boundary'

function upload(bytes: string, headers: Record<string, string> = {}): IsolationRequest {
  const field = (name: string, value: string) =>
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const file = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="theirs.png"\r\n\r\n${bytes}\r\n--${BOUNDARY}--\r\n`
  return {
    method: 'POST',
    path: `${API}/assets`,
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}`, ...headers },
    body: `${field('content_type', 'image/png')}${field('file_path', 'theirs.png')}${file}`,
  }
}

// What the other account owns: jobs in every state, uploads, outputs, used keys.

const newJobId = createUuidV7(() => Date.now())
const UNKNOWN_HASH = `blake3:${'5'.repeat(64)}`

async function makeThings({ app, other, deployment }: World): Promise<Things> {
  const done = await run(
    other,
    { '1': { class_type: 'FakeSave', inputs: { text: 'theirs' } } },
    { metadata: { scene: 'theirs' } },
  )
  const failed = await run(other, { '1': { class_type: 'FakeFail', inputs: {} } })
  const deployed = await run(
    other,
    { '1': { class_type: 'FakeSave', inputs: { text: 'deployed' } } },
    {},
    `/deployment/${deployment}`,
  )
  const held = await submitted(
    other,
    { '1': { class_type: 'FakeGate', inputs: {} } },
    { 'idempotency-key': 'key-of-other' },
  )
  await app.engine.untilRuns(4)
  await untilAtNode(other, held)
  const waiting = await submitted(other, { '1': { class_type: 'FakeSave', inputs: { text: 'later' } } })
  const sent = upload('bytes-of-the-other', { 'idempotency-key': 'upload-of-other' })
  const uploaded = await other.call(sent.path, sent)
  const ended = await other.call(`${API}/jobs/${done}`)
  const output = ended.json.outputs[0].id as string
  // Nobody listens there, and nothing must: it is made and named, not reached.
  const add = { method: 'POST', body: JSON.stringify({ url: 'http://127.0.0.1:9/', events: ['job.expired'] }) }
  const webhook = (await other.call(`${API}/webhooks`, add)).json.id as string
  const message = (await other.call(`${API}/webhooks/${webhook}/test`, { method: 'POST' })).json.delivery_id as string
  const about = { 'upload-length': '9', 'upload-metadata': 'filename YQ==' }
  const begun = mustBe(await other.call(`${API}/uploads`, { method: 'POST', headers: { ...TUS, ...about } }), 201)
  const several = { jobs: [{ workflow: { '1': { class_type: 'FakeSave', inputs: { text: 'one of several' } } } }] }
  const together = { method: 'POST', headers: { 'idempotency-key': 'batch-of-other' }, body: JSON.stringify(several) }
  const batch = mustBe(await other.call(`${API}/jobs/batch`, together), 201).json.id as string
  const named = (title: string, foreign: string, unknown: string) => ({ title, foreign, unknown })
  const job = (title: string, id: string) => named(title, id, newJobId())
  return {
    jobs: [
      job('a queued job', waiting),
      job('a running job', held),
      job('a finished job', done),
      job('a failed job', failed),
      job('a deployment’s job', deployed),
    ],
    assets: [
      named('an upload', uploaded.json.id, crypto.randomUUID()),
      named('an output', output, crypto.randomUUID()),
    ],
    webhooks: [named('a webhook', webhook, `whe_${'0'.repeat(32)}`)],
    uploads: [named('an unfinished upload', String(begun.headers.location).slice(-36), crypto.randomUUID())],
    batches: [named('a batch', batch, newJobId())],
    messages: [named('a message', message, `msg_${'0'.repeat(32)}`)],
    hashes: [
      named('uploaded bytes', uploaded.json.hash, UNKNOWN_HASH),
      named('output bytes', ended.json.outputs[0].hash, UNKNOWN_HASH),
    ],
  }
}

async function submitted(tenant: Tenant, workflow: object, headers: Record<string, string> = {}): Promise<string> {
  const answer = await tenant.call(`${API}/jobs`, { method: 'POST', headers, body: JSON.stringify({ workflow }) })
  return mustBe(answer, 201).json.id as string
}

async function run(tenant: Tenant, workflow: object, more: object = {}, prefix = ''): Promise<string> {
  const body = JSON.stringify({ workflow, ...more })
  const { json } = mustBe(await tenant.call(`${prefix}${API}/jobs`, { method: 'POST', body }), 201)
  // The stream ends with the job, and leaves it in memory, where a careless lookup could find it.
  await tenant.call(json.urls.events)
  await tenant.call(json.urls.self)
  return json.id as string
}

/** From then on the job stays as it is, until somebody touches it. */
async function untilAtNode(tenant: Tenant, jobId: string): Promise<void> {
  await waitUntil(async () => (await tenant.call(`${API}/jobs/${jobId}`)).json.progress?.current_node != null)
}

function mustBe(answer: Answer, status: number): Answer {
  if (answer.status !== status) throw new Error(`${answer.status} ${answer.text}`)
  return answer
}
