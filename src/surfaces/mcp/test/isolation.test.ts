/** The tools in the isolation matrix: every one that can name something, with things of another account, also at deployments. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { atDeployments } from '../../../../test/isolation/at-deployments.ts'
import { testIsolation } from '../../../../test/isolation/run-matrix.ts'
import type { IsolationCase, IsolationRequest, IsolationSurface } from '../../../../test/isolation/surface.ts'
import { makeThings, type Named, type Things } from '../../../../test/isolation/surfaces/jobs-v2-things.ts'
import { openWorld, type World } from '../../../../test/isolation/world.ts'
import { waitUntil } from '../../../../test/support/wait-until.ts'
import { connectAgent } from './agent-client.ts'

const MODEL = 'fake/direct'
// They name nothing that somebody could own.
const HARMLESS = [
  ...['find_node_classes', 'get_node_class', 'find_weights', 'find_models', 'get_model_schema', 'estimate_model'],
  ...['run_model', 'convert_workflow', 'upload_file'],
  // The queue of an account is its own, and named by no one.
  'pause_queue',
  // Schedules that are made or listed are the caller's own.
  ...['list_schedules', 'create_schedule'],
  // Everybody's, of the service itself.
  ...['run_composite', 'run_resize', 'run_text_card'],
]

const asked: string[] = []

const tools: IsolationSurface = {
  name: 'the tools of agents',
  spec: null,
  harmless: [],
  lists: [],
  async prepare(world) {
    const things = await makeThings(world)
    const schedule = await makeSchedule(world)
    const cases = [
      ...byId(things),
      ...bySchedule(schedule),
      ...byRequest(await callModel(world)),
      ...byWorkflow(things),
    ]
    asked.push(...cases.map(({ operation }) => operation))
    const everywhere = cases.flatMap((each) => [each, ...atDeployments(each, world)])
    return { cases: everywhere, owned: ['/api/v2/jobs'] }
  },
  async settle({ caller }, { status, text }) {
    // What a submit gave is waited for, so that the next answer does not depend on how far it is.
    const [id] = status === 200 && text.includes('queued') ? (/[0-9a-f-]{36}/.exec(text) ?? []) : []
    if (id !== undefined) await caller.call(`/api/v2/jobs/${id}/events`)
  },
}

function say(method: string, params: object): IsolationRequest {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  return { method: 'POST', path: '/mcp', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) }
}

function use(operation: string, { title, foreign, unknown }: Named, input: (name: string) => object): IsolationCase {
  const at = (name: string) => say('tools/call', { name: operation, arguments: input(name) })
  return { operation, title: `${operation} of ${title}`, foreign: at(foreign), unknown: at(unknown) }
}

function read(kind: string, { title, foreign, unknown }: Named): IsolationCase {
  const at = (id: string) => say('resources/read', { uri: `atelier://${kind}/${id}` })
  return { operation: 'resources/read', title: `reading ${title}`, foreign: at(foreign), unknown: at(unknown) }
}

function byId({ jobs, assets }: Things): IsolationCase[] {
  return [
    ...jobs.flatMap((job) => [
      use('get_job', job, (id) => ({ job_id: id })),
      use('watch_job', job, (id) => ({ job_id: id, wait_seconds: 0 })),
      use('move_job', job, (id) => ({ job_id: id, move: 'front' })),
      use('cancel_job', job, (id) => ({ job_id: id })),
      read('jobs', job),
    ]),
    ...assets.flatMap((asset) => [use('get_output', asset, (id) => ({ asset_id: id })), read('outputs', asset)]),
    use('list_jobs', jobs[0], (cursor) => ({ cursor })),
  ]
}

function bySchedule(schedule: Named): IsolationCase[] {
  return [
    use('get_schedule', schedule, (id) => ({ schedule_id: id })),
    use('control_schedule', schedule, (id) => ({ schedule_id: id, action: 'pause' })),
    use('remove_schedule', schedule, (id) => ({ schedule_id: id })),
  ]
}

async function makeSchedule({ other }: World): Promise<Named> {
  const workflow = { 1: { class_type: 'FakeSave', inputs: { text: 'theirs' } } }
  const body = JSON.stringify({ name: 'theirs', cron: '@yearly', workflow })
  const made = await other.call('/api/v2/schedules', { method: 'POST', body })
  return { title: 'a schedule', foreign: made.json.id as string, unknown: crypto.randomUUID() }
}

function byRequest(request: Named): IsolationCase[] {
  const named = (id: string) => ({ model: MODEL, request_id: id })
  return [
    use('get_model_result', request, (id) => ({ ...named(id), wait_seconds: 0 })),
    use('cancel_model_call', request, named),
  ]
}

function byWorkflow({ assets, hashes }: Things): IsolationCase[] {
  const load = (info: object) => ({ 1: { class_type: 'FakeLoad', inputs: { image: { __type: 'core/ASSET', info } } } })
  const save = { 1: { class_type: 'FakeSave', inputs: { text: 'mine' } } }
  const key = { title: 'a key that somebody used', foreign: 'key-of-other', unknown: 'key-of-nobody' }
  return [
    ...['submit_workflow', 'validate_workflow'].flatMap((tool) => [
      use(tool, assets[0], (id) => ({ workflow: load({ id }) })),
      use(tool, hashes[0], (hash) => ({ workflow: load({ hash }) })),
    ]),
    use('submit_workflow', key, (idempotency_key) => ({ workflow: save, idempotency_key })),
  ]
}

async function callModel({ other }: World): Promise<Named> {
  const begun = await other.call(`/v2/models/${MODEL}/requests`, { method: 'POST', body: '{"prompt":"x"}' })
  const id = begun.json.request_id as string
  await waitUntil(
    async () => (await other.call(`/v2/models/${MODEL}/requests/${id}/status`)).json.status === 'COMPLETED',
  )
  return { title: 'a call of a model', foreign: id, unknown: crypto.randomUUID() }
}

let world: World
before(async () => {
  world = await openWorld()
})
after(() => world[Symbol.asyncDispose]())

testIsolation(tools, () => world)

describe('the address of a deployment', () => {
  test('every tool has a case, and those of models are not there', async () => {
    const { app, caller, other, deployment } = world
    const names = async (url: string, key = other.key) => {
      await using agent = await connectAgent({ url, key, way: 'http' })
      return (await agent.client.listTools()).tools.map(({ name }) => name)
    }
    const everywhere = await names(app.url)
    // An endpoint is a tool of its own account only.
    assert.ok(everywhere.includes('run_theirs') && !(await names(app.url, caller.key)).includes('run_theirs'))
    assert.deepEqual(
      everywhere.filter((name) => !asked.includes(name) && !HARMLESS.includes(name) && name !== 'run_theirs'),
      [],
    )
    const here = await names(`${app.url}/deployment/${deployment}`)
    assert.deepEqual(
      here,
      everywhere.filter((name) => !/_models?(_|$)/.test(name)),
    )
  })

  test('its jobs are submitted, found and shown there, and no others', async () => {
    const { app, other, deployment } = world
    const url = `${app.url}/deployment/${deployment}`
    // The account runs one job at a time, and the one that the matrix named does not end by itself.
    const { jobs } = (await other.call('/api/v2/jobs?status=running,queued')).json
    for (const { id } of jobs) await other.call(`/api/v2/jobs/${id}/cancel`, { method: 'POST' })
    await using there = await connectAgent({ url, key: other.key, way: 'http' })
    const workflow = {
      1: { class_type: 'FakeFile', inputs: { filename: 'a.txt', folder: 'output', key: 'text', text: 'made there' } },
    }
    const { json } = await there.use('submit_workflow', { workflow })
    const watched = await there.use('watch_job', { job_id: json.id })
    assert.equal(watched.json.status, 'succeeded', watched.text)
    const [output] = watched.json.outputs
    assert.ok(output.url.startsWith(`${url}/`), output.url)
    assert.equal((await there.use('get_output', { asset_id: output.asset_id })).text, 'made there')
    const listed = (await there.use('list_jobs', { limit: 50 })).json.jobs.map(({ id }) => id)
    assert.ok(listed.includes(json.id))
    for (const { id } of jobs) {
      assert.ok(!listed.includes(id))
      assert.ok((await there.use('get_job', { job_id: id })).isError)
    }
  })

  test('the address of one that another account has is refused as one that never was', async () => {
    const { app, caller, deployment } = world
    for (const id of [deployment, 'nowhere'])
      await assert.rejects(
        connectAgent({ url: `${app.url}/deployment/${id}`, key: caller.key, way: 'http' }),
        /there is no deployment under this address/,
      )
  })
})
