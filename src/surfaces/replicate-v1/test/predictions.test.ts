/** Replicate's own client, unmodified, against endpoints. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import Replicate, { type FileOutput, type Prediction, validateWebhook } from 'replicate'
import { startTestApp } from '../../../../test/support/app/start-app.ts'
import { type SharedApp, startShared, type Tenant } from '../../../../test/support/app/start-shared.ts'
import { call } from '../../../../test/support/clients/call.ts'
import { openSpecChecks } from '../../../../test/support/clients/check-against-spec.ts'
import { node } from '../../../../test/support/clients/checked-client.ts'
import { waitUntil } from '../../../../test/support/wait-until.ts'
import { startWebhookReceiver } from '../../../../test/support/webhook-receiver.ts'

const { checkAgainstSchema } = openSpecChecks('replicate.openapi.json')
const PUBLIC = 'https://pictures.example'

const save = (text: string, count = 1) => node('FakeSave', { text, count })
const GRAPHS = {
  plain: { '1': node('FakeSource'), '2': save('one ') },
  gated: { '1': node('FakeGate'), '2': save('late ') },
  failing: { '1': node('FakeSource'), '2': save('x'), '3': node('FakeFail') },
  several: { '1': node('FakeSource'), '2': save('a ', 2) },
}

const SIGNED = ['webhook-id', 'webhook-timestamp', 'webhook-signature']
const signatureOf = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(SIGNED.map((name) => [name, headers[name] ?? '']))

describe('predictions', () => {
  let app: SharedApp
  let tenant: Tenant
  let client: Replicate
  before(async () => {
    app = await startShared({ publicUrl: PUBLIC, workers: '4', webhookPrivateNetwork: 'true' })
    tenant = await app.account('acme')
    client = clientOf(tenant.key)
    for (const [name, file] of Object.entries(GRAPHS)) {
      const inputs = { prompt: { from: '2.text', max_length: 20 } }
      const declaration = { only: true, inputs, outputs: { picture: { from: '2' } } }
      await publish(name, { file, declaration })
    }
  })
  after(() => app[Symbol.asyncDispose]())

  async function publish(name: string, body: object) {
    const sent = JSON.stringify({ name, ...body })
    const made = await tenant.call('/api/v2/endpoints', { method: 'POST', body: sent })
    assert.ok(made.status === 201 || made.status === 200, made.text)
    return made.json
  }
  // The service knows itself by an https name, which leads here.
  const clientOf = (auth: string) =>
    new Replicate({
      ...{ auth, baseUrl: `${app.url}/replicate/v1` },
      fetch: (input, init) =>
        fetch(String(input instanceof Request ? input.url : input).replace(PUBLIC, app.url), init),
    })
  const textOf = async (output: unknown) => (await (output as FileOutput).blob()).text()
  const textAt = async (url: unknown) => (await fetch(String(url).replace(PUBLIC, app.url))).text()

  test('run() gives the file that the endpoint made', async () => {
    assert.equal(await textOf(await client.run('acme/plain', { input: { prompt: 'hello ' } })), 'hello 0')
    const both = (await client.run('acme/several', { input: {} })) as unknown[]
    assert.deepEqual(await Promise.all(both.map(textOf)), ['a 0', 'a 1'])
  })

  test('are made by the hash of a version, by its number, and by the name of a deployment', async () => {
    const model = await client.models.get('acme', 'plain')
    checkAgainstSchema('Model', model)
    const id = model.latest_version?.id as string
    assert.match(id, /^[0-9a-f]{64}$/)
    for (const version of [id, 'plain@1', 'plain'])
      assert.equal(await textOf(await client.run(`acme/plain:${version}`, { input: { prompt: 'v ' } })), 'v 0', version)
    const version = await client.models.versions.get('acme', 'plain', id)
    checkAgainstSchema('Version', version)
    const schema = (version.openapi_schema as { components: { schemas: { Input: { properties: object } } } }).components
    assert.deepEqual(Object.keys(schema.schemas.Input.properties), ['prompt'])
    const deployed = await client.deployments.predictions.create('acme', 'plain', { input: {}, wait: true } as never)
    assert.equal((await client.wait(deployed)).status, 'succeeded')
    for (const gone of ['f'.repeat(64), 'plain@7'])
      await assert.rejects(client.predictions.create({ version: gone, input: {} }), /404/)
    await assert.rejects(client.models.versions.get('acme', 'several', id), /404/)
    await assert.rejects(client.run('nobody/plain', { input: {} }), /404/)
  })

  test('that have not ended say starting in the first answer, and are waited for', async () => {
    const made = await client.predictions.create({ model: 'acme/gated', input: { prompt: 'late ' }, wait: 1 })
    checkAgainstSchema('Prediction', made)
    assert.deepEqual([made.status, made.output, made.error], ['starting', null, null])
    assert.equal((await client.predictions.get(made.id)).status, 'processing')
    app.engine.openGate()
    const ended = await client.wait(made, { interval: 20 })
    checkAgainstSchema('Prediction', ended)
    assert.deepEqual([ended.status, ended.input, ended.model], ['succeeded', { prompt: 'late ' }, 'acme/gated'])
    assert.equal(typeof ended.metrics?.predict_time, 'number')
    assert.equal(await textAt(ended.output), 'late 0')
  })

  test('that fail say why, as a text', async () => {
    await assert.rejects(client.run('acme/failing', { input: {} }), /^Error: Prediction failed: (?!null|\[object)/)
  })

  test('are cancelled', async () => {
    const made = await client.predictions.create({ model: 'acme/gated', input: {} })
    const canceled = await client.predictions.cancel(made.id)
    assert.ok(['processing', 'canceled'].includes(canceled.status), canceled.status)
    assert.equal((await client.wait(made, { interval: 20 })).status, 'canceled')
    assert.equal((await client.predictions.cancel(made.id)).status, 'canceled')
  })

  test('are listed, page by page, and are nobody else’s', async () => {
    await tenant.call('/api/v2/jobs', {
      method: 'POST',
      body: JSON.stringify({ workflow: { '1': save('plain job') } }),
    })
    const before = await client.predictions.list()
    checkAgainstSchema('Predictions', before)
    const all = await Promise.all(
      Array.from({ length: 100 }, () => client.predictions.create({ model: 'acme/plain', input: {} })),
    )
    const seen: Prediction[] = []
    for await (const page of client.paginate(client.predictions.list)) seen.push(...(page as unknown as Prediction[]))
    assert.equal(seen.length, before.results.length + all.length)
    const other = clientOf((await app.account('other')).key)
    assert.deepEqual((await other.predictions.list()).results, [])
    await assert.rejects(other.predictions.get(all[0]?.id as string), /404/)
    await assert.rejects(other.predictions.cancel(all[0]?.id as string), /404/)
    await assert.rejects(other.run('acme/plain', { input: {} }), /404/)
  })

  test('with wrong inputs are refused, each by name', async () => {
    const body = JSON.stringify({ input: { prompt: 7, size: 1 } })
    const answer = await tenant.call('/replicate/v1/models/acme/plain/predictions', { method: 'POST', body })
    checkAgainstSchema('Problem', answer.json)
    assert.deepEqual(
      [answer.status, answer.json.invalid_fields.map((each: { field: string }) => each.field)],
      [422, ['input.size', 'input.prompt']],
    )
    const unknown = await tenant.call('/replicate/v1/predictions', { method: 'POST', body: '{"input":{},"inputs":{}}' })
    assert.equal(unknown.status, 422)
    assert.equal((await call(app.url, '/replicate/v1/predictions')).status, 401)
    assert.equal((await tenant.call('/replicate/v1/predictions', { method: 'DELETE' })).status, 405)
  })

  test('tell an address how they go on, as predictions that their own client accepts', async () => {
    await using receiver = await startWebhookReceiver()
    const { key } = await client.webhooks.default.secret.get()
    receiver.expect('/ok', key)
    const webhook = `${receiver.url}/ok`
    const made = await client.predictions.create({ model: 'acme/several', input: { prompt: 'b ' }, webhook })
    await waitUntil(() => receiver.received.length >= 4)
    const told = receiver.received.map(({ body }) => JSON.parse(body) as Prediction)
    for (const [index, prediction] of told.entries()) {
      checkAgainstSchema('Prediction', prediction)
      const { headers, body, fault } = receiver.received[index] as (typeof receiver.received)[number]
      assert.equal(fault, null)
      const asSent = (text: string) =>
        new Request(webhook, { method: 'POST', headers: signatureOf(headers), body: text })
      assert.ok(await validateWebhook(asSent(body), key))
      assert.equal(await validateWebhook(asSent(`${body} `), key), false)
      assert.deepEqual([prediction.id, prediction.model, prediction.input], [made.id, 'acme/several', { prompt: 'b ' }])
    }
    assert.deepEqual(
      told.map(({ status, output }) => [status, [output ?? []].flat().length]),
      [
        ['processing', 0],
        ['processing', 1],
        ['processing', 2],
        ['succeeded', 2],
      ],
    )
    const ended = await client.predictions.get(made.id)
    const { output: addresses, ...end } = told[3] as Prediction
    const { output: _, ...same } = ended
    assert.deepEqual(end, same)
    assert.deepEqual(await Promise.all((addresses as string[]).map(textAt)), ['b 0', 'b 1'])
  })

  test('tell no more than is asked for, and nothing where nothing can be told', async () => {
    await using receiver = await startWebhookReceiver()
    const webhook = (path: string) => `${receiver.url}${path}`
    const asked = { model: 'acme/failing', input: {} }
    await client.predictions.create({ ...asked, webhook: webhook('/ok/logs'), webhook_events_filter: ['logs'] })
    await client.predictions.create({ ...asked, webhook: webhook('/ok/end'), webhook_events_filter: ['completed'] })
    // A plain job of the account with the same address is told of in the words of the service.
    const body = { workflow: { '1': save('plain') }, webhook: { url: webhook('/ok/end'), events: ['job.succeeded'] } }
    const plain = await tenant.call('/api/v2/jobs', { method: 'POST', body: JSON.stringify(body) })
    assert.equal(plain.status, 201, plain.text)
    await waitUntil(() => receiver.received.length >= 2)
    assert.deepEqual(
      receiver.received.map(({ path }) => path),
      ['/ok/end', '/ok/end'],
    )
    const [failed] = receiver.received.flatMap(({ body: text, type }) => (type === undefined ? [JSON.parse(text)] : []))
    assert.deepEqual([failed.status, failed.output, typeof failed.error], ['failed', null, 'string'])
    assert.deepEqual(
      receiver.received.flatMap(({ type }) => type ?? []),
      ['job.succeeded'],
    )
  })

  test('are told again, as they were, when a message was not taken', async () => {
    await using receiver = await startWebhookReceiver()
    const { key } = await client.webhooks.default.secret.get()
    receiver.expect('/failing', key)
    const made = await client.predictions.create({
      ...{ model: 'acme/plain', input: { prompt: 'kept ' }, webhook: `${receiver.url}/failing` },
      webhook_events_filter: ['completed'],
    })
    // The first try is answered with a failure; the next one says the same.
    await waitUntil(() => receiver.received.length >= 2)
    const [first, second] = receiver.received.map(({ id, body }) => ({
      id,
      prediction: JSON.parse(body) as Prediction,
    }))
    assert.equal(first?.id, second?.id)
    assert.equal(second?.prediction.id, made.id)
    assert.equal(await textAt(second?.prediction.output), 'kept 0')
  })
})

test('a model of the built-in engine is run by its own client', async () => {
  await using service = await startTestApp({ settings: { workers: '1' } })
  const file = {
    '1': node('EmptyImage', { width: 16, height: 8, batch_size: 1, color: 255 }),
    '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'blue' }),
  }
  const declaration = { only: true, inputs: { width: { from: '1.width' } } }
  const body = JSON.stringify({ name: 'blue', file, declaration })
  assert.equal((await call(service.url, '/api/v2/endpoints', { method: 'POST', body })).status, 201)
  const client = new Replicate({ auth: 'none', baseUrl: `${service.url}/replicate/v1` })
  const url = (await client.run('local/blue', { input: { width: 24 } })) as unknown as string
  const png = Buffer.from(await (await fetch(url)).arrayBuffer())
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [24, 8])
})
