import { createUuidV7 } from '../../../../../lib/ids.ts'
import type { IsolationRequest } from '../../../../../test/isolation/surface.ts'
import type { World } from '../../../../../test/isolation/world.ts'
import type { Tenant } from '../../../../../test/support/app/start-shared.ts'
import type { Answer } from '../../../../../test/support/clients/call.ts'
import { waitUntil } from '../../../../../test/support/wait-until.ts'

export interface Named {
  readonly title: string
  readonly foreign: string
  readonly unknown: string
}

export interface ForeignData {
  /** Job ids, and the name that one of the jobs was given. */
  readonly jobs: readonly Named[]
  readonly chosen: Named
  /** Hashes of bytes, as names of files. */
  readonly hashes: readonly Named[]
  /** The id of a saved workflow. */
  readonly saved: Named
  /** Ids of files in the library. */
  readonly assets: readonly Named[]
}

/** Names that the other account uses. The same names with `nobody` in them do not exist. */
export const NAMES = {
  image: 'theirs.png',
  mask: 'clipspace-mask-1.png',
  output: 'theirs-output.png',
  preview: 'theirs-preview.png',
  weights: 'theirs.safetensors',
  file: 'theirs.json',
  setting: 'theirs.setting',
  client: 'theirs-client',
  workflow: 'theirs-workflow',
} as const

export function toUnknown(name: string): string {
  return name.replaceAll('theirs', 'nobody')
}

const BOUNDARY = 'boundary'
const newJobId = createUuidV7(() => Date.now())

export function toForm(path: string, bytes: string, fields: Readonly<Record<string, string>>): IsolationRequest {
  const { fileName = NAMES.image, ...rest } = fields
  const parts = Object.entries(rest).map(
    ([name, value]) => `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const file = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="image"; filename="${fileName}"\r\n\r\n${bytes}\r\n`
  return {
    method: 'POST',
    path,
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
    body: `${parts.join('')}${file}--${BOUNDARY}--\r\n`,
  }
}

export async function createForeignData({ app, other }: World): Promise<ForeignData> {
  const chosen = crypto.randomUUID()
  const send = (graph: object, more: object = {}) => submit(other, graph, more)
  const done = await send(
    {
      '1': { class_type: 'FakeFile', inputs: { filename: NAMES.output, text: 'output' } },
      '2': { class_type: 'FakeFile', inputs: { filename: NAMES.preview, folder: 'temp', text: 'preview' } },
      '3': { class_type: 'FakeLog', inputs: { text: 'printed' } },
    },
    { prompt_id: chosen, workflow_id: NAMES.workflow },
  )
  await untilEnded(app.url, other.key, done)
  const failed = await send({ '1': { class_type: 'FakeFail', inputs: {} } })
  await untilEnded(app.url, other.key, failed)
  const running = await send({ '1': { class_type: 'FakeGate', inputs: {} } }, { client_id: NAMES.client })
  await untilAtNode(other, running)
  const waiting = await send({ '1': { class_type: 'FakeSource', inputs: {} } }, { client_id: NAMES.client })
  const canceled = await send({ '1': { class_type: 'FakeSource', inputs: {} } })
  must(await other.call(`/api/jobs/${canceled}/cancel`, { method: 'POST' }), 200)
  await makeFiles(other)
  const workflow = { name: NAMES.workflow, workflow_json: {}, description: 'theirs' }
  const saved = must(await other.call('/api/workflows', { method: 'POST', body: JSON.stringify(workflow) }), 201).json
    .id
  const { json } = await other.call(`/api/jobs/${done}/assets`)
  const jobs = { done, failed, running, waiting, canceled }
  return {
    jobs: Object.entries(jobs).map(([state, id]) => ({ title: `a ${state} job`, foreign: id, unknown: newJobId() })),
    chosen: { title: 'the name of a job', foreign: chosen, unknown: crypto.randomUUID() },
    hashes: [{ title: 'bytes', foreign: json.assets[0].hash, unknown: `blake3:${'5'.repeat(64)}` }],
    saved: { title: 'a saved workflow', foreign: saved, unknown: crypto.randomUUID() },
    assets: await findAssets(other),
  }
}

async function findAssets(other: Tenant): Promise<readonly Named[]> {
  const { json } = must(await other.call('/api/assets'), 200)
  return json.assets.map(({ id, tags }: { readonly id: string; readonly tags: readonly string[] }) => ({
    ...{ title: `a file of ${tags[0]}`, foreign: id, unknown: crypto.randomUUID() },
  }))
}

async function makeFiles(other: Tenant): Promise<void> {
  const image = toForm('/upload/image', 'bytes of the other', {})
  must(await other.call(image.path, image), 200)
  const layer = toForm('/upload/image', 'a mask of the other', { fileName: NAMES.mask })
  must(await other.call(layer.path, layer), 200)
  must(await other.call(`/userdata/${NAMES.file}`, { method: 'POST', body: '{}' }), 200)
  must(await other.call('/settings', { method: 'POST', body: JSON.stringify({ [NAMES.setting]: 1 }) }), 200)
  // The account itself finds all of it.
  const paths = [
    `/view?filename=${NAMES.image}&type=input`,
    `/view?filename=${NAMES.output}`,
    `/view?filename=${NAMES.preview}&type=temp`,
  ]
  for (const path of paths) must(await other.call(path), 302)
}

async function submit(tenant: Tenant, prompt: object, more: object): Promise<string> {
  const answer = await tenant.call('/prompt', { method: 'POST', body: JSON.stringify({ prompt, ...more }) })
  return must(answer, 200).json.prompt_id
}

/** The stream of a job ends with it. */
export async function untilEnded(url: string, key: string, jobId: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}` }
  await (await fetch(`${url}/api/v2/jobs/${jobId}/events`, { headers })).text()
}

/** From then on the job stays as it is, until a test changes it. */
async function untilAtNode(tenant: Tenant, jobId: string): Promise<void> {
  await waitUntil(async () => (await tenant.call(`/api/v2/jobs/${jobId}`)).json.progress?.current_node != null)
}

function must(answer: Answer, status: number): Answer {
  if (answer.status !== status) throw new Error(`${answer.status} ${answer.text}`)
  return answer
}
