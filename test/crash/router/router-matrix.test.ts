/** Real rules of providers, cut off at every step: one generation, one charge, and the result wherever it can be had. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { addPaidAccount } from '../../support/app/paid-account.ts'
import type { Answer } from '../../support/clients/call.ts'
import { RouterClient, refusedWith } from '../../support/clients/router-client.ts'
import { bflFake } from '../../support/providers/fake-providers/bfl.ts'
import { openaiFake } from '../../support/providers/fake-providers/direct.ts'
import {
  type FakeProvider,
  type FakeRequest,
  startFakeProvider,
} from '../../support/providers/fake-providers/fake-card.ts'
import { klingFake } from '../../support/providers/fake-providers/kling.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { ALL_CUTS, type Cut, modelOf } from './matrix-cases.ts'

const CHILD = fileURLToPath(new URL('./matrix-child.ts', import.meta.url))
const CREDIT = 100_000_000
const isQueued = ({ shape }: Cut) => shape.startsWith('queued')

class Matrix implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack()
  readonly #keys = new Map<string, string>()
  readonly #tasks = new Map<string, string>()
  readonly #reached = new Set<string>()
  readonly #all = Promise.withResolvers<void>()
  dataDir = ''
  bfl!: FakeProvider
  openai!: FakeProvider
  kling!: FakeProvider

  static async open(): Promise<Matrix> {
    const matrix = new Matrix()
    matrix.dataDir = await mkdtemp(join(tmpdir(), 'atelier-crash-'))
    matrix.#stack.defer(() => rm(matrix.dataDir, { recursive: true, force: true }))
    matrix.bfl = matrix.#stack.use(await startFakeProvider(bflFake))
    matrix.openai = matrix.#stack.use(await startFakeProvider(openaiFake))
    matrix.kling = matrix.#stack.use(await startFakeProvider(klingFake))
    for (const fake of matrix.fakes) fake.pendingPolls = 0
    for (const id of ['payer', 'owner']) {
      const { key } = await addPaidAccount(matrix.dataDir, {
        id,
        micros: CREDIT,
        overrides: { routerConcurrency: 100 },
      })
      matrix.#keys.set(id, key)
    }
    const settings = {
      bfl: { key: bflFake.key, base_url: matrix.bfl.baseUrl, accounts: { owner: bflFake.key } },
      kling: { key: klingFake.key, base_url: matrix.kling.baseUrl },
      openai: { key: openaiFake.key, base_url: matrix.openai.baseUrl },
      '*': { media_hosts: ['pictures.example'] },
    }
    await writeFile(join(matrix.dataDir, 'providers.json'), JSON.stringify(settings))
    return matrix
  }

  async start(mode: 'cut' | 'whole'): Promise<{ readonly child: ChildProcess; readonly url: string }> {
    const env = { PATH: process.env['PATH'] ?? '' }
    const child = fork(CHILD, [this.dataDir, mode], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#stack.defer(() => void child.kill('SIGKILL'))
    const [{ url }] = (await once(child, 'message')) as [{ url: string }]
    child.on('message', ({ reached }: { reached: string }) => this.#reach(reached))
    return { child, url }
  }

  get fakes(): readonly FakeProvider[] {
    return [this.bfl, this.kling, this.openai]
  }

  /** Resolves when every call stands at its step. */
  get allStand(): Promise<void> {
    return this.#all.promise
  }

  #reach(name: string): void {
    this.#reached.add(name)
    if (this.#reached.size === ALL_CUTS.length) this.#all.resolve()
  }

  /** The fakes hold what belongs to a call that is to be cut at their side. */
  holdAnswers(): void {
    for (const fake of this.fakes) {
      fake.hold = async (request, { json }) => {
        const id = (json as { id?: string } | undefined)?.id
        const prompt = promptOf(request)
        if (prompt !== null && id !== undefined && request.method === 'POST') this.#tasks.set(id, prompt)
        const cut = ALL_CUTS.find(({ name, step }) => step === stepOf(request) && name === this.#nameOf(request))
        if (cut === undefined) return
        this.#reach(cut.name)
        await new Promise(() => {})
      }
    }
  }

  letAnswersGo(): void {
    for (const fake of this.fakes) fake.hold = null
  }

  #nameOf(request: FakeRequest): string | null {
    const asset = /^\/assets\/(.+)\.(jpeg|png)$/.exec(request.path)?.[1]
    if (asset !== undefined) return this.#tasks.get(asset) ?? decodeURIComponent(asset)
    return promptOf(request) ?? this.#tasks.get(request.query.get('id') ?? '') ?? null
  }

  send(url: string, cut: Cut): Promise<Answer> {
    const client = this.clientOf(url, cut)
    const picture = `http://pictures.example:${this.openai.port}/assets/${encodeURIComponent(cut.name)}.png`
    const body = { prompt: cut.name, ...(cut.step === 'its picture is fetched' ? { image: picture } : {}) }
    const path = `/v2/models/${modelOf(cut)}${isQueued(cut) ? '/requests' : ''}`
    return client.post(path, body, { key: cut.name })
  }

  clientOf(url: string, { shape }: Cut): RouterClient {
    return new RouterClient(url, { 'x-api-key': this.#keys.get(shape === 'with own key' ? 'owner' : 'payer') ?? '' })
  }

  /** How many generations the providers made of this call. */
  made({ name }: Cut): number {
    return this.fakes
      .flatMap(({ requests }) => requests)
      .filter((request) => request.method === 'POST' && promptOf(request) === name).length
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync()
  }
}

/** As JSON or as a field of a form. */
function promptOf({ json, raw }: FakeRequest): string | null {
  if (typeof json?.['prompt'] === 'string') return json['prompt']
  return /name="prompt"\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]*)/.exec(raw.toString('latin1'))?.[1] ?? null
}

function stepOf({ method, path, headers }: FakeRequest): string {
  if (method === 'POST') return 'the provider has it'
  if (headers.host?.startsWith('pictures.example')) return 'its picture is fetched'
  return path.startsWith('/assets/') ? 'its result is copied' : 'while it is polled'
}

/** The answer of the same key, for a queued request what it led to. */
async function ask(matrix: Matrix, url: string, cut: Cut): Promise<Answer> {
  const answer = await matrix.send(url, cut)
  if (!isQueued(cut)) return answer
  assert.deepEqual([answer.status, answer.headers['idempotent-replayed']], [201, 'true'], cut.name)
  const client = matrix.clientOf(url, cut)
  return waitUntil(async () => {
    const read = await client.call(new URL(answer.json.response_url).pathname)
    return read.status === 202 ? null : read
  })
}

async function check(matrix: Matrix, url: string, cut: Cut): Promise<void> {
  const answer = await ask(matrix, url, cut)
  assert.equal(matrix.made(cut), 1, `${cut.name}: ${answer.text}`)
  if (cut.end === 'result') {
    assert.equal(answer.status, 200, `${cut.name}: ${answer.text}`)
    // Its addresses are the provider's own and die, so that it is told once.
    if (cut.shape === 'found again') return
    const again = await ask(matrix, url, cut)
    assert.deepEqual(again.bytes, answer.bytes, cut.name)
    return
  }
  if (isQueued(cut)) refusedWith(answer, 502, 'provider_error')
  else refusedWith(answer, 409, 'invalid_input')
  assert.match(answer.json.detail, /not known/, cut.name)
  assert.equal(answer.headers['retry-after'], undefined, cut.name)
}

test('wherever a call is cut off, one generation is made, one charge at most, and a lost task is reported as unknown', async () => {
  await using matrix = await Matrix.open()
  matrix.holdAnswers()
  const first = await matrix.start('cut')
  for (const cut of ALL_CUTS) void matrix.send(first.url, cut).catch(() => {})
  await matrix.allStand
  const died = once(first.child, 'exit')
  first.child.kill('SIGKILL')
  await died
  matrix.letAnswersGo()
  const { child, url } = await matrix.start('whole')
  await Promise.all(ALL_CUTS.map((cut) => check(matrix, url, cut)))
  const left = once(child, 'exit')
  child.send('stop')
  await left
  await using store = await openSqliteStore({ directory: matrix.dataDir })
  const paid = ALL_CUTS.filter(({ shape, end }) => end === 'result' && shape !== 'with own key')
  const charges = await store.ledger.entries('payer', { limit: 100, before: null, kinds: ['settle'] })
  assert.equal(charges.length, paid.length)
  assert.equal(new Set(charges.map(({ memo }) => memo)).size, paid.length)
  assert.equal((await store.ledger.balance('payer'))?.held, 0)
  assert.deepEqual(await store.ledger.balance('owner').then((b) => [b?.available, b?.held]), [CREDIT, 0])
  assert.deepEqual((await store.ledger.check()).faults, [])
})
