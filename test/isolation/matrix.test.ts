/**
 * Nobody sees anybody else's work: for every operation of every surface, whatever names something of another account gets the
 * very answer of something that never existed: the same status, the same headers in the same order, the same bytes.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../support/start-shared.ts'
import { ask, differences, toComparable } from './compare.ts'
import type { IsolationCase, IsolationSurface, World } from './surface.ts'
import { admin } from './surfaces/admin.ts'
import { content } from './surfaces/content.ts'
import { jobsV2 } from './surfaces/jobs-v2.ts'

const SURFACES: readonly IsolationSurface[] = [jobsV2, content, admin]
const DEPLOYMENT = 'theirs'

let app: SharedApp
let world: World
before(async () => {
  app = await startShared({ kind: 'serverless', deploymentsDomain: 'example.test' })
  const limits = { requestsPerMinute: null, concurrentJobs: 1 }
  const [caller, other]: Tenant[] = [await app.account('caller', limits), await app.account('owner', limits)]
  await app.admin('POST', '/deployments', { id: DEPLOYMENT, account_id: other.id, workers: 1 })
  await app.untilDeployment(DEPLOYMENT, 'ready')
  world = { app, caller, other, deployment: DEPLOYMENT }
})
after(() => app[Symbol.asyncDispose]())

for (const surface of SURFACES) {
  describe(`isolation of ${surface.name}`, () => {
    let cases: readonly IsolationCase[]
    before(async () => {
      cases = await surface.cases(world)
    })

    test('every operation of the contract has a case', () => {
      const covered = new Set([...cases.map(({ operation }) => operation), ...surface.harmless])
      assert.deepEqual(
        operationsOf(surface).filter((operation) => !covered.has(operation)),
        [],
      )
    })

    test('somebody else’s things look exactly like things that never existed', async () => {
      assert.ok(cases.length > 0)
      const differing: object[] = []
      for (const each of cases) {
        const said = differences(each.foreign, each.unknown)
        const foreign = toComparable(await ask(world, each.foreign), said)
        const unknown = toComparable(await ask(world, each.unknown), said)
        if (JSON.stringify(foreign) !== JSON.stringify(unknown)) differing.push({ case: each.title, foreign, unknown })
      }
      assert.deepEqual(differing, [])
    })

    test('what was asked for by a stranger has changed nothing', async () => {
      const { json } = await world.other.call('/api/v2/jobs')
      const statuses = json.jobs.map(({ status }: { status: string }) => status).sort()
      assert.deepEqual(statuses, ['failed', 'queued', 'running', 'succeeded', 'succeeded'])
    })
  })
}

describe('isolation of what is shared by all', () => {
  test('a place in the queue counts one’s own jobs only', async () => {
    const fresh = await app.account('latecomer', { requestsPerMinute: null })
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
    const hasty = await app.account('hasty', { requestsPerMinute: 1, requestBurst: 1 })
    const { json } = await world.other.call('/api/v2/jobs?limit=1')
    await hasty.call('/api/v2/jobs')
    const paths = [
      `/api/v2/jobs/${json.jobs[0].id}`,
      `/api/v2/jobs/${crypto.randomUUID()}`,
      '/api/v2/jobs/x',
      `/deployment/${DEPLOYMENT}/api/v2/jobs`,
    ]
    const answers = await Promise.all(paths.map((path) => hasty.call(path)))
    for (const answer of answers) {
      assert.equal(answer.status, 429)
      assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
      assert.deepEqual(answer.json, answers[0].json)
    }
  })

  test('what everybody does together is the operator’s business only', async () => {
    assert.equal((await world.caller.call('/metrics')).status, 401)
  })
})

function operationsOf({ spec }: IsolationSurface): string[] {
  if (spec === null) return []
  const { paths } = JSON.parse(readFileSync(new URL(`../../${spec}`, import.meta.url), 'utf8')) as {
    paths: Record<string, Record<string, { operationId?: string }>>
  }
  return Object.values(paths).flatMap((item) => Object.values(item).flatMap(({ operationId }) => operationId ?? []))
}
