/**
 * Calls of one model over three providers that fail in every way there is, while processes of the service are killed. Afterwards every
 * key is asked once more, and what the providers made, what was answered and what was charged must agree: no call was made twice, none was
 * charged without a result or at another price than that of who served it, and nothing is left set aside.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { findCompileCache } from '../../support/cli/compile-cache.ts'
import { call } from '../../support/clients/call.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import {
  FAULTS,
  type Fault,
  PAINTER,
  PAINTERS,
  type Painter,
  POLL_FAULTS,
  type PollFault,
  PRICES,
  startPainter,
  writePainters,
} from '../../support/providers/painters.ts'
import { seededRandom } from '../../support/seeded-random.ts'

export interface Storm {
  readonly calls: number
  readonly kills: number
  readonly store: 'sqlite' | 'postgres'
  readonly seed: number
  /** The first provider is away all the time, and the others have no faults. */
  readonly isOneDown?: boolean
  /** No provider goes away for moments. */
  readonly isSteady?: boolean
  readonly report?: (line: string) => void
}

/** Of all prompts. Made twice, and charged without a result, are none: that is what the storm asserts. */
export interface StormCounts {
  /** Answered with a result by the calls themselves, with their tries. */
  readonly first: number
  /** In the end, when each key that had none was sent once more. */
  readonly succeeded: number
  /** By the providers. */
  readonly generations: number
}

interface Ended {
  readonly status: number
  readonly server: string | null
  readonly detail: string
  /** It has begun, and the same key gets it later. */
  readonly isUnderWay?: boolean
}

const CALLERS = 16
const ADMIN = 'admin-token-of-this-storm'
// A third of the calls of each provider meet a fault.
const FAULTY = 1 / 3
const TWICE_EVERY = 8
const GRANT = 1_000_000_000

export async function storm(options: Storm): Promise<StormCounts> {
  const { calls, kills, seed, isOneDown = false, isSteady = false, report = () => {} } = options
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-storm-'))
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  const painters = await Promise.all(
    PAINTERS.map((name) => startPainter(name, faultsOf(options, name), pollFaultsOf(options))),
  )
  for (const painter of painters) stack.use(painter)
  if (isOneDown) await painters[0]?.goAway()
  const service = stack.use(await startService(options, folder, painters))
  const payer = await service.openAccount()
  const ended = new Map<string, Ended>()
  const startedMs = performance.now()
  const callAll = async (caller: number) => {
    for (let index = caller; index < calls; index += CALLERS) {
      const prompt = `call ${index}`
      // Some are sent twice at once, in two processes where there are two.
      const sent = index % TWICE_EVERY === 0 ? [index, index + 1] : [index]
      const told = await Promise.all(sent.map((at) => payer.run(prompt, at)))
      ended.set(prompt, told.find(({ status }) => status === 200) ?? (told[0] as Ended))
    }
  }
  const disturb = async () => {
    for (let done = 0; done < kills; done++) {
      while (ended.size < ((done + 1) * calls) / (kills + 1)) await sleep(10)
      await service.kill(done)
      report(`${done + 1} kills, ${ended.size} calls`)
    }
  }
  const random = seededRandom(seed)
  const flap = async () => {
    while (!isOneDown && !isSteady && ended.size < calls) {
      const painter = painters[Math.floor(random.next() * painters.length)]
      await sleep(300)
      await painter?.goAway()
      await sleep(200)
      await painter?.comeBack()
    }
  }
  await Promise.all([...Array.from({ length: CALLERS }, (_, caller) => callAll(caller)), disturb(), flap()])
  const seconds = Math.round((performance.now() - startedMs) / 1000)
  const first = [...ended.values()].filter(({ status }) => status === 200).length
  // What a kill or a deadline hid is told now: the key never begins anything that may have been begun.
  for (const painter of painters) await painter.comeBack()
  const untold = [...ended].flatMap(([prompt, { status }]) => (status === 200 ? [] : [prompt]))
  const askAll = async () => {
    for (let prompt = untold.pop(); prompt !== undefined; prompt = untold.pop())
      ended.set(prompt, await payer.ask(prompt))
  }
  await Promise.all(Array.from({ length: CALLERS }, askAll))
  await payer.untilNothingIsHeld()
  const counts = check(painters, ended)
  await payer.checkMoney(counts.owed)
  const { succeeded, fallbacks, generations } = counts
  report(
    `${options.store}, ${calls} calls, ${kills} kills, ${seconds} s: ${first} answered, ${succeeded} with a result in the end, ` +
      `${fallbacks} of them by another provider; 0 made twice, 0 charged without a result, the ledger is exact`,
  )
  if (isOneDown) assert.ok(first >= calls * 0.999, `${first} of ${calls} succeeded with one provider away`)
  return { first, succeeded, generations }
}

export function faultsOf({ seed, isOneDown }: Pick<Storm, 'seed' | 'isOneDown'>, name: string) {
  const random = seededRandom(seed + name.length * 1000 + name.charCodeAt(0))
  const faults = FAULTS.filter((fault) => fault !== 'none')
  return (): Fault => {
    if (isOneDown === true || random.next() > FAULTY) return 'none'
    return faults[Math.floor(random.next() * faults.length)] ?? 'none'
  }
}

/** A third of the questions about tasks go wrong, too; one in ten of those tasks ends without a result. */
function pollFaultsOf({ seed, isOneDown }: Storm) {
  const random = seededRandom(seed + 1)
  const passing = POLL_FAULTS.filter((fault) => fault !== 'none' && fault !== 'failed')
  return (): PollFault => {
    if (isOneDown === true || random.next() > FAULTY) return 'none'
    if (random.next() < 0.1) return 'failed'
    return passing[Math.floor(random.next() * passing.length)] ?? 'none'
  }
}

/** What the providers made and what the callers were told, by prompt. */
function check(painters: readonly Painter[], ended: ReadonlyMap<string, Ended>) {
  const counts = { owed: 0, succeeded: 0, fallbacks: 0, generations: 0 }
  for (const [prompt, { status, server, detail }] of ended) {
    const made = painters.map((painter) => painter.made.get(prompt) ?? 0)
    const all = made.reduce((sum, count) => sum + count, 0)
    assert.ok(all <= 1, `${prompt} was made ${all} times (${made.join(', ')}): ${status} ${detail}`)
    counts.generations += all
    if (status !== 200) continue
    const by = PAINTERS.find((name) => name === server)
    assert.ok(by !== undefined, `${prompt} was served by ${server}`)
    assert.equal(made[PAINTERS.indexOf(by)], 1, `${prompt} has a result, and ${by} made none`)
    counts.owed += PRICES[by]
    counts.succeeded += 1
    if (by !== 'north') counts.fallbacks += 1
  }
  return counts
}

async function startService(options: Storm, folder: string, painters: readonly Painter[]) {
  await using opening = new AsyncDisposableStack()
  const addresses = Object.fromEntries(PAINTERS.map((name, index) => [name, painters[index]?.url ?? '']))
  const { catalog, providers } = await writePainters(folder, addresses as Record<(typeof PAINTERS)[number], string>)
  const database = options.store === 'sqlite' ? null : opening.use(await createTestDatabase())
  const env = {
    ...findCompileCache(folder),
    ATELIER_ADMIN_TOKEN: ADMIN,
    ATELIER_PROVIDERS: providers,
    ATELIER_SECRET_KEY: 'ab'.repeat(32),
    ...(database !== null && { ATELIER_DATABASE: database.url }),
  }
  const flags = ['--kind', 'cloud', '--workers', '0', '--catalogs', catalog, '--router-deadline', '4s']
  // Processes of one service share the folder with the bytes.
  const start = () => spawnServer([...flags, '--data-dir', path.join(folder, 'data')], env)
  const servers: SpawnedServer[] = [await start()]
  opening.defer(async () => {
    for (const server of servers) await server.killNow()
  })
  if (options.store === 'postgres') servers.push(await start())
  const urlOf = (index: number) => servers[index % servers.length]?.url ?? ''
  const opened = opening.move()

  const askAdmin = (at: string, body?: object) =>
    call(urlOf(0), `/admin/v1${at}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${ADMIN}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })

  return {
    async kill(round: number) {
      const index = round % servers.length
      await servers[index]?.killNow()
      servers[index] = await start()
    },
    openAccount: () => openPayer(askAdmin, urlOf),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

type AskAdmin = (at: string, body?: object) => ReturnType<typeof call>

async function openPayer(askAdmin: AskAdmin, urlOf: (index: number) => string) {
  const limits = { requestsPerMinute: null, routerConcurrency: 1000, committedSpendMicros: null }
  assert.equal((await askAdmin('/accounts', { id: 'payer', limits })).status, 201)
  assert.equal((await askAdmin('/accounts/payer/grants', { micros: GRANT })).status, 201)
  const { text: key } = (await askAdmin('/accounts/payer/keys', { name: 'storm' })).json as { text: string }

  async function send(prompt: string, index: number): Promise<Ended | null> {
    try {
      const answer = await fetch(`${urlOf(index)}/v2/models/${PAINTER}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'idempotency-key': prompt, 'content-type': 'application/json' },
        body: JSON.stringify({ prompt }),
        signal: AbortSignal.timeout(60_000),
      })
      const text = await answer.text()
      const named = answer.headers.get('x-comfy-router-fallback-provider')
      return {
        status: answer.status,
        server: answer.status === 200 ? (named ?? 'north') : null,
        detail: text.slice(0, 200),
        isUnderWay:
          (answer.status === 504 && answer.headers.has('retry-after')) ||
          (answer.status === 409 && text.includes('concurrency_limit_exceeded')) ||
          // A task that nobody could be asked about for a while goes on all the same.
          text.includes('cannot be asked for its result now'),
      }
    } catch {
      return null
    }
  }

  /** As a client that sends every failure of a server, and every lost connection, again with the same key. */
  async function run(prompt: string, index: number, tries = 4): Promise<Ended> {
    let last: Ended = { status: 0, server: null, detail: 'no answer' }
    for (let done = 0; done < tries; done++) {
      last = (await send(prompt, index + done)) ?? last
      if (last.status > 0 && last.status < 500) return last
      await sleep(100 * 2 ** done)
    }
    return last
  }

  const balance = async () => (await askAdmin('/accounts/payer')).json.balance as Balance

  return {
    run,
    /** Until it is settled, which takes as long as the lease of a process that was killed. */
    async ask(prompt: string): Promise<Ended> {
      for (let done = 0; ; done++) {
        const told = await run(prompt, done, 1)
        if (told.isUnderWay !== true && told.status !== 0 && told.status !== 504) return told
        if (done > 120 || (told.isUnderWay !== true && told.status === 504 && done > 2)) return told
        await sleep(500)
      }
    },
    async untilNothingIsHeld() {
      for (let done = 0; (await balance()).held_micros > 0; done++) {
        assert.ok(done < 300, 'something stays set aside')
        await sleep(500)
      }
    },
    async checkMoney(owed: number) {
      const { available_micros: available, held_micros: held } = await balance()
      assert.deepEqual({ charged: GRANT - available, held }, { charged: owed, held: 0 })
      assert.deepEqual((await askAdmin('/ledger/check')).json.faults, [])
    },
  }
}

interface Balance {
  readonly available_micros: number
  readonly held_micros: number
}
