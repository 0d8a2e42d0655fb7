/** What must be true of a cluster once the load is over and everything that was accepted has ended. */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { sha256 } from '../ledger.ts'
import { type Acknowledged, ClusterClient, TERMINAL, toCredentials } from './cluster-load.ts'
import { CALL_MICROS, type Cluster } from './cluster-nodes.ts'

const SETTLE_GIVE_UP_MS = 300_000
const LOOK_EVERY_MS = 250
/** The only way in which one of these jobs may fail: too many of its workers died. */
const EXCUSED = 'worker_lost'

const blake3 = await openBlake3()

export async function checkCluster(cluster: Cluster, seen: Acknowledged): Promise<void> {
  const client = new ClusterClient(cluster, seen, seededRandom(1))
  await settle(cluster, seen, client)
  for (const { id, account, label } of seen.jobs) {
    const job = await client.readJob(account, id)
    assert.ok(TERMINAL.has(job.status), `job ${id} is ${job.status}`)
    if (label !== null) assert.deepEqual(job.metadata, { label })
    if (job.status === 'failed') assert.equal(job.error.code, EXCUSED, `job ${id}: ${JSON.stringify(job.error)}`)
    if (job.status === 'succeeded') assert.equal(job.outputs.length, 1, `job ${id} made one picture`)
    for (const output of job.outputs) await checkOutput(cluster, account.key, output)
  }
  for (const { id, account, sha256: sum } of seen.assets) {
    const bytes = await fetchBytes(cluster, account.key, `/api/v2/assets/${id}/content`)
    assert.equal(sha256(bytes), sum, `bytes of asset ${id}`)
  }
  assert.deepEqual(seen.flaws, [])
}

async function settle(cluster: Cluster, seen: Acknowledged, client: ClusterClient): Promise<void> {
  const giveUpAt = performance.now() + SETTLE_GIVE_UP_MS
  let open = seen.jobs
  for (;;) {
    const still: typeof seen.jobs = []
    for (const job of open) if (!TERMINAL.has((await client.readJob(job.account, job.id)).status)) still.push(job)
    open = still
    if (open.length === 0) return
    assert.deepEqual(seen.flaws, [])
    const outputs = cluster.outputs()
    assert.ok(performance.now() < giveUpAt, `${open.length} jobs never ended, such as ${open[0]?.id}\n${outputs}`)
    await pause(LOOK_EVERY_MS)
  }
}

async function checkOutput(cluster: Cluster, key: string, output: { id: string; size_bytes: number; hash: string }) {
  const bytes = await fetchBytes(cluster, key, `/api/v2/assets/${output.id}/content`)
  assert.equal(bytes.byteLength, output.size_bytes)
  assert.equal(`blake3:${blake3.hash(bytes)}`, output.hash)
}

async function fetchBytes(cluster: Cluster, key: string, path: string): Promise<Uint8Array> {
  const response = await fetch(cluster.urls()[0] + path, { headers: toCredentials(key) })
  assert.equal(response.status, 200, path)
  return new Uint8Array(await response.arrayBuffer())
}

/** The books, from outside: for when all nodes have ended. */
export async function checkBooks(
  cluster: Cluster,
  seen: Acknowledged,
  made: ReadonlyMap<string, number>,
): Promise<void> {
  await using store = await openPostgresStore({ url: cluster.databaseUrl })
  const { faults, openHolds } = await store.ledger.check()
  assert.deepEqual(faults, [])
  assert.equal(openHolds, 0, 'every hold is closed')
  assert.equal(await store.accounts.repairCounters(), 0, 'counters equal the rows that they count')
  const generations = new Set(seen.calls.map(({ generation }) => generation))
  assert.equal(generations.size, seen.calls.length, 'every call has a generation of its own')
  await withClient(cluster.databaseUrl, async (client) => {
    const count = async (sql: string) => Number((await client.query(sql)).rows[0].n)
    const twice = `SELECT count(*) AS n FROM (SELECT id FROM job_done GROUP BY id HAVING count(*) > 1) AS d`
    assert.equal(await count(twice), 0, 'no job has ended twice')
    const both = 'SELECT count(*) AS n FROM job JOIN job_done USING (id)'
    assert.equal(await count(both), 0, 'no job is live and ended')
    assert.equal(await count('SELECT count(*) AS n FROM job'), 0, 'nothing is left in the queue')
    const names = `SELECT count(*) AS n FROM (
      SELECT account_id, file_path FROM output WHERE position IS NOT NULL GROUP BY 1, 2 HAVING count(DISTINCT hash || job_id) > 1) AS d`
    assert.equal(await count(names), 0, 'no name of an output was given twice')
    const secrets = 'SELECT (SELECT count(*) FROM job_secret) + (SELECT count(*) FROM job_notes) AS n'
    assert.equal(await count(secrets), 0, 'nothing of an ended job is kept for its run')
    const underWay = `SELECT coalesce(sum(running + costly + committed_micros), 0) AS n FROM router_account`
    assert.equal(await count(underWay), 0, 'no call is counted as under way')
    for (const { id, grantedMicros } of cluster.accounts) {
      const settled = await client.query(
        `SELECT coalesce(sum(charged), 0) AS charged, count(*) FILTER (WHERE reference LIKE 'call:%') AS calls
         FROM ledger_entry WHERE account_id = $1 AND kind = 'settle'`,
        [id],
      )
      const { charged, calls } = settled.rows[0]
      const balance = await store.ledger.balance(id)
      assert.equal(balance?.available, grantedMicros - Number(charged), `the balance of ${id}`)
      const acknowledged = seen.calls.filter(({ account }) => account.id === id).length
      assert.equal(Number(calls), acknowledged, `${id} pays for each of its calls once`)
      const paid = await client.query(
        `SELECT coalesce(sum(charged), 0) AS n FROM ledger_entry
         WHERE account_id = $1 AND kind = 'settle' AND reference LIKE 'call:%'`,
        [id],
      )
      assert.equal(Number(paid.rows[0].n), acknowledged * CALL_MICROS)
    }
  })
  assert.ok(made.size >= generations.size)
}

export async function withClient<Result>(url: string, body: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return await body(client)
  } finally {
    await client.end()
  }
}
