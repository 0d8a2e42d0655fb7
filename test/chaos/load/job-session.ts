/** One client's job, from its submission over one of the APIs to the bytes of its output. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import type { SeededRandom } from '../../support/seeded-random.ts'
import type { AccountSocket } from './account-socket.ts'
import { type Answer, type Client, TERMINAL } from './client.ts'
import { followStream } from './follow-stream.ts'
import type { JobPath } from './told.ts'

export interface JobParts {
  readonly client: Client
  readonly random: SeededRandom
  readonly deployments: readonly string[]
  /** Whether engines with the nodes of the fake server run the jobs; otherwise the built-in engine does. */
  readonly hasEngines: boolean
  readonly socket: AccountSocket
  /** An upload of the account that may be used as an input. */
  readonly anyAsset: () => string | null
}

interface Submitted {
  readonly id: string
  readonly prefix: string
  readonly color: number | null
}

const CANCEL_SHARE = 0.06
const REPLAY_SHARE = 0.08
const INPUT_SHARE = 0.1
/** The only ways in which one of these jobs may fail: too many of its workers died. */
const EXCUSED: ReadonlySet<string> = new Set(['worker_lost'])

export async function runJobSession(parts: JobParts): Promise<void> {
  const { client, random, socket } = parts
  const path = pickPath(parts)
  const isHeard = path === 'v1' && socket.isOpen()
  const submitted = await submit(path, parts)
  if (submitted === null) return
  const { id, prefix } = submitted
  const url = `${prefix}/api/v2/jobs/${id}`
  const canceled =
    random.next() < CANCEL_SHARE ? cancelSoon(client, url, { id, afterMs: random.between(0, 1500) }) : null
  if (isHeard) await socket.hear(id, () => readJob(client, url, id))
  else if (random.next() < 0.45) await followStream(client, url, id)
  else await poll(client, url, random)
  await canceled
  await checkEnd(parts, submitted, url)
}

function pickPath({ random, deployments }: JobParts): JobPath {
  const drawn = random.next()
  if (drawn < 0.2) return 'v1'
  return drawn < 0.4 && deployments.length > 0 ? 'deployment' : 'v2'
}

async function submit(path: JobPath, parts: JobParts): Promise<Submitted | null> {
  const { client, random, deployments, hasEngines, anyAsset } = parts
  const color = random.between(0, 1 << 24)
  // Uploads are no pictures; the fake engines do not mind.
  const asset = path === 'v1' || !hasEngines || random.next() > INPUT_SHARE ? null : anyAsset()
  const workflow = asset === null ? pictureGraph(color, hasEngines, random) : inputGraph(asset)
  const isExact = hasEngines && asset === null
  if (path === 'v1') return submitPrompt(client, workflow, isExact ? color : null)
  const prefix = path === 'deployment' ? `/deployment/${random.pick(deployments)}` : ''
  const key = randomUUID()
  const init = {
    method: 'POST',
    headers: { 'idempotency-key': key },
    body: JSON.stringify({ workflow, metadata: { label: key } }),
  }
  const id = toJobId(await client.ask(`${prefix}/api/v2/jobs`, init))
  if (id === null) return null
  if (id instanceof Error) {
    client.flaw('contract', `a submit was refused: ${id.message}`)
    return null
  }
  const told = { id, prefix, color: isExact ? color : null }
  client.tell({ what: 'job', id, account: client.account.id, path, label: key, color: told.color })
  if (random.next() < REPLAY_SHARE) {
    const again = toJobId(await client.ask(`${prefix}/api/v2/jobs`, init))
    if (again !== id) client.flaw('doubled', `the key of job ${id} now stands for ${again}`, id)
  }
  return told
}

/** null: the input is gone, which the client may have asked for itself. */
function toJobId({ status, json }: Answer): string | Error | null {
  if (status === 201) return json.id
  const { code, details } = json?.error ?? {}
  if (code === 'idempotency_key_reuse' && details?.job_id) return details.job_id
  if (status === 422 && /asset|input|file/i.test(JSON.stringify(json))) return null
  return new Error(`${status} ${JSON.stringify(json)}`)
}

/** A prompt has no idempotency key: one whose answer was lost may have made a job that nobody was told of. */
async function submitPrompt(client: Client, workflow: object, color: number | null): Promise<Submitted | null> {
  const body = JSON.stringify({ prompt: workflow, client_id: 'chaos' })
  const answer = await client.ask('/api/prompt', { method: 'POST', body })
  if (answer.status !== 200) {
    client.flaw('contract', `a prompt was refused: ${answer.status} ${JSON.stringify(answer.json)}`)
    return null
  }
  const id = answer.json.prompt_id as string
  client.tell({ what: 'job', id, account: client.account.id, path: 'v1', label: null, color })
  return { id, prefix: '', color }
}

interface Cancel {
  readonly id: string
  readonly afterMs: number
}

async function cancelSoon(client: Client, url: string, { id, afterMs }: Cancel): Promise<void> {
  await pause(afterMs)
  const answer = await client.ask(`${url}/cancel`, { method: 'POST' })
  if (answer.status === 200) client.tell({ what: 'cancel', id, status: answer.json.status })
  else client.flaw('lost', `the cancel of job ${id} answers ${answer.status} ${JSON.stringify(answer.json)}`, id)
}

async function poll(client: Client, url: string, random: SeededRandom): Promise<void> {
  for (;;) {
    const answer = await client.ask(url)
    if (answer.status !== 200 || TERMINAL.has(answer.json.status)) return
    await pause(random.between(400, 1200))
  }
}

async function readJob(client: Client, url: string, id: string): Promise<Answer['json'] | null> {
  const answer = await client.ask(url)
  if (answer.status === 200) return answer.json
  client.flaw('lost', `job ${id} answers ${answer.status} ${JSON.stringify(answer.json)}`, id)
  return null
}

async function checkEnd({ client }: JobParts, { id, prefix, color }: Submitted, url: string): Promise<void> {
  const job = await readJob(client, url, id)
  if (job === null) return
  if (!TERMINAL.has(job.status))
    return client.flaw('doubled', `job ${id} was told to have ended, and is ${job.status}`, id)
  client.tell({ what: 'ended', id, end: toEnd(job), error: job.error?.code ?? null })
  if (job.status === 'failed' && !EXCUSED.has(job.error.code))
    client.flaw('lost', `job ${id} failed: ${JSON.stringify(job.error)}`, id)
  if (job.status !== 'succeeded') return
  if (job.outputs.length !== 1) return client.flaw('doubled', `job ${id} has ${job.outputs.length} outputs`, id)
  const answer = await client.ask(`${prefix}/api/v2/assets/${job.outputs[0].id}/content`)
  if (answer.status !== 200) {
    const said = Buffer.from(answer.bytes).toString().slice(0, 300)
    return client.flaw('lost', `the output of job ${id} answers ${answer.status} ${said}`, id)
  }
  const isRight = color === null || Buffer.from(answer.bytes).equals(toPng({ width: 8, height: 8, color }))
  if (!isRight) client.flaw('wrong bytes', `the output of job ${id} is not its picture`, id)
}

/** How a job ended and with what: this must never change. */
export function toEnd(job: { status: string; outputs: readonly { id: string; hash: string }[] }): string {
  return `${job.status} [${job.outputs.map(({ id, hash }) => `${id} ${hash}`).join(', ')}]`
}

function pictureGraph(color: number, hasEngines: boolean, random: SeededRandom): object {
  const empty = { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color } }
  const save = (from: string) => ({ class_type: 'SaveImage', inputs: { images: [from, 0], filename_prefix: 'chaos' } })
  if (!hasEngines) return { '1': empty, '2': save('1') }
  const inputs = { steps: random.between(1, 6), ms: random.between(5, 50), preview: true, image: ['1', 0] }
  return { '1': empty, '2': { class_type: 'DemoSteps', inputs }, '3': save('2') }
}

function inputGraph(assetId: string): object {
  return {
    '1': { class_type: 'LoadImage', inputs: { image: { __type: 'core/ASSET', info: { id: assetId } } } },
    '2': { class_type: 'DemoSteps', inputs: { steps: 2, ms: 20, preview: false, image: ['1', 0] } },
    '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'chaos' } },
  }
}
