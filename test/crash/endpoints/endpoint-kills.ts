/**
 * Calls of an endpoint while it is published and rolled back, under kill -9: every call becomes exactly one job, and each job ran exactly
 * the version that the call was answered with. Versions differ in the width of the picture, which no caller can set.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { type SpawnedServer, spawnServer } from '../../support/app/spawn-server.ts'
import { findCompileCache } from '../../support/cli/compile-cache.ts'
import { createTestDatabase } from '../../support/postgres/test-database.ts'

interface EndpointKills {
  readonly calls: number
  /** Publishes and rollbacks together. */
  readonly moves: number
  readonly kills: number
  readonly store: 'sqlite' | 'postgres'
  readonly report?: (line: string) => void
}

interface Called {
  readonly jobId: string
  /** null: a kill hid the answer, and only the key tells which job it was. */
  readonly version: number | null
}

const CALLERS = 8
const DECLARATION = { only: true, inputs: { headline: { from: '2.text' } } }

function workflowOf(width: number) {
  return {
    '1': { class_type: 'EmptyImage', inputs: { width, height: 8, batch_size: 1, color: 0 } },
    '2': {
      class_type: 'TextOverlay',
      inputs: {
        ...{ images: ['1', 0], text: 'x', font_size: 8, color: '#ffffff', position: 'top', align: 'center' },
        outline: false,
      },
    },
    '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'kills' } },
  }
}

export async function killAndCheckEndpoints(options: EndpointKills): Promise<void> {
  const { calls, moves, kills, report = () => {} } = options
  await using stack = new AsyncDisposableStack()
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-endpoints-'))
  // The engine's own process may live a moment longer.
  stack.defer(() => rm(dataDir, { recursive: true, force: true, maxRetries: 10 }))
  const database = options.store === 'sqlite' ? null : stack.use(await createTestDatabase())
  const env = {
    ...findCompileCache(dataDir),
    ...(database !== null && {
      ATELIER_DATABASE: database.url,
      ATELIER_SECRET_KEY: Buffer.alloc(32, 3).toString('base64'),
    }),
  }
  const flags = ['--data-dir', dataDir]
  let server: SpawnedServer = await spawnServer(flags, env)
  stack.defer(() => server.killNow())
  const client = createClient(() => server.url)
  await client.publish(8)

  const called: Called[] = []
  let moved = 0
  let killed = 0
  const everyCalls = calls / (kills + 1)
  const callAll = async (caller: number) => {
    for (let index = caller; index < calls; index += CALLERS) called[index] = await client.run(`call-${index}`)
  }
  const moveAll = async () => {
    for (; moved < moves; moved++) {
      while (countOf(called) < (moved * calls) / (moves + 1)) await sleep(5)
      // Every third move goes back to a version that there is.
      if (moved % 3 === 2) await client.rollBack(1 + (moved % 2))
      else await client.publish(9 + moved)
    }
  }
  const killAll = async () => {
    for (; killed < kills; killed++) {
      while (countOf(called) < (killed + 1) * everyCalls) await sleep(5)
      await server.killNow()
      server = await spawnServer(flags, env)
      report(`${killed + 1} kills, ${countOf(called)} calls, ${moved} moves`)
    }
  }
  await Promise.all([...Array.from({ length: CALLERS }, (_, caller) => callAll(caller)), moveAll(), killAll()])
  await check(client, called)
  const told = called.filter(({ version }) => version !== null).length
  report(`${calls} calls, ${moves} moves, ${kills} kills: ${told} answered, each ran the version it was told`)
}

const countOf = (called: readonly Called[]) => called.reduce((count) => count + 1, 0)

async function check(client: ReturnType<typeof createClient>, called: readonly Called[]): Promise<void> {
  assert.equal(new Set(called.map(({ jobId }) => jobId)).size, called.length, 'every call is a job of its own')
  assert.equal(await client.countRuns(), called.length, 'there is no job that nobody called for')
  const widths = new Map<number, number>()
  for (const { jobId, version } of called) {
    const run = await client.untilEnded(jobId)
    // A job that ran at three kills in a row is given up, as any other.
    const isGivenUp = run.status === 'failed' && run.error.code === 'worker_lost'
    assert.ok(run.status === 'succeeded' || isGivenUp, JSON.stringify(run.error))
    if (version !== null) assert.equal(run.endpoint.version, version)
    const ran = run.endpoint.version
    const width = widths.get(ran) ?? (await client.widthOf(ran))
    widths.set(ran, width)
    assert.equal(await client.executedWidth(jobId), width)
    if (!isGivenUp) assert.equal(await client.pictureWidth(run.results.image[0]?.url ?? ''), width)
  }
  assert.ok(widths.size > 1, 'more than one version ran')
}

/** What of an answer is looked at; an answer has the part that its request is about. */
interface Wire {
  readonly id: string
  readonly status: string
  readonly error: { readonly code: string; readonly details: { readonly job_id: string } }
  readonly endpoint: { readonly version: number }
  readonly version: { readonly workflow: WireGraph }
  readonly workflow: WireGraph
  readonly results: { readonly image: readonly { readonly url: string }[] }
  readonly runs: readonly unknown[]
  readonly has_more: boolean
  readonly next_cursor: string
}

const widthIn = (graph: WireGraph) => graph['1']?.inputs.width ?? 0

type WireGraph = Readonly<Record<string, { readonly inputs: { readonly width: number } }>>

interface Told {
  readonly status: number
  readonly json: Wire
}

/** Repeats what a kill has cut off, under the same key. */
function createClient(urlOf: () => string) {
  async function call(path: string, init: RequestInit = {}): Promise<Told> {
    for (;;) {
      try {
        const url = path.startsWith('http') ? path : `${urlOf()}/api/v2${path}`
        const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(30_000) })
        if (answer.status >= 500 || answer.status === 429) await answer.body?.cancel()
        else return { status: answer.status, json: (await answer.json()) as Wire }
      } catch {
        // Killed, or not there again yet.
      }
      await sleep(50)
    }
  }
  const send = (method: string, path: string, body: unknown, headers: Record<string, string> = {}) =>
    call(path, { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } })

  return {
    async publish(width: number): Promise<void> {
      const body = { name: 'kills', file: workflowOf(width), declaration: DECLARATION }
      const { status, json } = await send('POST', '/endpoints', body)
      assert.ok(status === 201 || status === 200, JSON.stringify(json))
      assert.equal(widthIn(json.version.workflow), width)
    },
    async rollBack(version: number): Promise<void> {
      const { status, json } = await send('PATCH', '/endpoints/kills', { current_version: version })
      assert.ok(status === 200 || status === 404, JSON.stringify(json))
    },
    async run(key: string): Promise<Called> {
      const headers = { 'idempotency-key': key }
      const { status, json } = await send('POST', '/endpoints/kills/runs', { inputs: { headline: key } }, headers)
      if (status === 422) return { jobId: json.error.details.job_id, version: null }
      assert.equal(status, 201, JSON.stringify(json))
      return { jobId: json.id, version: json.endpoint.version }
    },
    async untilEnded(jobId: string) {
      for (;;) {
        const { json } = await call(`/endpoints/kills/runs/${jobId}`)
        if (['succeeded', 'failed', 'canceled'].includes(json.status)) return json
        await sleep(50)
      }
    },
    async countRuns(): Promise<number> {
      let count = 0
      for (let cursor = ''; ; ) {
        const { json } = await call(`/endpoints/kills/runs?limit=100${cursor}`)
        count += json.runs.length
        if (!json.has_more) return count
        cursor = `&cursor=${encodeURIComponent(json.next_cursor)}`
      }
    },
    widthOf: async (version: number): Promise<number> =>
      widthIn((await call(`/endpoints/kills/versions/${version}`)).json.workflow),
    executedWidth: async (jobId: string): Promise<number> =>
      widthIn((await call(`/jobs/${jobId}/workflow`)).json.workflow),
    async pictureWidth(url: string): Promise<number> {
      // The address names the port of a process that may be gone.
      const answer = await fetch(new URL(new URL(url).pathname + new URL(url).search, urlOf()))
      return Buffer.from(await answer.arrayBuffer()).readUInt32BE(16)
    },
  }
}
