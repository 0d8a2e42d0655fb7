/** Jobs that keep coming while a deployment moves between releases and processes are killed; then what became of each. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { type SharedApp, startShared, type Tenant } from '../app/start-shared.ts'
import { call } from '../clients/call.ts'
import { waitUntil } from '../wait-until.ts'
import { createFakeReleases, type FakeRelease } from './fake-releases.ts'
import { deploy, deployedBy, saying } from './released-app.ts'

interface StormPlan {
  readonly jobs: number
  readonly moves: number
  /** Of engines, with kill -9. */
  readonly kills: number
  /** Of the service, over the same data folder. */
  readonly restarts: number
}

interface StormReport {
  readonly accepted: number
  readonly refused: readonly string[]
  readonly lost: readonly string[]
  readonly misplaced: readonly string[]
  readonly landed: number
  /** From the request until the revision was there. */
  readonly rollbackMs: readonly number[]
  readonly killed: number
  readonly byRelease: Readonly<Record<number, number>>
}

const DONE = 'succeeded'

export function assertUnharmed({ refused, lost, misplaced }: StormReport): void {
  assert.deepEqual({ refused, lost, misplaced }, { refused: [], lost: [], misplaced: [] })
}

export async function runStorm({ jobs, moves, kills, restarts }: StormPlan): Promise<StormReport> {
  const folder = await mkdtemp(join(tmpdir(), 'storm-'))
  const releases = createFakeReleases(join(folder, 'releases'))
  const all = [1, 2].map((version) => releases.add({ version, accountId: 'ana', nodeMs: 5 }))
  const settings = { dataDir: join(folder, 'data'), releaseEngines: '3' }
  const open = () => startShared(settings, { overrides: { releases: releases.here } })
  let app: SharedApp = await open()
  const made = await app.account('ana', { requestsPerMinute: null, concurrentJobs: 8, queuedJobs: 10_000 })
  const tenant: Tenant = { ...made, call: (path, given = {}) => callAgain(() => app.url, path, made.key, given) }
  const { id } = await deploy(tenant, all[0]!.id, { min: 1, max: 2 })
  const deployed = deployedBy(tenant, id)
  await deployed.until(({ status }) => status === 'ready')

  const promised = new Map<string, { readonly text: string; readonly version: number }>()
  const refused: string[] = []
  const rollbackMs: number[] = []
  let killed = 0
  let isOver = false

  async function submitAll(): Promise<void> {
    for (let n = 0; n < jobs; n++) {
      const text = `job-${n}-end`
      const body = JSON.stringify({ workflow: saying(text) })
      const headers = { 'idempotency-key': `storm-${n}` }
      const answer = await tenant.call(`/deployment/${id}/api/v2/jobs`, { method: 'POST', body, headers })
      if (answer.status !== 201 && answer.status !== 200) refused.push(`${n}: ${answer.status} ${answer.text}`)
      else promised.set(answer.json.id as string, { text, version: answer.json.release_version as number })
    }
  }

  async function moveAll(): Promise<void> {
    for (let n = 0; n < moves; n++) {
      const { revision, releaseId } = await deployed.get()
      const goal = all.find((release) => release.id !== releaseId) ?? all[0]!
      const isRollback = n % 2 === 1
      const from = performance.now()
      const asked = isRollback
        ? await deployed.call('POST', '/rollback', { baseRevision: revision })
        : await deployed.call('PATCH', '', { baseRevision: revision, releaseId: goal.id })
      assert.ok(asked.status === 200 || asked.status === 202, asked.text)
      await deployed.until((record) => record?.revision > revision)
      if (isRollback) rollbackMs.push(Math.round(performance.now() - from))
    }
  }

  async function killSome(): Promise<void> {
    for (let n = 0; n < kills && !isOver; n++) {
      await sleep(700)
      const pid = newestPid(all)
      if (pid !== null && kill(pid)) killed++
    }
  }

  async function restartSome(): Promise<void> {
    for (let n = 0; n < restarts; n++) {
      await waitUntil(() => promised.size > ((n + 1) * jobs) / (restarts + 2))
      await app[Symbol.asyncDispose]()
      app = await open()
    }
  }

  try {
    await Promise.all([submitAll(), moveAll(), killSome(), restartSome()])
    isOver = true
    const lost: string[] = []
    for (const job of promised.keys()) {
      const end = await waitUntil(() => findEnd(tenant, job))
      if (end !== DONE) lost.push(`${job}: ${end}`)
    }
    const { revision } = await deployed.get()
    const counts = Object.fromEntries(
      all.map(({ version }) => [version, [...promised.values()].filter((job) => job.version === version).length]),
    )
    return {
      ...{ accepted: promised.size, refused, lost, misplaced: findMisplaced(promised, all) },
      ...{ landed: (revision as number) - 1, rollbackMs, killed, byRelease: counts },
    }
  } finally {
    await app[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  }
}

/** null: it has not ended. */
async function findEnd(tenant: Tenant, job: string): Promise<string | null> {
  const { status, json } = await tenant.call(`/api/v2/jobs/${job}`)
  if (status !== 200) return `answered with ${status}`
  if (json.status === DONE) return DONE
  return ['failed', 'canceled', 'expired'].includes(json.status as string) ? JSON.stringify(json.error) : null
}

/** Jobs that a release began which was not theirs. */
function findMisplaced(
  promised: ReadonlyMap<string, { text: string; version: number }>,
  all: readonly FakeRelease[],
): string[] {
  const versionOf = new Map([...promised.values()].map(({ text, version }) => [text, version]))
  return all.flatMap(({ version, news }) =>
    news().flatMap(({ graph }) => {
      const text = /"(job-\d+-end)"/.exec(JSON.stringify(graph))?.[1] ?? ''
      const promisedTo = versionOf.get(text)
      return promisedTo === undefined || promisedTo === version
        ? []
        : [`${text}: release ${version}, not ${promisedTo}`]
    }),
  )
}

function newestPid(all: readonly FakeRelease[]): number | null {
  const living = all.flatMap(({ pids }) => pids()).filter((pid) => isAlive(pid))
  return living.at(-1) ?? null
}

function isAlive(pid: number): boolean {
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

/** What any client does: a service that is away for a moment is asked again. A submit has its key. */
async function callAgain(url: () => string, path: string, key: string, given: object) {
  const headers = { authorization: `Bearer ${key}`, ...(given as { headers?: object }).headers }
  for (let tries = 0; ; tries++) {
    try {
      const answer = await call(url(), path, { ...given, headers })
      if (answer.status !== 503 || tries > 300) return answer
    } catch (error) {
      if (tries > 300) throw error
    }
    await sleep(100)
  }
}
