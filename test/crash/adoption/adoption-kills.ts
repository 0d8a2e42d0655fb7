/**
 * The service is killed, again and again and at any moment, while servers of their own compute its jobs: by the servers' own logs every
 * job is computed exactly once, whoever collects it, and every job ends with its own bytes, in its first attempt.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { findCompileCache } from '../../support/cli/compile-cache.ts'
import { call } from '../../support/clients/call.ts'
import { FakeComfyChild } from '../../support/engines/fake-comfyui/child.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { attemptsByPrompt } from '../../support/engines/jobs-by-prompt.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'
import { seededRandom } from '../../support/seeded-random.ts'

export interface AdoptionKills {
  readonly store: 'sqlite' | 'postgres'
  /** Of the service; more than one need a server for their database. */
  readonly processes: number
  readonly kills: number
  /** Of them so many end with SIGTERM, and leave what they have not finished. */
  readonly terms?: number
  readonly seed?: number
  /** A process lives for up to so long. */
  readonly upMs: number
  readonly nodeMs?: number
  readonly report?: (line: string) => void
}

export interface AdoptionReport {
  readonly jobs: number
  readonly kills: number
  /** Prompts that servers began, by their own logs. */
  readonly begun: number
  /** Runs that were taken on by a process that had not begun them. */
  readonly adopted: number
}

const SERVERS = 2
const CLIENTS = 6
const MAX_STARTS = 5
const TERMINAL = new Set(['succeeded', 'failed', 'canceled', 'expired'])

export async function killAndCheckAdoption(options: AdoptionKills): Promise<AdoptionReport> {
  const { processes, kills, terms = 0, seed = 1, upMs, nodeMs = 300, report = () => {} } = options
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'atelier-adoption-'))
  stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))
  const database = options.store === 'sqlite' ? null : stack.use(await createTestDatabase())
  const engines = Array.from({ length: SERVERS }, (_, index) =>
    stack.use(new FakeComfyChild({ nodeMs, logPath: join(folder, `engine-${index}.log`) })),
  )
  await Promise.all(engines.map((engine) => engine.start()))
  let adopted = 0
  let lives = 0
  const env = {
    ...findCompileCache(folder),
    ATELIER_COMFYUI: engines.map(({ url }) => url).join(','),
    ATELIER_COMFYUI_CONCURRENCY: '2',
    ATELIER_DRAIN_TIMEOUT: '0s',
    ATELIER_LOG_LEVEL: 'debug',
    ...(database !== null && {
      ATELIER_DATABASE: database.url,
      ATELIER_SECRET_KEY: Buffer.alloc(32, 3).toString('base64'),
    }),
  }
  // What a fault is explained with: everything that the processes printed, each line with the process and the moment.
  const printed: string[] = []
  async function start(at: number): Promise<SpawnedServer> {
    for (let tries = 1; ; tries++) {
      const life = `${at}.${lives++}`
      const onOutput = (text: string) => {
        adopted += text.split('a run is taken on').length - 1
        const lines = text.split('\n').filter((line) => line !== '')
        printed.push(...lines.map((line) => `${Date.now()} ${life} ${line}`))
      }
      try {
        return await spawnServer(['--data-dir', join(folder, 'data')], env, { onOutput })
      } catch (error) {
        // A busy machine may answer its database too late for a start.
        if (tries === MAX_STARTS) throw error
      }
    }
  }
  const servers: (SpawnedServer | null)[] = []
  for (let index = 0; index < processes; index++) servers.push(await start(index))
  stack.defer(async () => {
    await Promise.all(servers.map((server) => server?.killNow()))
  })

  const { next: random } = seededRandom(seed)
  const over = new AbortController()
  const client = createClient(() => servers.find((server) => server !== null)?.url ?? null)
  const jobs: string[] = []
  let submitted = 0
  const submitAll = async () => {
    while (!over.signal.aborted) {
      const color = submitted++
      jobs[color] = await client.submit(color)
      await client.untilEnded(jobs[color])
    }
  }
  const clients = Promise.all(Array.from({ length: CLIENTS }, submitAll))
  for (let kill = 0; kill < kills; kill++) {
    await sleep(random() * upMs)
    const at = kill % processes
    const victim = servers[at]
    servers[at] = null
    if (terms * random() > (kills - terms) * random()) await victim?.terminate()
    else await victim?.killNow()
    servers[at] = await start(at)
    if ((kill + 1) % 10 === 0) report(`${kill + 1} kills, ${submitted} jobs`)
  }
  over.abort()
  await clients
  const explain = (names: readonly string[]) =>
    [...engines.flatMap((engine) => engine.news().map((news) => JSON.stringify(news))), ...printed]
      .filter((line) => names.some((name) => line.includes(name)))
      .join('\n')
  await check(client, jobs)
  const begun = checkCounts(engines, jobs, explain)
  report(`${kills} kills, ${jobs.length} jobs, ${begun} prompts, ${adopted} runs adopted`)
  return { jobs: jobs.length, kills, begun, adopted }
}

function checkCounts(
  engines: readonly FakeComfyChild[],
  jobs: readonly string[],
  explain: (names: readonly string[]) => string,
): number {
  const attemptOf = attemptsByPrompt(jobs)
  const begun = engines.flatMap((engine) => engine.news()).filter(({ what }) => what === 'begun')
  const counts = new Map<string, string[]>()
  for (const { promptId } of begun) {
    const at = attemptOf(promptId)
    assert.ok(at !== null, `prompt ${promptId} belongs to a job`)
    assert.equal(at.attempt, 1, 'no attempt was spent')
    counts.set(at.jobId, [...(counts.get(at.jobId) ?? []), promptId])
  }
  const doubled = [...counts].filter(([, prompts]) => prompts.length > 1)
  assert.equal(doubled.length, 0, `no job was computed twice:\n${explain(doubled.flat(2))}`)
  assert.equal(counts.size, jobs.length)
  return begun.length
}

async function check(client: ReturnType<typeof createClient>, jobs: readonly string[]): Promise<void> {
  assert.equal(new Set(jobs).size, jobs.length, 'every submit is a job of its own')
  for (const [color, id] of jobs.entries()) {
    const job = await client.untilEnded(id)
    const shown = JSON.stringify(job)
    assert.equal(job.status, 'succeeded', shown)
    assert.equal(job.outputs.length, 1, shown)
    assert.equal(job.outputs_replaced, 0, shown)
    const bytes = await client.read(job.outputs[0].url)
    assert.ok(bytes.equals(toPng({ width: 8, height: 8, color })), `${id} has its own bytes`)
  }
}

/** Repeats what a kill has cut off, under the same key. */
function createClient(findUrl: () => string | null) {
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into it freely
  async function ask(path: string, options: Parameters<typeof call>[2] = {}): Promise<any> {
    for (;;) {
      const url = findUrl()
      try {
        const answer = url === null ? null : await call(url, path, options)
        if (answer !== null && answer.status < 500 && answer.status !== 429) return answer
      } catch {
        // Killed, or not there again yet.
      }
      await sleep(30)
    }
  }
  return {
    async submit(color: number): Promise<string> {
      const body = JSON.stringify({ workflow: pictureGraph(color) })
      const headers = { 'idempotency-key': `job-${color}` }
      const { status, json, text } = await ask('/api/v2/jobs', { method: 'POST', body, headers })
      if (status === 422 && json.error?.details?.job_id !== undefined) return json.error.details.job_id
      assert.equal(status, 201, text)
      return json.id
    },
    async untilEnded(id: string) {
      for (;;) {
        const { status, json, text } = await ask(`/api/v2/jobs/${id}`)
        assert.equal(status, 200, text)
        if (TERMINAL.has(json.status)) return json
        await sleep(40)
      }
    },
    async read(url: string): Promise<Buffer> {
      return (await ask(new URL(url).pathname)).bytes
    },
  }
}
