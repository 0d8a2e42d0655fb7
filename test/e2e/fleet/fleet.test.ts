/** One API in front of several ComfyUI servers: jobs find the server that can run them, and outlive the one that dies. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { call } from '../../support/clients/call.ts'
import { openSpecChecks } from '../../support/clients/check-against-spec.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { shortBounds } from '../../support/engines/comfy-test-bounds.ts'

const { checkAgainstSpec } = openSpecChecks('admin.openapi.json')

import { waitUntil } from '../../support/wait-until.ts'

const ADMIN_TOKEN = 'an-admin-token-of-some-length'
const TWO = [{ checkpoints: ['a.safetensors'] }, { checkpoints: ['a.safetensors', 'b.safetensors'] }]

describe('a fleet of ComfyUI servers', () => {
  test('runs jobs, keeps their bytes, and leaves nothing in the servers', async () => {
    await using app = await startFleetApp({ servers: TWO })
    const ids = await Promise.all(Array.from({ length: 12 }, (_, color) => app.submit(pictureGraph(color))))
    const jobs = await Promise.all(ids.map((id) => app.until(id, 'succeeded')))
    for (const job of jobs) {
      assert.equal(job.outputs.length, 1)
      const content = await call(app.url, new URL(job.outputs[0].url).pathname)
      assert.equal(content.status, 200)
      assert.equal(content.bytes.length, job.outputs[0].size_bytes)
    }
    const counts = app.fakes.map(({ executions }) => executions.length)
    assert.equal(counts[0] + counts[1], 12, 'each job ran once')
    assert.ok(Math.min(...counts) > 0, 'both servers had their share')
  })

  test('sends a job only where its weights are', async () => {
    await using app = await startFleetApp({ servers: TWO })
    const ids = await Promise.all(
      Array.from({ length: 6 }, (_, color) => app.submit(pictureGraph(color, 'b.safetensors'))),
    )
    await Promise.all(ids.map((id) => app.until(id, 'succeeded')))
    assert.deepEqual(
      app.fakes.map(({ executions }) => executions.length),
      [0, 6],
    )
  })

  test('refuses what no server can run, and names every missing class and file at its node', async () => {
    await using app = await startFleetApp({
      servers: [{ checkpoints: ['a.safetensors'], without: ['ImageInvert'] }, { checkpoints: ['b.safetensors'] }],
    })
    const workflow = {
      ...pictureGraph(1, 'nobody.safetensors'),
      '7': { class_type: 'NoSuchNode', inputs: {} },
      '8': { class_type: 'NeitherThis', inputs: {} },
    }
    const refused = await call(app.url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
    assert.equal(refused.status, 422)
    assert.equal(refused.json.error.code, 'invalid_workflow')
    const named = Object.entries(
      refused.json.error.details.node_errors as Record<string, { field: string; reason: string }[]>,
    )
    assert.deepEqual(named.map(([id, [{ field, reason }]]) => [id, field, reason]).sort(), [
      ['3', 'ckpt_name', 'value_not_in_list'],
      ['7', '', 'missing_node_type'],
      ['8', '', 'missing_node_type'],
    ])
    // Each part is there, but on different servers.
    const split = {
      ...pictureGraph(1, 'a.safetensors'),
      '4': { class_type: 'ImageInvert', inputs: { image: ['1', 0] } },
      '5': { class_type: 'SaveImage', inputs: { images: ['4', 0], filename_prefix: 'y' } },
    }
    const apart = await call(app.url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow: split }) })
    assert.equal(apart.status, 422)
    assert.match(apart.json.error.message, /no engine that has the rest/)
  })

  test('a job whose server is killed moves to another one and ends once', async () => {
    await using app = await startFleetApp({ servers: TWO, bounds: shortBounds('refusedMs') })
    for (const fake of app.fakes) fake.hold('running')
    const id = await app.submit(pictureGraph(7))
    const prompts = app.fakes.map((fake, index) => fake.held('running').then(() => index))
    const first = await Promise.race(prompts)
    await app.fakes[first][Symbol.asyncDispose]()
    await app.fakes[1 - first].held('running')
    app.fakes[1 - first].release('running')
    const job = await app.until(id, 'succeeded')
    assert.equal(job.outputs.length, 1)
    assert.deepEqual(
      app.fakes.map(({ executions }) => executions.length),
      [1, 1],
      'one execution per attempt',
    )
    const [gone] = app.service.app.fleet.status().filter(({ id: engine }) => engine === `gpu${first + 1}`)
    assert.equal(gone.state, 'lost')
    assert.notEqual(gone.lastError, null)
  })

  test('accepts and queues what only an absent server can run, and runs it when that is back', async () => {
    await using app = await startFleetApp({ servers: TWO })
    const { fleet } = app.service.app
    const noticed = new Promise<void>((resolve) => {
      fleet.onChange(() => {
        if (fleet.status().some(({ state }) => state === 'lost')) resolve()
      })
    })
    const accepted = Promise.withResolvers<void>()
    const back = app.fakes[1].restart({ downUntil: accepted.promise })
    await noticed
    const id = await app.submit(pictureGraph(3, 'b.safetensors'))
    assert.equal((await call(app.url, `/api/v2/jobs/${id}`)).json.status, 'queued')
    accepted.resolve()
    await back
    assert.equal((await app.until(id, 'succeeded')).outputs.length, 1)
  })

  test('a running job is canceled on its server, and nobody else is disturbed', async () => {
    await using app = await startFleetApp({ servers: TWO })
    for (const fake of app.fakes) fake.hold('running')
    const ids = [await app.submit(pictureGraph(1)), await app.submit(pictureGraph(2))]
    await Promise.all(app.fakes.map((fake) => fake.held('running')))
    await Promise.all(ids.map((id) => app.until(id, 'running')))
    const cancel = await call(app.url, `/api/v2/jobs/${ids[0]}/cancel`, { method: 'POST' })
    assert.equal(cancel.json.status, 'canceling')
    await app.until(ids[0], 'canceled')
    for (const fake of app.fakes) fake.release('running')
    await app.until(ids[1], 'succeeded')
  })

  test('any number of viewers of one job cost its server one socket', async () => {
    await using app = await startFleetApp({ servers: [{}] })
    const [fake] = app.fakes
    fake.hold('running')
    const id = await app.submit(pictureGraph(1))
    await fake.held('running')
    const readers = Array.from({ length: 100 }, () => openEvents(app.url, `/api/v2/jobs/${id}/events`))
    await Promise.all(readers.map(({ head }) => head))
    assert.equal(fake.sockets.open, 1)
    fake.release('running')
    const ends = await Promise.all(readers.map((reader) => reader.rest()))
    for (const frames of ends) assert.equal(frames.at(-1)?.data.status, 'succeeded')
    assert.equal(fake.sockets.total, 1)
  })

  test('metrics tell of every engine', async () => {
    await using app = await startFleetApp({ servers: TWO })
    await app.until(await app.submit(pictureGraph(1)), 'succeeded')
    const { text } = await call(app.url, '/metrics')
    assert.match(text, /atelier_engine_state\{engine="gpu1",state="ready"\} 1/)
    assert.match(text, /atelier_engine_jobs\{engine="gpu[12]"\} 1/)
  })

  test('a server that we did not start has an observed release, which is another one when it has other packs', async () => {
    const servers = [{ checkpoints: ['a.safetensors'] }, { checkpoints: ['a.safetensors'] }]
    await using app = await startFleetApp({ servers, adminToken: ADMIN_TOKEN })
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    const read = async (method: 'GET' | 'POST', at: string) => {
      const { status, json } = await call(app.url, `/admin/v1${at}`, { method, headers })
      checkAgainstSpec(method, `/admin/v1${at}`, status, json)
      return json.engines.map((engine: { observed_release: object }) => engine.observed_release)
    }
    const [first, second] = await waitUntil(async () => {
      const seen = await read('GET', '/engines')
      return seen[0]?.id === seen[1]?.id && seen
    })
    assert.deepEqual([first.python, first.torch, first.packs], ['3.12', '2.9', ['demo']])
    app.fakes[0]?.install({ packs: { Glow: 'custom_nodes.glow' } })
    const [changed, same] = await read('POST', '/engine-catalog/refresh')
    assert.deepEqual([changed.packs, same.id], [['demo', 'glow'], second.id])
    assert.notEqual(changed.id, first.id)
  })

  test('an operator sees every engine, and cordons, drains and resumes one', async () => {
    await using app = await startFleetApp({ servers: TWO, adminToken: ADMIN_TOKEN })
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    const ask = async (method: string, template: string, id = '') => {
      const answer = await call(app.url, `/admin/v1${template.replace('{id}', id)}`, { method, headers })
      checkAgainstSpec(method, `/admin/v1${template}`, answer.status, answer.json)
      return answer
    }
    const { json: list } = await ask('GET', '/engines')
    assert.deepEqual(
      list.engines.map((engine: { id: string; state: string; weights: number }) => [
        engine.id,
        engine.state,
        engine.weights,
      ]),
      [
        ['gpu1', 'ready', 1],
        ['gpu2', 'ready', 2],
      ],
    )
    const { json: catalog } = await ask('GET', '/engine-catalog')
    assert.deepEqual(catalog.weights, { 'a.safetensors': ['gpu1', 'gpu2'], 'b.safetensors': ['gpu2'] })
    assert.deepEqual(catalog.node_classes.SaveImage, ['gpu1', 'gpu2'])
    assert.equal((await ask('POST', '/engines/{id}/cordon', 'gpu1')).json.state, 'cordoned')
    await app.until(await app.submit(pictureGraph(1)), 'succeeded')
    assert.equal((await ask('GET', '/engines/{id}', 'gpu1')).json.jobs, 0)
    assert.equal((await ask('POST', '/engines/{id}/resume', 'gpu1')).json.state, 'ready')
    assert.equal(
      (await ask('POST', '/engines/{id}/drain', 'gpu2')).json.state,
      'cordoned',
      'there was nothing to wait for',
    )
    assert.equal((await ask('POST', '/engines/{id}/drain', 'gpu9')).status, 404)
    assert.equal((await call(app.url, '/admin/v1/engines')).status, 401)
  })
})
