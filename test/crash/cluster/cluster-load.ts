/**
 * Clients that use every surface of whichever node answers. A request without an answer, or with a 503, is sent again with the same
 * idempotency key to any node, as a client should; so in the end everything that a client wanted is acknowledged, once.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { SeededRandom } from '../../support/seeded-random.ts'
import { sha256 } from '../ledger.ts'
import type { Cluster, ClusterAccount } from './cluster-nodes.ts'

export interface Acknowledged {
  readonly jobs: { readonly id: string; readonly account: ClusterAccount; readonly label: string | null }[]
  readonly assets: { readonly id: string; readonly account: ClusterAccount; readonly sha256: string }[]
  /** Calls of the model that gave a result, with the generation in it. */
  readonly calls: { readonly key: string; readonly account: ClusterAccount; readonly generation: string }[]
  /** Jobs once seen in a terminal state: that must never change. */
  readonly terminal: Map<string, string>
  /** What contradicts something that was acknowledged. */
  readonly flaws: string[]
  /** Refusals that are no promise broken, by their status and code. */
  readonly refused: Map<string, number>
}

export function newAcknowledged(): Acknowledged {
  return { jobs: [], assets: [], calls: [], terminal: new Map(), flaws: [], refused: new Map() }
}

interface LoadOptions {
  readonly cluster: Cluster
  readonly seen: Acknowledged
  readonly random: SeededRandom
  readonly clients: number
  /** Ends when so many jobs are acknowledged; left out: when it is stopped. */
  readonly maxJobs?: number
}

interface Load {
  /** What is under way is finished first. */
  stop(): Promise<void>
  readonly ended: Promise<void>
}

export const TERMINAL: ReadonlySet<string> = new Set(['succeeded', 'failed', 'canceled', 'expired'])
// Jobs that have not been seen to end. Beyond this the clients look after them before they submit more.
const MAX_OPEN = 150
const RETRY_MS = 100
const REQUEST_MS = 60_000
const GIVE_UP_MS = 300_000

export function startClusterLoad({ cluster, seen, random, clients, maxJobs }: LoadOptions): Load {
  const ending = new AbortController()
  const isOver = () => ending.signal.aborted || (maxJobs !== undefined && seen.jobs.length >= maxJobs)
  const client = new ClusterClient(cluster, seen, random)
  async function run(): Promise<void> {
    while (!isOver()) await client.step()
  }
  const ended = Promise.all(Array.from({ length: clients }, run)).then(() => {})
  return {
    ended,
    async stop() {
      ending.abort()
      await ended
    },
  }
}

interface Answer {
  readonly status: number
  readonly json: Json
}

// biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely
type Json = any

export class ClusterClient {
  readonly #cluster: Cluster
  readonly #seen: Acknowledged
  readonly #random: SeededRandom

  constructor(cluster: Cluster, seen: Acknowledged, random: SeededRandom) {
    this.#cluster = cluster
    this.#seen = seen
    this.#random = random
  }

  async step(): Promise<void> {
    const account = this.#random.pick(this.#cluster.accounts)
    const open = this.#seen.jobs.filter(({ id }) => !this.#seen.terminal.has(id))
    if (open.length > MAX_OPEN) {
      const job = this.#random.pick(open)
      if (!TERMINAL.has((await this.readJob(job.account, job.id)).status)) await pause(RETRY_MS)
      return
    }
    const steps = [
      () => this.#submit(account),
      () => this.#submit(account),
      () => this.#prompt(account),
      () => this.#upload(account),
      () => this.#callModel(account),
      () => this.#poll(),
      () => this.#poll(),
      () => this.#cancel(),
    ]
    await this.#random.pick(steps)()
  }

  async #submit(account: ClusterAccount): Promise<void> {
    const key = randomUUID()
    const body = JSON.stringify({ workflow: smallWorkflow(this.#random), metadata: { label: key } })
    const answer = await this.ask(account, '/api/v2/jobs', {
      method: 'POST',
      headers: { 'idempotency-key': key },
      body,
    })
    if (answer.status === 201) this.#seen.jobs.push({ id: answer.json.id, account, label: key })
    else if (answer.json?.error?.code === 'idempotency_key_reuse' && answer.json.error.details?.job_id)
      this.#seen.jobs.push({ id: answer.json.error.details.job_id, account, label: key })
    else this.#refuse('submit', answer)
  }

  /** A prompt has no idempotency key: one whose answer was lost may have made a job that nobody was told of. */
  async #prompt(account: ClusterAccount): Promise<void> {
    const body = JSON.stringify({ prompt: smallWorkflow(this.#random), client_id: 'cluster' })
    const answer = await this.ask(account, '/api/prompt', { method: 'POST', body })
    if (answer.status === 200) this.#seen.jobs.push({ id: answer.json.prompt_id, account, label: null })
    else this.#refuse('prompt', answer)
  }

  async #upload(account: ClusterAccount): Promise<void> {
    const key = randomUUID()
    const bytes = Buffer.alloc(this.#random.between(1, 200_000), this.#random.between(0, 255))
    const makeForm = () => {
      const form = new FormData()
      form.set('content_type', 'application/octet-stream')
      form.set('file_path', `cluster-${key}.bin`)
      form.set('file', new Blob([bytes]), 'cluster.bin')
      return form
    }
    const answer = await this.ask(account, '/api/v2/assets', () => ({
      method: 'POST',
      headers: { 'idempotency-key': key },
      body: makeForm(),
    }))
    const id = answer.json?.id ?? answer.json?.error?.details?.asset_id
    if (id === undefined) this.#refuse('upload', answer)
    else this.#seen.assets.push({ id, account, sha256: sha256(bytes) })
  }

  async #callModel(account: ClusterAccount): Promise<void> {
    const key = randomUUID()
    const answer = await this.ask(account, '/v2/models/crash/paint', {
      method: 'POST',
      headers: { 'idempotency-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: key }),
    })
    if (answer.status === 200) this.#seen.calls.push({ key, account, generation: answer.json.generation })
    else this.#refuse('call', answer)
  }

  async #poll(): Promise<void> {
    if (this.#seen.jobs.length === 0) return
    const job = this.#random.pick(this.#seen.jobs)
    await this.readJob(job.account, job.id)
  }

  async #cancel(): Promise<void> {
    if (this.#seen.jobs.length === 0 || this.#random.next() < 0.6) return
    const { id, account } = this.#random.pick(this.#seen.jobs)
    const answer = await this.ask(account, `/api/v2/jobs/${id}/cancel`, { method: 'POST' })
    if (answer.status === 200) this.#note(answer.json)
    else this.#seen.flaws.push(`the cancel of job ${id} answers ${answer.status} ${JSON.stringify(answer.json)}`)
  }

  /** A job that was acknowledged must be there, and a terminal state must stay what it was. */
  async readJob(account: ClusterAccount, id: string): Promise<Json> {
    const answer = await this.ask(account, `/api/v2/jobs/${id}`)
    if (answer.status === 200) this.#note(answer.json)
    else this.#seen.flaws.push(`job ${id} answers ${answer.status} ${JSON.stringify(answer.json)}`)
    return answer.json
  }

  /** Asks one node after the other until one answers with anything but a 503 or 5xx of a dying process. */
  async ask(account: ClusterAccount, path: string, init: RequestInit | (() => RequestInit) = {}): Promise<Answer> {
    const giveUpAt = performance.now() + GIVE_UP_MS
    for (;;) {
      const answer = await this.askOnce(account, path, typeof init === 'function' ? init() : init)
      if (answer !== null && answer.status !== 503 && answer.status !== 429 && !isUnderWay(answer)) return answer
      if (performance.now() > giveUpAt) throw new Error(`${path} was never answered: ${JSON.stringify(answer)}`)
      await pause(RETRY_MS)
    }
  }

  /** null: no answer. */
  async askOnce(account: ClusterAccount, path: string, init: RequestInit): Promise<Answer | null> {
    const urls = this.#cluster.urls()
    if (urls.length === 0) return null
    const headers = { ...toCredentials(account.key), ...(init.headers as Record<string, string>) }
    try {
      const response = await fetch(this.#random.pick(urls) + path, {
        ...init,
        headers,
        signal: AbortSignal.timeout(REQUEST_MS),
      })
      const text = await response.text()
      const isJson = response.headers.get('content-type')?.includes('json') === true
      if (response.status === 503 && response.headers.get('retry-after') === null)
        this.#seen.flaws.push(`${path} answers 503 without Retry-After: ${text}`)
      return { status: response.status, json: isJson ? JSON.parse(text) : text }
    } catch {
      return null
    }
  }

  #refuse(what: string, { status, json }: Answer): void {
    const word = `${what} ${status} ${json?.error?.code ?? json?.error_type ?? JSON.stringify(json).slice(0, 200)}`
    this.#seen.refused.set(word, (this.#seen.refused.get(word) ?? 0) + 1)
  }

  #note(job: { id: string; status: string; outputs: readonly { id: string; hash: string }[] }): void {
    const before = this.#seen.terminal.get(job.id)
    const now = `${job.status} with outputs [${job.outputs.map(({ id, hash }) => `${id} ${hash}`).join(', ')}]`
    if (before !== undefined && before !== now) this.#seen.flaws.push(`job ${job.id} was ${before}, is ${now}`)
    if (TERMINAL.has(job.status)) this.#seen.terminal.set(job.id, now)
  }
}

/** The three APIs each know one of the two. */
export function toCredentials(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}`, 'x-api-key': key }
}

/** The first try with this key still runs, here or on another node: its result is there a moment later. */
function isUnderWay({ status, json }: Answer): boolean {
  return status === 409 && /running|progress|under way/i.test(JSON.stringify(json))
}

function smallWorkflow(random: SeededRandom): object {
  const side = random.between(8, 64)
  const color = random.between(0, 1 << 24)
  return {
    '1': { class_type: 'EmptyImage', inputs: { width: side, height: side, batch_size: 1, color } },
    '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'cluster' } },
  }
}
