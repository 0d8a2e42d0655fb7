/**
 * Two processes on Postgres, killed around the times of schedules: each time makes one job, whichever process took it and whenever that one
 * died. What keeps a second process from a time that is taken is cleared after each kill, so that the key of the submit alone has to hold.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '../../lib/postgres/driver.ts'
import type { SpawnedServer } from '../support/app/spawn-server.ts'
import { call } from '../support/clients/call.ts'
import { openRoleProcesses } from '../support/cluster/role-processes.ts'
import { drawnCases } from '../support/drawn-cases.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { waitUntil } from '../support/wait-until.ts'

const SCHEDULES = 40
const MINUTE_MS = 60_000
const GRAPH = {
  1: { class_type: 'PrimitiveString', inputs: { value: 'on time' } },
  2: { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
}

async function schedule({ url }: SpawnedServer, name: string, work: object): Promise<void> {
  const body = JSON.stringify({ name, cron: '@yearly', catch_up: 'one', overlap: 'cancel_previous', ...work })
  const made = await call(url, '/api/v2/schedules', { method: 'POST', body })
  assert.equal(made.status, 201, made.text)
}

test('processes that are killed around the times of schedules lose none and double none', async (context) => {
  await using processes = await openRoleProcesses()
  const worker = await processes.worker()
  const apis = [await processes.api(), await processes.api()]
  const [first] = apis
  const ready = async () =>
    (await call(first.url, '/api/v2/jobs/validate', { method: 'POST', body: JSON.stringify({ workflow: GRAPH }) })).json
      .is_accepted === true
  await waitUntil(ready)
  const published = await call(first.url, '/api/v2/endpoints', {
    method: 'POST',
    body: JSON.stringify({ name: 'punctual', file: GRAPH }),
  })
  assert.equal(published.status, 201, published.text)
  for (let each = 0; each < SCHEDULES; each += 1)
    await schedule(first, `each ${each}`, each % 2 === 0 ? { workflow: GRAPH } : { endpoint: 'punctual' })

  const client = createClient({ url: processes.databaseUrl })
  await client.connect()
  const count = async (sql: string) =>
    Number((await client.query(`SELECT count(*) AS count FROM ${sql}`)).rows[0].count)
  const random = seededRandom(40)
  const rounds = drawnCases(2)
  let kills = 0
  let dead: Promise<void> = Promise.resolve()
  try {
    for (let round = 1; round <= rounds; round += 1) {
      // A time of its own for each round: every one is so long past that it is due, and not yet missed.
      const due = new Date(Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - (rounds - round + 1) * MINUTE_MS)
      const cron = [due.getUTCMinutes(), due.getUTCHours(), due.getUTCDate(), due.getUTCMonth() + 1, '*'].join(' ')
      await client.query('UPDATE schedule SET cron = $1, next_at = $2', [cron, due.getTime()])
      const isLeft = () => count(`schedule WHERE next_at <= ${due.getTime()}`)
      for (let tries = 0; (await isLeft()) > 0 && tries < 2; tries += 1) {
        // Somewhere among the submits of this round, by how many have been made.
        const until = random.between(1, SCHEDULES)
        await waitUntil(async () => (await isLeft()) <= SCHEDULES - until)
        const at = random.between(0, 2)
        await apis[at].killNow()
        kills += 1
        await client.query('UPDATE schedule SET held_until = NULL')
        await dead
        dead = processes.api().then((started) => {
          apis[at] = started
        })
      }
      await dead
      await client.query('UPDATE schedule SET held_until = NULL')
      await waitUntil(async () => (await isLeft()) === 0)
    }
    const jobs = await client.query(
      `SELECT metadata::json ->> 'schedule' AS name, count(*)::int AS count FROM
         (SELECT metadata FROM job UNION ALL SELECT metadata FROM job_done) AS either GROUP BY 1`,
    )
    const wrong = jobs.rows.filter((row: { count: number }) => row.count !== rounds)
    assert.deepEqual([jobs.rows.length, wrong], [SCHEDULES, []], `after ${kills} kills`)
    assert.equal(await count(`schedule_run WHERE outcome = 'submitted'`), SCHEDULES * rounds)
    assert.equal(await count('schedule_run'), SCHEDULES * rounds)
    assert.equal(await count('(SELECT DISTINCT job_id FROM schedule_run) AS each'), SCHEDULES * rounds)
    assert.ok(kills >= rounds, `${kills} kills`)
    context.diagnostic(`${SCHEDULES * rounds} times, ${kills} kills`)
  } finally {
    await client.end()
    await dead.catch(() => {})
    await worker.terminate()
  }
})
