/** Weights: which engine has which files, and what is said of a file that is missing. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { after, before, describe, test } from 'node:test'
import { type FleetApp, pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { runInProcess } from '../../support/cli/in-process.ts'
import { call } from '../../support/clients/call.ts'
import { waitUntil } from '../../support/wait-until.ts'

const WEIGHTS = '/api/v2/weights'

describe('the weights of a fleet', () => {
  let app: FleetApp
  before(async () => {
    app = await startFleetApp({
      servers: [
        { checkpoints: ['a.safetensors', 'sub/b.safetensors'] },
        { checkpoints: ['a.safetensors', 'c.safetensors'], without: ['DemoSteps'] },
      ],
    })
    // Engines tell the sizes of their files a moment after they are ready.
    await waitUntil(async () => (await list('')).every(({ size_bytes }) => size_bytes !== null) || null)
  })
  after(() => app[Symbol.asyncDispose]())

  async function list(query: string) {
    const { status, json, text } = await call(app.url, `${WEIGHTS}${query}`)
    assert.equal(status, 200, text)
    return json.weights as {
      engine: string
      folder: string
      name: string
      size_bytes: number | null
      loaded: boolean
    }[]
  }

  test('every file is listed with its engine, folder and size, and not as loaded', async () => {
    const named = (await list('')).filter(({ folder }) => folder === 'checkpoints')
    assert.deepEqual(
      named.map(({ engine, name }) => [engine, name]),
      [
        ['gpu1', 'a.safetensors'],
        ['gpu1', 'sub/b.safetensors'],
        ['gpu2', 'a.safetensors'],
        ['gpu2', 'c.safetensors'],
      ],
    )
    assert.deepEqual(named[0], {
      ...{ engine: 'gpu1', folder: 'checkpoints', name: 'a.safetensors' },
      ...{ size_bytes: 1000, hash: null, loaded: false },
    })
  })

  test('filters and pages give the same files, and a cursor of other filters is refused', async () => {
    const byEngine = await list('?engine=gpu2&folder=checkpoints')
    assert.deepEqual(
      byEngine.map(({ name }) => name),
      ['a.safetensors', 'c.safetensors'],
    )
    assert.deepEqual(
      (await list('?name=a.safetensors')).map(({ engine }) => engine),
      ['gpu1', 'gpu2'],
    )
    const seen = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const query: string = cursor === '' ? '?limit=3' : `?limit=3&cursor=${encodeURIComponent(cursor)}`
      const { json } = await call(app.url, `${WEIGHTS}${query}`)
      seen.push(...json.weights)
      cursor = json.next_cursor
    }
    assert.deepEqual(seen, await list('?limit=1000'))
    const { json } = await call(app.url, `${WEIGHTS}?limit=1`)
    const strange = await call(app.url, `${WEIGHTS}?limit=1&folder=vae&cursor=${encodeURIComponent(json.next_cursor)}`)
    assert.equal(strange.json.error.code, 'invalid_cursor')
    assert.equal((await call(app.url, `${WEIGHTS}?limit=0`)).status, 400)
  })

  test('what a run has loaded is shown as loaded', async () => {
    const id = await app.submit(pictureGraph(1, 'c.safetensors'))
    await app.until(id, 'succeeded')
    const loaded = (await list('')).filter((weight) => weight.loaded)
    assert.deepEqual(
      loaded.map(({ engine, name }) => [engine, name]),
      [['gpu2', 'c.safetensors']],
    )
  })

  test('a file that no engine has is named with its folder', async () => {
    const { status, json } = await submit(pictureGraph(1, 'none.safetensors'))
    assert.equal(status, 422)
    assert.equal(json.error.code, 'invalid_workflow')
    assert.match(json.error.message, /checkpoints\/none\.safetensors/)
    assert.deepEqual(json.error.details.missing_weights, [
      { name: 'none.safetensors', folder: 'checkpoints', node_id: '3', input: 'ckpt_name', engines: [] },
    ])
  })

  test('a file that only an engine without the rest has is named with that engine', async () => {
    const steps = { '4': { class_type: 'DemoSteps', inputs: { steps: 1, ms: 0, preview: false, image: ['1', 0] } } }
    const { status, json } = await submit({ ...pictureGraph(1, 'c.safetensors'), ...steps })
    assert.equal(status, 422)
    const [missing] = json.error.details.missing_weights ?? []
    // Either engine lacks one thing; the one that lacks the file is named here.
    if (missing !== undefined) assert.deepEqual([missing.folder, missing.engines], ['checkpoints', ['gpu2']])
    else assert.match(json.error.message, /DemoSteps/)
  })

  test('a run that finds its weights gone says which file, in which folder, and who has it', async () => {
    // What a server has is read now and then: a file that has just been removed is missed by the run alone.
    app.fleet.cordon('gpu2')
    app.fakes[0]?.install({ checkpoints: ['sub/b.safetensors'] })
    const id = await app.submit(pictureGraph(1, 'a.safetensors'))
    const { error } = await app.until(id, 'failed')
    assert.equal(error.code, 'missing_weights')
    assert.match(error.message, /checkpoints\/a\.safetensors is not on engine gpu1; it is on gpu2/)
    app.fleet.resume('gpu2')
  })

  test('the command line prints the same', async () => {
    const cwd = tmpdir()
    // The refusal of the test before makes the service read again what the engine has, a moment later.
    await waitUntil(async () => (await list('?engine=gpu1')).every(({ name }) => name !== 'a.safetensors') || null)
    const { code, stdout } = await runInProcess(['weights', '--base-url', app.url], { cwd })
    assert.equal(code, 0)
    assert.match(stdout, /^engine +folder +file +size +hash +loaded$/m)
    assert.match(stdout, /^gpu1 +checkpoints +sub\/b\.safetensors +1000 B/m)
    const asJson = await runInProcess(['weights', '--base-url', app.url, '--engine', 'gpu1', '--json'], { cwd })
    assert.deepEqual(JSON.parse(asJson.stdout).weights, await list('?engine=gpu1'))
  })

  function submit(workflow: object) {
    return call(app.url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
  }
})
