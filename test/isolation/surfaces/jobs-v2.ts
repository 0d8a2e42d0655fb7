/** The operations of the Jobs API, each asked for what another account owns. */
import { atDeployments } from '../at-deployments.ts'
import { type Operation, readOperations, verbsOf } from '../contract.ts'
import type { IsolationCase, IsolationRequest, IsolationSurface } from '../surface.ts'
import type { World } from '../world.ts'
import { makeThings, type Named, newJobId, type Things, TUS, upload } from './jobs-v2-things.ts'

const SPEC = 'spec/jobs-v2.openapi.json'
const API = '/api/v2'

export const jobsV2: IsolationSurface = {
  name: 'jobs-v2',
  spec: SPEC,
  // A webhook and an upload are made of what their caller says, and the common secret is the caller's own.
  harmless: [
    ...['getHealth', 'convertWorkflow', 'createWebhook', 'getWebhookSecret', 'createUpload', 'getUploadProtocol'],
    // A proposal is made of what its caller says.
    'previewEndpoint',
    // A key is its account's alone, under the name of its provider.
    ...['putProviderKey', 'createBudget', 'createSchedule'],
    // The queue of an account is its own, and named by no one.
    ...['getQueue', 'pauseQueue', 'resumeQueue'],
    // Refused to every account: weights are the operator's to change.
    ...['beginWeightUpload', 'listWeightUploads', 'deleteWeight'],
  ],
  lists: [
    { operation: 'listJobs', path: `${API}/jobs` },
    // Which engines have which files is the same for everybody who may use them.
    { operation: 'listWeights', path: `${API}/weights` },
    { operation: 'getOpenapi', path: `${API}/openapi.json` },
    { operation: 'listWebhooks', path: `${API}/webhooks` },
    { operation: 'listBudgets', path: `${API}/budgets` },
    { operation: 'listSchedules', path: `${API}/schedules` },
    { operation: 'listBulkActions', path: `${API}/bulk-actions` },
    { operation: 'getStatement', path: `${API}/statement` },
    { operation: 'listProviderKeys', path: `${API}/provider-keys` },
    { operation: 'listWebhookDeliveries', path: `${API}/webhooks/deliveries` },
    { operation: 'listEndpoints', path: `${API}/endpoints` },
    { operation: 'describeEndpoints', path: `${API}/endpoints/openapi.json` },
    { operation: 'showEndpoints', path: `${API}/endpoints/docs` },
  ],
  async prepare(world) {
    const things = await makeThings(world)
    await saveProviderKey(world)
    const own = {
      budgets: [await makeBudget(world)],
      schedules: [await makeSchedule(world)],
      bulk: [await makeBulk(world)],
    }
    const byPath = readOperations(SPEC).flatMap((operation) => byParameter(operation, { ...things, ...own }))
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

async function saveProviderKey({ other }: World): Promise<void> {
  const body = JSON.stringify({ key: 'sk-of-the-owner-alone' })
  const saved = await other.call(`${API}/provider-keys/openai`, { method: 'PUT', body })
  if (saved.status !== 200) throw new Error(`the key was not saved: ${saved.text}`)
}

async function makeBudget({ other }: World): Promise<Named> {
  const body = JSON.stringify({ name: 'theirs', limit_usd: '1.00', period: 'day' })
  const made = await other.call(`${API}/budgets`, { method: 'POST', body })
  if (made.status !== 201) throw new Error(`the budget was not made: ${made.text}`)
  return { title: 'a budget', foreign: made.json.id, unknown: newJobId() }
}

async function makeSchedule({ other }: World): Promise<Named> {
  const workflow = { '1': { class_type: 'FakeSave', inputs: { text: 'theirs' } } }
  const body = JSON.stringify({ name: 'theirs', cron: '@yearly', workflow })
  const made = await other.call(`${API}/schedules`, { method: 'POST', body })
  if (made.status !== 201) throw new Error(`the schedule was not made: ${made.text}`)
  return { title: 'a schedule', foreign: made.json.id, unknown: newJobId() }
}

/** A download of what they made: it has jobs, and archives. */
async function makeBulk({ other }: World): Promise<Named> {
  const body = JSON.stringify({ action: 'download', filter: {} })
  const made = await other.call(`${API}/bulk-actions`, { method: 'POST', body })
  if (made.status !== 201 || made.json.total === 0) throw new Error(`the bulk action was not made: ${made.text}`)
  return { title: 'a bulk action', foreign: made.json.id, unknown: newJobId() }
}

interface AllThings extends Things {
  readonly budgets: readonly Named[]
  readonly schedules: readonly Named[]
  readonly bulk: readonly Named[]
}

/** Every operation of the contract that has a parameter in its path, with every thing of that kind. */
function byParameter(operation: Operation, things: AllThings): IsolationCase[] {
  const { id, path } = operation
  const [parameter] = /\{\w+\}/.exec(path) ?? []
  if (parameter === undefined) return []
  const kind = parameter === '{hash}' ? things.hashes : kindAt(path, things)
  // Whatever else the path names exists, if the thing itself does.
  const at = (value: string) =>
    path
      .replace(parameter, encodeURIComponent(value))
      .replace('{version}', '1')
      .replace(/\{\w+\}/, newJobId())
  return kind.flatMap(({ title, foreign, unknown }) =>
    verbsOf(operation).map((method) => ({
      operation: id,
      title: `${method} ${path} of ${title}`,
      foreign: { method, path: at(foreign), headers: TUS, ...bodyOf(id) },
      unknown: { method, path: at(unknown), headers: TUS, ...bodyOf(id) },
    })),
  )
}

/** Of operations that look at what they were sent before they look for what it is about. */
const BODIES: Readonly<Record<string, object>> = {
  runEndpoint: { inputs: {} },
  runEndpointBatch: { items: [{}] },
  updateEndpoint: { title: 'mine now' },
  updateBudget: { name: 'mine now' },
  updateSchedule: { name: 'mine now' },
  putEndpointAlias: { version: 1 },
  createEndpointShare: { runs: 1, expires_at: new Date(Date.now() + 3_600_000).toISOString() },
}

function bodyOf(operation: string): Pick<IsolationRequest, 'body'> {
  return operation in BODIES ? { body: JSON.stringify(BODIES[operation]) } : {}
}

/** Of the first its owner has a key. */
const PROVIDERS: readonly Named[] = [{ title: 'a key at a provider', foreign: 'openai', unknown: 'kling' }]

function kindAt(
  path: string,
  { jobs, assets, webhooks, messages, uploads, batches, endpoints, budgets, schedules, bulk }: AllThings,
): readonly Named[] {
  if (path.startsWith(`${API}/endpoints/`)) return endpoints
  if (path.startsWith(`${API}/batches/`)) return batches
  if (path.startsWith(`${API}/uploads/`)) return uploads
  if (path.startsWith(`${API}/webhooks/deliveries/`)) return messages
  if (path.startsWith(`${API}/webhooks/`)) return webhooks
  if (path.startsWith(`${API}/provider-keys/`)) return PROVIDERS
  if (path.startsWith(`${API}/budgets/`)) return budgets
  if (path.startsWith(`${API}/schedules/`)) return schedules
  if (path.startsWith(`${API}/bulk-actions/`)) return bulk
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
  const ofMany = (action: string, about: string | object): IsolationRequest => ({
    method: 'POST',
    path: `${API}/bulk-actions`,
    body: JSON.stringify({
      ...{ action, dry_run: true, ...(action === 'prioritize' && { priority: 5 }) },
      ...(typeof about === 'string' ? { job_ids: [about] } : { filter: about }),
    }),
  })
  const publish = (at: string): IsolationRequest => ({
    method: 'POST',
    path: `${API}/endpoints`,
    body: JSON.stringify({ name: 'mine', file: save, deployment: at }),
  })
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
    pair('publishEndpoint', 'to run on a deployment', publish(deployment), publish(nowhere)),
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
    ...(['cancel', 'rerun', 'prioritize', 'download'] as const).flatMap((action) =>
      jobs.map(({ title, foreign, unknown }) =>
        pair('createBulkAction', `${action} of ${title}`, ofMany(action, foreign), ofMany(action, unknown)),
      ),
    ),
    pair(
      'createBulkAction',
      'what failed as somebody’s job did',
      ofMany('rerun', { like: jobs[3].foreign }),
      ofMany('rerun', { like: jobs[3].unknown }),
    ),
    pair(
      'createBulkAction',
      'a label that somebody uses',
      ofMany('rerun', { 'meta.scene': 'theirs' }),
      ofMany('rerun', { 'meta.scene': 'nobody' }),
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
