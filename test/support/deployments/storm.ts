/**
 * Jobs that keep coming while a deployment moves between releases that are being built, and while the service, its builder and its engines
 * are killed; then what became of each. Everything is real but the computation: the command with its builder in a process of its own (or
 * in several, on Postgres), environments made by uv, and the fake ComfyUI, which loads the packs of its release.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { type SpawnedServer, spawnServer } from '../app/spawn-server.ts'
import { packFiles, zipOf } from '../builds/packages.ts'
import { type RunningComfyui, writeRunning } from '../builds/running-comfyui.ts'
import { type Answer, type CallOptions, call } from '../clients/call.ts'
import { createTestDatabase } from '../postgres/test-database.ts'

interface StormPlan {
  readonly jobs: number
  readonly moves: number
  /** Of engines, with kill -9. */
  readonly kills: number
  /** Of a process of the service, with kill -9. */
  readonly restarts: number
  /** Of the process that builds, with kill -9 in the middle of a build. */
  readonly builderKills: number
  /** Builds that cannot be made, in between: they fail with their reason, and what serves goes on. */
  readonly badBuilds: readonly BadBuild[]
  /** More than one: on Postgres. */
  readonly processes: 1 | 2
}

type BadBuild = keyof typeof REASONS

interface StormReport {
  readonly accepted: number
  readonly refused: readonly string[]
  readonly lost: readonly string[]
  readonly misplaced: readonly string[]
  readonly landed: number
  /** From the request until the revision was there. */
  readonly rollbackMs: readonly number[]
  readonly killed: { readonly engines: number; readonly services: number; readonly builders: number }
  readonly builds: number
  readonly byRelease: Readonly<Record<number, number>>
  readonly failed: readonly { readonly fault: BadBuild; readonly reason: string }[]
}

const DONE = 'succeeded'
export const ADMIN_TOKEN = 'admin-token-of-this-test'
export const TARGET = { os: 'linux', gpu: 'cpu' } as const

/** What is told of each bad build. */
const REASONS = {
  import: /^validate: pack storm: its import failed: [\s\S]*nowhere_to_be_found/,
  hash: /sha256/,
  disk: /disk of the builder is full/,
} as const
export const BAD_BUILDS = Object.keys(REASONS) as readonly BadBuild[]
const GIVE_UP_MS = 15 * 60_000

export function assertUnharmed({ refused, lost, misplaced, failed }: StormReport): void {
  assert.deepEqual({ refused, lost, misplaced }, { refused: [], lost: [], misplaced: [] })
  for (const { fault, reason } of failed) assert.match(reason, REASONS[fault])
}

/** A process that was killed is missed after its lease, and its successor starts engines: on a busy machine that takes minutes. */
async function waitUntil<Found>(look: () => Found | Promise<Found>): Promise<Exclude<Found, null | false | undefined>> {
  for (const began = performance.now(); performance.now() - began < GIVE_UP_MS; await sleep(50)) {
    const found = await look()
    if (found) return found as Exclude<Found, null | false | undefined>
  }
  throw new Error(`waited in vain: ${look}`)
}

export async function runStorm(plan: StormPlan): Promise<StormReport> {
  await using house = await openHouse(plan.processes)
  const account = await openStudio(house)
  const { api, cut, versions } = account
  const first = await cut({})
  const { json: made } = await api('POST', '/deploy/v1/deployments', {
    ...{ releaseId: first, computeConfig: { gpuClass: 'cpu', region: 'local', min: 1, max: 2 } },
  })
  const at = `/deploy/v1/deployments/${made.id}`
  const record = async () => (await api('GET', at)).json
  await waitUntil(async () => (await record()).status === 'ready')

  const promised = new Map<string, { readonly text: string; readonly version: number }>()
  const refused: string[] = []
  const rollbackMs: number[] = []
  const failed: { fault: BadBuild; reason: string }[] = []
  const killed = { engines: 0, services: 0, builders: 0 }
  const moves = { done: 0 }

  async function submitAll(): Promise<void> {
    // Some also come when all moves have landed.
    for (let n = 0; n < plan.jobs || moves.done < plan.moves; n++) {
      const text = `job-${n}-end`
      const sent = await api('POST', `/deployment/${made.id}/api/v2/jobs`, { workflow: saying(text) }, `storm-${n}`)
      // It was accepted, and the process was killed before it could say so: its key names the job.
      const known = sent.status === 422 ? sent.json?.error?.details?.job_id : undefined
      const answer = known === undefined ? sent : await api('GET', `/api/v2/jobs/${known}`)
      if (answer.status !== 201 && answer.status !== 200) refused.push(`${n}: ${answer.status} ${answer.text}`)
      else promised.set(answer.json.id as string, { text, version: answer.json.release_version as number })
      // Spread over all moves, however long these take.
      if (n >= ((moves.done + 1) * plan.jobs) / plan.moves) await sleep(50)
    }
  }

  async function moveAll(): Promise<void> {
    for (; moves.done < plan.moves; moves.done++) {
      const { revision, releaseId } = await record()
      const goal = [...versions.keys()].findLast((id) => id !== releaseId)
      const isRollback = goal === undefined || moves.done % 2 === 1
      const from = performance.now()
      const asked =
        isRollback && revision > 1
          ? await api('POST', `${at}/rollback`, { baseRevision: revision })
          : await api('PATCH', at, { baseRevision: revision, releaseId: goal ?? (await cut({})) })
      assert.ok([200, 202, 409].includes(asked.status), asked.text)
      await waitUntil(async () => (await record()).revision > revision)
      if (isRollback) rollbackMs.push(Math.round(performance.now() - from))
    }
  }

  async function buildAll(): Promise<void> {
    for (let n = 0; n < plan.builderKills; n++) {
      await cut({
        async whileBuilding() {
          if (await house.kill(n)) killed.builders++
        },
      })
    }
    for (const fault of plan.badBuilds) failed.push({ fault, reason: await account.cutBad(fault) })
  }

  async function killEngines(): Promise<void> {
    for (let n = 0; n < plan.kills && moves.done < plan.moves; n++) {
      await sleep(700)
      const pid = house.studio
        .pidsOf((await record()).releaseId)
        .filter(isAlive)
        .at(-1)
      if (pid !== undefined && kill(pid)) killed.engines++
    }
  }

  async function killServices(): Promise<void> {
    for (let n = 0; n < plan.restarts; n++) {
      await waitUntil(() => promised.size > ((n + 1) * plan.jobs) / (plan.restarts + 2))
      if (await house.kill(n)) killed.services++
    }
  }

  await Promise.all([submitAll(), moveAll(), buildAll(), killEngines(), killServices()])
  const lost: string[] = []
  for (const job of promised.keys()) {
    const end = await waitUntil(() => findEnd(api, job))
    if (end !== DONE) lost.push(`${job}: ${end}`)
  }
  const numbers = [...versions.values()]
  const byRelease = numbers.map((version) => [
    version,
    [...promised.values()].filter((job) => job.version === version).length,
  ])
  return {
    ...{ accepted: promised.size, refused, lost, misplaced: findMisplaced(promised, house.studio, versions) },
    ...{ landed: ((await record()).revision as number) - 1, rollbackMs, killed, builds: versions.size, failed },
    byRelease: Object.fromEntries(byRelease),
  }
}

interface House extends AsyncDisposable {
  readonly studio: RunningComfyui
  /** Asks a process that answers, again and again while none does, as any client would. */
  ask(at: string, options: CallOptions): Promise<Answer>
  /** Kills one of the processes without warning and starts it again; false: it is just being started. */
  kill(which: number): Promise<boolean>
}

async function openHouse(processes: 1 | 2): Promise<House> {
  await using opening = new AsyncDisposableStack()
  const root = await realpath(await mkdtemp(path.join(tmpdir(), 'storm-')))
  opening.defer(() => rm(root, { recursive: true, force: true, maxRetries: 5 }))
  const database = processes === 1 ? null : opening.use(await createTestDatabase())
  const studio = await writeRunning(root, {
    target: TARGET,
    uv: null,
    more: { max_size: '64MiB', max_account_size: '1GiB' },
  })
  const env = {
    ...{ ATELIER_ADMIN_TOKEN: ADMIN_TOKEN, ATELIER_SECRET_KEY: 'ab'.repeat(32), HOME: root },
    ...(database !== null && { ATELIER_DATABASE: database.url }),
  }
  const flags = [
    ...['--kind', 'cloud', '--data-dir', path.join(root, 'data'), '--builder', studio.builderFile, '--builds', 'ana'],
    ...['--release-engines', '3', '--workers', '1'],
  ]
  const start = () => spawnServer(flags, env)
  const slots: (SpawnedServer | null)[] = []
  for (let n = 0; n < processes; n++) slots.push(await start())
  opening.defer(async () => {
    for (const server of slots) await server?.terminate()
  })
  let turn = 0
  const opened = opening.move()
  return {
    studio,
    async ask(at, options) {
      for (let tries = 0; ; tries++) {
        const server = slots[turn++ % slots.length]
        try {
          if (server === null || server === undefined) throw new Error('no process is up just now')
          const answer = await call(server.url, at, options)
          if (answer.status !== 503 || tries > 1200) return answer
        } catch (error) {
          if (tries > 1200) throw error
        }
        await sleep(100)
      }
    },
    async kill(which) {
      const at = which % slots.length
      const server = slots[at] ?? null
      if (server === null) return false
      slots[at] = null
      await server.killNow()
      slots[at] = await start()
      return true
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

type Api = (method: string, at: string, body?: object, key?: string) => Promise<Answer>

/** An account with one build, of which releases are cut. */
export async function openStudio(house: Pick<House, 'ask'>) {
  const admin = (at: string, body: object) =>
    house.ask(`/admin/v1${at}`, {
      ...{ method: 'POST', body: JSON.stringify(body), headers: { authorization: `Bearer ${ADMIN_TOKEN}` } },
    })
  const limits = { requestsPerMinute: null, concurrentJobs: 8, queuedJobs: 10_000, creditFloorMicros: null }
  const account = await admin('/accounts', { id: 'ana', limits })
  assert.equal(account.status, 201, account.text)
  const key = (await admin('/accounts/ana/keys', {})).json.text as string
  const api: Api = (method, at, body, idempotency) =>
    house.ask(at, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(idempotency !== undefined && { 'idempotency-key': idempotency }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  // Every process hears of an account a moment later than the one that made it.
  const heard = { inTurn: 0 }
  await waitUntil(async () => {
    const { status } = await api('GET', '/builder/v1/builds')
    heard.inTurn = status === 200 ? heard.inTurn + 1 : 0
    return heard.inTurn >= 4
  })
  const { json: build, status, text } = await api('POST', '/builder/v1/builds', { name: 'storm', definition: {} })
  assert.equal(status, 201, text)
  /** Of those that can be deployed, with their numbers; oldest first. */
  const versions = new Map<string, number>()
  let packs = 0

  async function upload(kind: 'model' | 'node_zip', filename: string, bytes: Buffer): Promise<string> {
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const file = { kind, filename, sha256, sizeBytes: bytes.length }
    const { json } = await api('POST', '/builder/v1/blobs', file)
    if (json.uploadUrl === null) return json.blobId
    const { pathname, search } = new URL(json.uploadUrl)
    const put = await house.ask(pathname + search, { method: 'PUT', body: bytes })
    assert.equal(put.status, 200, put.text)
    return json.blobId
  }

  async function release(definition: object, whileBuilding: () => Promise<void> = async () => {}) {
    const change = { definition: { baseComfyVersion: 'v0.3.40', ...definition }, expectedUpdatedAt: null }
    // What one request leaves is what the next one cuts: releases of one build are cut one at a time.
    const saved = await api('PATCH', `/builder/v1/builds/${build.id}`, change)
    assert.equal(saved.status, 200, saved.text)
    const cut = await api('POST', `/builder/v1/builds/${build.id}/releases`, { targets: [TARGET] })
    assert.equal(cut.status, 201, cut.text)
    const read = async () => (await api('GET', `/builder/v1/releases/${cut.json.releaseId}`)).json
    await waitUntil(async () => ['building', 'complete'].includes((await read()).status))
    await whileBuilding()
    return waitUntil(async () => {
      const told = await read()
      return told.status === 'complete' ? told : null
    })
  }

  let last: Promise<unknown> = Promise.resolve()
  /** One after the other. */
  function inTurn<Result>(act: () => Promise<Result>): Promise<Result> {
    const next = last.then(act)
    last = next.catch(() => {})
    return next
  }
  const packOf = async (imports: readonly string[] = []) => {
    const zip = zipOf(packFiles(`StormNode${packs++}`, { imports }))
    return [{ name: 'storm', blobId: await upload('node_zip', 'storm.zip', zip) }]
  }

  return {
    ...{ api, versions, upload, release },
    cut: ({ whileBuilding = async () => {} }: { readonly whileBuilding?: () => Promise<void> }) =>
      inTurn(async () => {
        const told = await release({ customNodes: await packOf() }, whileBuilding)
        assert.equal(told.deployable, true, JSON.stringify(told.artifacts))
        versions.set(told.id, told.version)
        return told.id as string
      }),
    /** Its reason. */
    cutBad: (fault: BadBuild) =>
      inTurn(async () => {
        const model = async (bytes: number, more: object) => ({
          ...{ type: 'checkpoints', filename: `${fault}.safetensors`, ...more },
          blobId: await upload('model', `${fault}.safetensors`, largeModel(bytes)),
        })
        const definitions = {
          import: async () => ({ customNodes: await packOf(['nowhere_to_be_found']) }),
          hash: async () => ({ models: [await model(100, { sha256: '0'.repeat(64) })] }),
          disk: async () => ({ models: [await model(96 * 1024 * 1024, {})] }),
        }
        const told = await release(await definitions[fault](), async () => {})
        assert.equal(told.deployable, false)
        return String(told.artifacts[0].failureReason)
      }),
  }
}

export function largeModel(bytes: number): Buffer {
  const header = Buffer.from(JSON.stringify({ w: { dtype: 'U8', shape: [bytes], data_offsets: [0, bytes] } }))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, header, Buffer.alloc(bytes)])
}

/** A job that says which one it is, in what the release that runs it writes down. */
function saying(text: string) {
  return { '1': { class_type: 'DemoStamp', inputs: { filename_prefix: text } } }
}

/** null: it has not ended. */
async function findEnd(api: Api, job: string): Promise<string | null> {
  const { status, json } = await api('GET', `/api/v2/jobs/${job}`)
  if (status !== 200) return `answered with ${status}`
  if (json.status === DONE) return DONE
  return ['failed', 'canceled', 'expired'].includes(json.status as string) ? JSON.stringify(json.error) : null
}

/** Jobs that a release began which was not theirs, and jobs that no release began. */
function findMisplaced(
  promised: ReadonlyMap<string, { readonly text: string; readonly version: number }>,
  studio: RunningComfyui,
  versions: ReadonlyMap<string, number>,
): string[] {
  const began = new Map<string, Set<number>>()
  for (const [release, version] of versions) {
    for (const [text] of studio.logOf(release).matchAll(/job-\d+-end/g)) {
      const seen = began.get(text) ?? new Set()
      began.set(text, seen.add(version))
    }
  }
  return [...promised.values()].flatMap(({ text, version }) => {
    const seen = [...(began.get(text) ?? [])]
    return seen.length === 1 && seen[0] === version ? [] : [`${text}: on releases ${seen}, not ${version}`]
  })
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, 'SIGKILL')
    return true
  } catch {
    return false
  }
}
