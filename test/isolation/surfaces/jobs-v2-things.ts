/** What the other account owns: jobs in every state, uploads, outputs, used keys. */
import { createUuidV7 } from '../../../lib/ids.ts'
import type { Tenant } from '../../support/app/start-shared.ts'
import type { Answer } from '../../support/clients/call.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { IsolationRequest } from '../surface.ts'
import type { World } from '../world.ts'

const API = '/api/v2'

export interface Named {
  readonly title: string
  readonly foreign: string
  readonly unknown: string
}

export interface Things {
  readonly jobs: readonly Named[]
  readonly assets: readonly Named[]
  readonly hashes: readonly Named[]
  readonly webhooks: readonly Named[]
  readonly messages: readonly Named[]
  readonly uploads: readonly Named[]
  readonly batches: readonly Named[]
  readonly endpoints: readonly Named[]
}

// What a request to an upload must say; others do not mind.
export const TUS = { 'tus-resumable': '1.0.0', 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' }

const BOUNDARY = 'boundary'

export function upload(bytes: string, headers: Record<string, string> = {}): IsolationRequest {
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

export const newJobId = createUuidV7(() => Date.now())
export const UNKNOWN_HASH = `blake3:${'5'.repeat(64)}`

export async function makeThings({ app, other, deployment }: World): Promise<Things> {
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
  const file = { '1': { class_type: 'FakeSave', inputs: { text: 'of an endpoint' } } }
  const publish = { method: 'POST', body: JSON.stringify({ name: 'theirs', file }) }
  mustBe(await other.call(`${API}/endpoints`, publish), 201)
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
    endpoints: [named('an endpoint', 'theirs', 'nobodys')],
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
