import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { bflFake } from '../../../../test/support/providers/fake-providers/bfl.ts'
import { type NodeService, startNodeService } from './node-service.ts'

let service: NodeService
before(async () => {
  service = await startNodeService([bflFake])
})
after(() => service[Symbol.asyncDispose]())
beforeEach(() => service.fakeOf(bflFake).reset('success'))

const ULTRA = '/proxy/bfl/flux-pro-1.1-ultra/generate'
const BODY = { prompt: 'a lighthouse', seed: 1, aspect_ratio: '16:9', raw: false, safety_tolerance: 6 }

/** Asks until the provider says that it is done, as `poll_op` does. */
async function follow(polling: string): Promise<{ status: string; result: { sample: string } | null }> {
  for (;;) {
    const answer = await service.send('GET', polling)
    assert.equal(answer.status, 200, await answer.clone().text())
    const document = (await answer.json()) as { status: string; result: { sample: string } | null }
    if (document.status === 'Ready') return document
  }
}

test('a node submits, follows its task by itself, and is charged once at the end', async () => {
  const fake = service.fakeOf(bflFake)
  const submitted = await service.send('POST', ULTRA, BODY)
  assert.equal(submitted.status, 200, await submitted.clone().text())
  const task = (await submitted.json()) as { id: string; polling_url: string; cost: number }
  // Relative, so that the node asks this service, with its key.
  assert.deepEqual(task, {
    id: 'task-1',
    polling_url: '/proxy/bfl/get_result?id=task-1',
    cost: 3,
    input_mp: 0,
    output_mp: 1,
  })
  const { result } = await follow(task.polling_url)
  assert.match(result?.sample ?? '', /delivery\.bfl\.ai/)
  assert.equal(await service.charged(), 60_000)
  const [submit] = fake.requests
  assert.equal(submit?.path, '/v1/flux-pro-1.1-ultra')
  assert.deepEqual(submit?.json, BODY)
  assert.equal(submit?.headers['x-key'], 'fake-bfl-key')
  assert.equal(submit?.headers['x-api-key'], undefined)
  assert.equal(fake.generations, 1)
})

test('what is not known, not paid for or not allowed is refused, and nothing is sent', async () => {
  const fake = service.fakeOf(bflFake)
  const tries: [number, string, Promise<Response>][] = [
    [401, 'unauthorized', service.send('POST', ULTRA, BODY, { 'x-api-key': 'comfyui-somebody-elses' })],
    [401, 'unauthorized', fetch(service.test.url + ULTRA, { method: 'POST', body: JSON.stringify(BODY) })],
    [401, 'unauthorized', service.send('POST', ULTRA, BODY, { 'x-api-key': 'atelier-run-made.up.token' })],
    [404, 'not_found', service.send('POST', '/proxy/bfl/flux-pro-1.1-ultra/delete', BODY)],
    [404, 'not_found', service.send('POST', '/proxy/bfl/..%2fv1%2fcredits/generate', BODY)],
    [404, 'not_found', service.send('POST', '/proxy/nobody/images', BODY)],
    [404, 'unknown_model', service.send('POST', '/proxy/bfl/flux-dev/generate', BODY)],
    [405, 'wrong_method', service.send('GET', ULTRA)],
    [400, 'invalid_request', service.send('GET', '/proxy/bfl/get_result?id=x&webhook=1')],
    [400, 'malformed', service.send('GET', '/proxy/bfl/get_result')],
    [404, 'unknown_request', service.send('GET', '/proxy/bfl/get_result?id=task-99')],
    [400, 'malformed', service.send('POST', ULTRA, [] as object)],
  ]
  for (const [status, type, sent] of tries) {
    const answer = await sent
    const { error } = (await answer.json()) as { error: { type: string; message: string } }
    assert.deepEqual([answer.status, error.type], [status, type], error.message)
  }
  assert.deepEqual(fake.requests, [])
  assert.equal(await service.charged(), 0)
})

test('a provider that refuses the input, or fails, costs nothing, and its words reach the node', async () => {
  const fake = service.fakeOf(bflFake)
  fake.scenario = 'invalid'
  const refused = await service.send('POST', ULTRA, { ...BODY, seed: 2 })
  assert.equal(refused.status, 422)
  assert.match(await refused.text(), /prompt is empty/)
  fake.scenario = 'arrears'
  const failed = await service.send('POST', ULTRA, { ...BODY, seed: 3 })
  assert.equal(failed.status, 502)
  assert.doesNotMatch(await failed.text(), /fake-bfl-key|credits/i)
  fake.scenario = 'policy'
  const task = (await (await service.send('POST', ULTRA, { ...BODY, seed: 4 })).json()) as { polling_url: string }
  const moderated = await service.send('GET', task.polling_url)
  assert.equal(((await moderated.json()) as { status: string }).status, 'Pending')
  while (
    ((await (await service.send('GET', task.polling_url)).json()) as { status: string }).status !== 'Request Moderated'
  );
  assert.equal(await service.charged(), 0)
})

test('a request that is sent again because its answer was lost is the same call, and an equal one after it another', async () => {
  const fake = service.fakeOf(bflFake)
  const body = { ...BODY, seed: 5 }
  await sendAndLose(body)
  const again = await sendUntilAnswered(body)
  const other = await sendUntilAnswered(body)
  assert.notEqual(again.id, other.id)
  assert.equal(fake.generations, 2)
  for (const { polling_url } of [again, other]) await follow(polling_url)
  assert.equal(await service.charged(), 120_000)
})

test('a file that a job hands over once more, under a new address, makes no second call; another file does', async () => {
  const fake = service.fakeOf(bflFake)
  const addressOf = async (bytes: string) => {
    const place = (await (await service.send('POST', '/customers/storage', { file_name: 'a.png' })).json()) as {
      readonly upload_url: string
      readonly download_url: string
    }
    await fetch(place.upload_url, { method: 'PUT', body: bytes })
    return place.download_url
  }
  const bodyWith = async (bytes: string) => ({ ...BODY, seed: 6, image_prompt: await addressOf(bytes) })
  await sendAndLose(await bodyWith('one'))
  await sendUntilAnswered(await bodyWith('one'))
  assert.equal(fake.generations, 1)
  await sendUntilAnswered(await bodyWith('two'))
  assert.equal(fake.generations, 2)
})

/** The provider has made it, and the caller is gone before the answer. */
async function sendAndLose(body: object): Promise<void> {
  const fake = service.fakeOf(bflFake)
  const held = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  fake.hold = async ({ method }) => {
    if (method !== 'POST') return
    arrived.resolve()
    await held.promise
  }
  const gone = new AbortController()
  const lost = fetch(service.test.url + ULTRA, {
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: gone.signal,
  })
  await arrived.promise
  gone.abort()
  await assert.rejects(lost)
  held.resolve()
  fake.hold = null
}

/** As nodes do: again after 503, which says that the first send is still on its way. */
async function sendUntilAnswered(body: object): Promise<{ id: string; polling_url: string }> {
  for (;;) {
    const answer = await service.send('POST', ULTRA, body)
    if (answer.status === 503) continue
    assert.equal(answer.status, 200, await answer.clone().text())
    return (await answer.json()) as { id: string; polling_url: string }
  }
}
