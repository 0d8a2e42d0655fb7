/** Workers that are bound to pools: a deployment without workers of its own is run by the processes that name it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { SpawnedServer } from '../../support/app/spawn-server.ts'
import { call } from '../../support/clients/call.ts'
import { saveGraph } from '../../support/clients/legacy-graphs.ts'
import { askAdmin, openRoleProcesses, type RoleProcesses } from '../../support/cluster/role-processes.ts'
import { waitUntil } from '../../support/wait-until.ts'

describe('pools of a service', () => {
  const stack = new AsyncDisposableStack()
  let processes: RoleProcesses
  let api: SpawnedServer
  let headers: Record<string, string>

  before(async () => {
    processes = stack.use(await openRoleProcesses(['--kind', 'cloud']))
    api = await processes.api()
    const made = await askAdmin(api, '/accounts', {
      method: 'POST',
      body: JSON.stringify({
        id: 'team',
        limits: { concurrentJobs: 2, requestsPerMinute: null, creditFloorMicros: null },
      }),
    })
    assert.equal(made.status, 201, made.text)
    const key = (await askAdmin(api, '/accounts/team/keys', { method: 'POST', body: '{}' })).json.text
    headers = { authorization: `Bearer ${key}` }
  })
  after(() => stack.disposeAsync())

  const poolOf = async (pool: string) => (await askAdmin(api, `/pools/${pool}`)).json
  const jobsAt = `/deployment/faces/api/v2/jobs`

  test('a deployment wants its first worker, gets one that names it, and sleeps while that is gone', async () => {
    const body = JSON.stringify({ id: 'faces', workers: 0 })
    assert.equal((await askAdmin(api, '/deployments', { method: 'POST', body })).status, 201)
    assert.partialDeepStrictEqual(await poolOf('faces'), { queued: 0, workers: 0, wanted_workers: 1 })
    const engine = ['--embedded', 'on', '--workers', '2']
    const common = await processes.worker([...engine, '--pools', 'default'])
    await waitUntil(async () => (await poolOf('default')).workers === 2)
    assert.equal((await poolOf('faces')).workers, 0, 'a worker of another pool does not count')
    const named = await processes.worker([...engine, '--pools', 'faces'])
    await waitUntil(async () => (await askAdmin(api, '/deployments/faces')).json.state === 'ready')
    await waitUntil(async () => (await poolOf('faces')).workers === 2)
    assert.equal(await named.terminate(), 0)

    const submit = () =>
      call(api.url, jobsAt, { method: 'POST', headers, body: JSON.stringify({ workflow: saveGraph(1) }) })
    const answers = await waitUntil(async () => {
      const answer = await submit()
      return answer.status === 201 ? [answer, await submit(), await submit()] : null
    })
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 201, 201],
    )
    // Three wait, and the account may run two at a time.
    assert.partialDeepStrictEqual(await poolOf('faces'), { queued: 3, workers: 0, wanted_workers: 2 })
    await using next = await processes.worker([...engine, '--pools', 'faces'])
    for (const { json } of answers) {
      await waitUntil(
        async () => (await call(api.url, `${jobsAt}/${json.id}`, { headers })).json.status === 'succeeded',
      )
    }
    assert.partialDeepStrictEqual(await poolOf('faces'), { queued: 0, running: 0, wanted_workers: 0 })
    await next.terminate()
    await common.terminate()
  })
})
