/**
 * Accounts are isolated: for every operation of every surface, a request that names something of another account gets exactly the
 * answer for something that never existed: the same status, the same headers in the same order, the same bytes.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { testIsolation } from './run-matrix.ts'
import type { IsolationSurface } from './surface.ts'
import { admin } from './surfaces/admin.ts'
import { content } from './surfaces/content.ts'
import { jobsV2 } from './surfaces/jobs-v2.ts'
import { routerV2 } from './surfaces/router-v2.ts'
import { openWorld, type World } from './world.ts'

/** Surfaces that may be left out have their part beside their other tests. */
const SURFACES: readonly IsolationSurface[] = [jobsV2, routerV2, content, admin]

let world: World
before(async () => {
  world = await openWorld()
})
after(() => world[Symbol.asyncDispose]())

for (const surface of SURFACES) testIsolation(surface, () => world)

describe('isolation of what is shared by all', () => {
  test('the position in the queue counts only jobs of the same account', async () => {
    const fresh = await world.app.account('latecomer', { requestsPerMinute: null })
    const body = JSON.stringify({ workflow: { '1': { class_type: 'FakeGate', inputs: {} } } })
    const { json } = await fresh.call('/api/v2/jobs', { method: 'POST', body })
    assert.equal(json.queue_position, 1)
    const { json: list } = await fresh.call('/api/v2/jobs')
    assert.deepEqual(
      list.jobs.map(({ id }: { id: string }) => id),
      [json.id],
    )
  })

  test('a rate that is spent answers alike for every id, before anything is looked up', async () => {
    const hasty = await world.app.account('hasty', { requestsPerMinute: 1, requestBurst: 1 })
    const { json } = await world.other.call('/api/v2/jobs?limit=1')
    await hasty.call('/api/v2/jobs')
    const paths = [
      `/api/v2/jobs/${json.jobs[0].id}`,
      `/api/v2/jobs/${crypto.randomUUID()}`,
      '/api/v2/jobs/x',
      `/deployment/${world.deployment}/api/v2/jobs`,
    ]
    const answers = await Promise.all(paths.map((path) => hasty.call(path)))
    for (const answer of answers) {
      assert.equal(answer.status, 429)
      assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
      assert.deepEqual(answer.json, answers[0].json)
    }
  })

  test('the Model Router is not at the address of a deployment, for its owner neither', async () => {
    const { other, deployment } = world
    const headers = { host: `${deployment}.run.example.test` }
    for (const [method, path] of [
      ['GET', '/v2/models'],
      ['POST', '/v2/models/fake/direct'],
      ['POST', '/v2/models/fake/direct/requests'],
    ]) {
      const body = method === 'POST' ? '{}' : undefined
      const below = await other.call(`/deployment/${deployment}${path}`, { method, body })
      const at = await other.call(path, { method, body, headers })
      assert.deepEqual([below.status, at.status], [404, 404], path)
    }
  })

  test('what everybody does together is the operator’s business only', async () => {
    assert.equal((await world.caller.call('/metrics')).status, 401)
  })
})
