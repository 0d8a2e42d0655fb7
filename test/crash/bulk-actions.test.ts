/** Processes that are killed while many jobs are run again: each job makes one new job, and the counts are those of the jobs. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { createClient } from '../../lib/postgres/driver.ts'
import { type SpawnedServer, spawnServer } from '../support/app/spawn-server.ts'
import { call } from '../support/clients/call.ts'
import { openRoleProcesses } from '../support/cluster/role-processes.ts'
import { drawnCases } from '../support/drawn-cases.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { waitUntil } from '../support/wait-until.ts'

const JOBS = 150
const GRAPH = {
  1: { class_type: 'PrimitiveString', inputs: { value: 'many' } },
  2: { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
}

async function send({ url }: Pick<SpawnedServer, 'url'>, at: string, body: object) {
  const answer = await call(url, `/api/v2${at}`, { method: 'POST', body: JSON.stringify(body) })
  assert.equal(answer.status, 201, answer.text)
  return answer.json
}

/** Each with a label of its own, so that what was run again is told from what was not. */
async function submitAll(server: Pick<SpawnedServer, 'url'>): Promise<void> {
  const jobs = Array.from({ length: JOBS }, (_, each) => ({ workflow: GRAPH, metadata: { each: String(each) } }))
  const batch = await send(server, '/jobs/batch', { jobs })
  await waitUntil(async () => (await call(server.url, `/api/v2/batches/${batch.id}`)).json.is_done)
}

const read = async ({ url }: Pick<SpawnedServer, 'url'>, id: string) =>
  (await call(url, `/api/v2/bulk-actions/${id}`)).json

/** By label, how many jobs have it. */
async function countLabels({ url }: Pick<SpawnedServer, 'url'>): Promise<readonly number[]> {
  const counts = new Map<string, number>()
  for (let cursor = ''; ; ) {
    const { json } = await call(url, `/api/v2/jobs?limit=100${cursor}`)
    for (const { metadata } of json.jobs) counts.set(metadata.each, (counts.get(metadata.each) ?? 0) + 1)
    if (!json.has_more) return [...counts.values()]
    cursor = `&cursor=${json.next_cursor}`
  }
}

async function assertOnce(server: Pick<SpawnedServer, 'url'>, id: string): Promise<void> {
  const ended = await waitUntil(async () => {
    const action = await read(server, id)
    return action.state === 'working' ? null : action
  })
  assert.deepEqual(
    [ended.state, ended.total, ended.done, ended.refused],
    ['done', JOBS, JOBS, 0],
    JSON.stringify(ended),
  )
  const counts = await countLabels(server)
  assert.deepEqual([counts.length, counts.filter((count) => count !== 2)], [JOBS, []])
  const { json } = await call(server.url, `/api/v2/bulk-actions/${id}/jobs?limit=1000`)
  assert.equal(new Set(json.jobs.map((job: { new_job_id: string }) => job.new_job_id)).size, JOBS)
}

test('a service with a folder of its own that is killed again and again runs each job again once', async (context) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-bulk-'))
  const flags = ['--data-dir', folder, '--max-queue', '100000', '--log-level', 'error']
  const random = seededRandom(41)
  await using servers = new AsyncDisposableStack()
  const start = async () => servers.use(await spawnServer(flags))
  try {
    let server = await start()
    await submitAll(server)
    const { id } = await send(server, '/bulk-actions', { action: 'rerun', filter: { status: 'succeeded' } })
    let kills = 0
    for (; kills < drawnCases(3); kills += 1) {
      const { done, state } = await read(server, id)
      if (state !== 'working') break
      const until = random.between(done, JOBS)
      await waitUntil(async () => {
        const now = await read(server, id)
        return now.done >= until || now.state !== 'working'
      })
      await server.killNow()
      server = await start()
    }
    await assertOnce(server, id)
    await server.terminate()
    context.diagnostic(`${kills} kills`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('processes on one database that are killed while they share the work run each job again once', async (context) => {
  await using processes = await openRoleProcesses([])
  const flags = ['--max-queue', '100000']
  const worker = await processes.worker()
  const apis = [await processes.api(flags), await processes.api(flags)]
  const [first] = apis
  const body = JSON.stringify({ workflow: GRAPH })
  await waitUntil(
    async () => (await call(first.url, '/api/v2/jobs/validate', { method: 'POST', body })).json.is_accepted === true,
  )
  await submitAll(first)
  const client = createClient({ url: processes.databaseUrl })
  await client.connect()
  const random = seededRandom(42)
  let kills = 0
  try {
    const { id } = await send(first, '/bulk-actions', { action: 'rerun', filter: { status: 'succeeded' } })
    const left = async () =>
      Number((await client.query(`SELECT count(*) AS count FROM bulk_item WHERE outcome = 'waiting'`)).rows[0].count)
    for (; kills < drawnCases(3) && (await left()) > 0; kills += 1) {
      const until = random.between(0, await left())
      await waitUntil(async () => (await left()) <= until)
      const at = random.between(0, 2)
      await apis[at].killNow()
      // Nobody waits for the lease of the dead: the key of each submit alone has to hold.
      await client.query('UPDATE bulk_action SET held_until = NULL')
      apis[at] = await processes.api(flags)
    }
    await assertOnce(apis[0], id)
    context.diagnostic(`${kills} kills`)
  } finally {
    await client.end()
    await worker.terminate()
  }
})
