/** One model that three providers serve: who is asked, when another one is, and what callers are told of it. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import {
  type Fault,
  PAINTER,
  PAINTERS,
  type Painter,
  type PainterName,
  startPainter,
  writePainters,
} from '../../support/providers/painters.ts'
import { waitUntil } from '../../support/wait-until.ts'

let app: TestApp
let painters: Readonly<Record<PainterName, Painter>>
let start: () => Promise<TestApp>
let rewrite: (routing: object) => Promise<void>
const faults: Record<PainterName, Fault> = { north: 'none', south: 'none', west: 'none' }
const stack = new AsyncDisposableStack()

before(async () => {
  const started = PAINTERS.map(async (name) => [name, stack.use(await startPainter(name, () => faults[name]))] as const)
  painters = Object.fromEntries(await Promise.all(started)) as Record<PainterName, Painter>
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const addresses = { north: painters.north.url, south: painters.south.url, west: painters.west.url }
  const { catalog, providers, settings } = await writePainters(folder, addresses)
  // Each test begins with providers of which nobody knows anything yet.
  start = () => startTestApp({ settings: { providers, catalogs: catalog, 'router-deadline': '5s' } })
  rewrite = async (routing) => {
    await writeFile(providers, JSON.stringify({ ...settings, '*': { ...settings['*'], routing } }))
    assert.equal((await app.app.reloadModels()).outcome, 'reloaded')
  }
})
after(() => stack.disposeAsync())
afterEach(() => app[Symbol.asyncDispose]())
beforeEach(async () => {
  app = await start()
  for (const name of PAINTERS) {
    faults[name] = 'none'
    painters[name].made.clear()
  }
})

interface Told {
  readonly status: number
  readonly by: string | undefined
  readonly fallback: string | null
  readonly dropped: readonly string[] | null
  readonly type: string | null
  readonly detail: unknown
  readonly isReplay: boolean
}

async function run(input: object = {}, query = '', key: string = randomUUID(), at = PAINTER): Promise<Told> {
  const answer = await fetch(`${app.url}/v2/models/${at}${query}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ prompt: `a fox ${randomUUID()}`, ...input }),
  })
  return toTold(answer)
}

async function toTold(answer: Response): Promise<Told> {
  const body = (await answer.json()) as { by?: string; detail?: unknown }
  const dropped = answer.headers.get('x-comfy-router-dropped-params')
  return {
    status: answer.status,
    by: body.by,
    fallback: answer.headers.get('x-comfy-router-fallback-provider'),
    dropped: dropped === null ? null : (JSON.parse(dropped) as string[]),
    type: answer.headers.get('x-comfy-error-type'),
    detail: body.detail,
    isReplay: answer.headers.has('idempotent-replayed'),
  }
}

const made = () => PAINTERS.map((name) => [...painters[name].made.values()].reduce((sum, count) => sum + count, 0))

test('the model’s own provider serves, and nothing is said of others', async () => {
  const told = await run({ tone: 'warm' })
  assert.deepEqual([told.status, told.by, told.fallback, told.dropped], [200, 'north', null, null])
  assert.deepEqual(made(), [1, 0, 0])
})

test('a provider that takes no call is followed by the next, in the form of the model, and so is its replay', async () => {
  for (const fault of ['forbidden', 'overloaded'] as const) {
    faults.north = fault
    const [prompt, key] = [`a fox ${fault}`, randomUUID()]
    const told = await run({ prompt, tone: 'warm' }, '', key)
    assert.deepEqual([told.status, told.by, told.fallback], [200, 'south', 'south'], JSON.stringify(told))
    assert.deepEqual(told.dropped, ['tone (south knows no tones — none at all)'])
    const again = await run({ prompt, tone: 'warm' }, '', key)
    assert.deepEqual([again.status, again.fallback, again.dropped, again.isReplay], [200, 'south', told.dropped, true])
  }
  assert.deepEqual(made(), [0, 2, 0])
})

test('with two that take no call the third serves; a field that the second cannot do leaves it out', async () => {
  faults.north = 'overloaded'
  assert.equal((await run({ size: '128x64' })).by, 'west', 'south paints no picture of that width')
  faults.south = 'forbidden'
  assert.equal((await run()).by, 'west')
  assert.deepEqual(made(), [0, 0, 2])
})

test('after anything that may have begun a generation nobody else is asked', async () => {
  for (const fault of ['500 before', '502 before', '500 after', '503 after', 'garbage', 'half', 'reset'] as const) {
    faults.north = fault
    const told = await run()
    assert.equal(told.status, 502, fault)
    assert.equal(told.fallback, null)
    // Else the provider would be left out after a few.
    faults.north = 'none'
    for (let sent = 0; sent < 2; sent++) assert.equal((await run()).by, 'north')
  }
  const [, south, west] = made()
  assert.deepEqual([south, west], [0, 0])
})

test('only the exact false keeps a call from a second provider', async () => {
  faults.north = 'forbidden'
  assert.equal((await run({}, '?fallback_provider=false')).status, 502)
  for (const word of ['False', '0', 'no', 'off', '', 'true'])
    assert.equal((await run({}, `?fallback_provider=${word}`)).by, 'south', word)
})

test('a call names its provider, and an input that this one cannot serve is refused by its field', async () => {
  const told = await run({ tone: 'cold' }, '?model_provider=west')
  assert.deepEqual([told.by, told.fallback, told.dropped], ['west', null, ['tone (west chooses it by itself)']])
  for (const [field, input] of [
    ['mask', { mask: 'x' }],
    ['size', { size: '128x64' }],
    ['hue', { hue: 1 }],
  ] as const) {
    const refused = await run(input, '?model_provider=south')
    assert.deepEqual([refused.status, refused.type], [422, 'invalid_input'])
    assert.deepEqual((refused.detail as { loc: string[] }[])[0]?.loc, ['body', field])
  }
  assert.equal((await run({}, '?model_provider=runware')).status, 404)
  assert.equal((await run({}, '?model_provider=bfl')).status, 404)
  assert.deepEqual(
    [(await run({}, '?model_provider=nobody')).status, (await run({}, '?model_provider=')).status],
    [400, 400],
  )
  for (const own of ['default', 'comfy', 'comfyui']) assert.equal((await run({}, `?model_provider=${own}`)).by, 'north')
})

test('a strict call is in the provider’s own form both ways, and never goes elsewhere', async () => {
  const query = '?model_provider=south&strict_mode=true'
  const answer = await fetch(`${app.url}/v2/models/${PAINTER}${query}`, {
    method: 'POST',
    body: JSON.stringify({ text: 'a strict fox' }),
  })
  assert.deepEqual(Object.keys((await answer.json()) as object), ['images'])
  assert.equal((await run({}, query)).status, 422, 'the form of the model is another one')
  faults.south = 'forbidden'
  assert.equal((await run({ text: 'a fox', prompt: undefined }, query)).status, 502)
})

test('the result of a queued call tells the same', async () => {
  faults.north = 'overloaded'
  const queued = await fetch(`${app.url}/v2/models/${PAINTER}/requests`, {
    method: 'POST',
    body: JSON.stringify({ prompt: 'a queued fox', tone: 'warm' }),
  })
  const { response_url: url } = (await queued.json()) as { response_url: string }
  const result = await waitUntil(async () => {
    const answer = await fetch(url)
    return answer.status === 202 ? false : answer
  })
  const told = await toTold(result)
  assert.deepEqual([told.status, told.by, told.fallback, told.dropped?.length], [200, 'south', 'south', 1])
})

test('documents name who serves a model, and whom a model stands in for', async () => {
  const read = async (id: string) =>
    (await (await fetch(`${app.url}/v2/models/${id}/openapi.json`)).json()) as Record<string, unknown>
  assert.deepEqual((await read(PAINTER))['x-comfy-router-alt-providers'], [
    { provider: 'south', model_id: 'south/north-painter' },
    { provider: 'west', model_id: 'west/north-painter' },
  ])
  const alias = await read('west/north-painter')
  assert.equal(alias['x-comfy-router-alias-of'], PAINTER)
  assert.equal(alias['x-comfy-router-alias-provider'], 'west')
  assert.equal(
    (await run({ words: 'by itself', prompt: undefined }, '', randomUUID(), 'west/north-painter')).status,
    200,
  )
})

test('an operator orders the providers of a model, and leaves some out', async () => {
  await rewrite({ [PAINTER]: { by: 'listed', providers: ['west', 'north'] } })
  const told = await run()
  assert.deepEqual([told.by, told.fallback], ['west', 'west'])
  faults.west = 'forbidden'
  assert.equal((await run()).by, 'north')
  faults.north = 'forbidden'
  assert.equal((await run()).status, 502, 'south is not in the list')
  await rewrite({ '*': { by: 'cheapest' } })
  assert.equal((await run()).by, 'south', 'the cheapest that takes it')
  await rewrite({})
})

test('a provider that keeps failing is left out for a while, and calls cost nothing to find that out', async () => {
  faults.north = '500 before'
  for (let sent = 0; sent < 5; sent++) await run()
  const before = painters.north.requests
  assert.equal((await run()).by, 'south')
  assert.equal(painters.north.requests, before)
})

test('a model that one provider alone may serve is left out in the same way, and its callers are told when to come back', async () => {
  faults.north = '500 before'
  for (let sent = 0; sent < 5; sent++) assert.equal((await run({}, '?fallback_provider=false')).status, 502)
  const before = painters.north.requests
  faults.north = 'none'
  const answer = await fetch(`${app.url}/v2/models/${PAINTER}?fallback_provider=false`, {
    method: 'POST',
    body: JSON.stringify({ prompt: 'a fox in a pause' }),
  })
  assert.equal(answer.status, 503)
  assert.equal(answer.headers.get('x-comfy-error-type'), 'service_unavailable')
  const seconds = Number(answer.headers.get('retry-after'))
  assert.ok(seconds > 0 && seconds <= 30, `${seconds}`)
  assert.equal(painters.north.requests, before, 'nothing is sent to find out')
})
