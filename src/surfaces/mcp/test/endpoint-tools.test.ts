import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../../../test/support/app/start-app.ts'
import { card } from '../../../../test/support/endpoints/card.ts'
import { nameTools } from '../tools/endpoints.ts'
import { connectAgent } from './agent-client.ts'

const KEY = 'the-key-of-this-test'

describe('endpoints as tools', () => {
  let app: TestApp
  before(async () => {
    app = await startTestApp({ settings: { token: KEY, workers: '1' } })
  })
  after(() => app[Symbol.asyncDispose]())

  const send = (method: string, path: string, body: object) =>
    fetch(`${app.url}/api/v2/endpoints${path}`, {
      method,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const declaration = {
    ...{ title: 'A card', only: true },
    inputs: { headline: { required: true, max_length: 20 }, width: { from: '1.width', maximum: 512 } },
  }
  const publish = (name: string, more: object = {}) => send('POST', '', { name, file: card('x'), declaration, ...more })

  for (const way of ['http', 'http of 2025', 'stdio'] as const) {
    test(`are listed with their inputs, follow what is published, and give pictures, over ${way}`, async () => {
      await using agent = await connectAgent({ url: app.url, key: KEY, way })
      const name = `my-card-${way.replaceAll(' ', '-')}`
      const tool = `run_${name.replaceAll('-', '_')}`
      const find = async () => (await agent.client.listTools()).tools.find((each) => each.name === tool)
      assert.equal(await find(), undefined)
      assert.equal((await publish(name)).status, 201)
      const listed = await find()
      assert.deepEqual(Object.keys(listed?.inputSchema.properties ?? {}), ['headline', 'width'])
      assert.deepEqual(listed?.inputSchema.required, ['headline'])
      assert.match(listed?.description ?? '', /A card[\s\S]*image/)

      const told = await agent.use(tool, { headline: 'Hello', width: 96 })
      assert.equal(told.isError, false, told.text)
      assert.deepEqual(
        told.content.map(({ type }) => type),
        ['text', 'image', 'resource_link'],
      )
      const { contents } = await agent.client.readResource({ uri: told.content[2].uri ?? '' })
      assert.equal((contents[0] as { mimeType?: string }).mimeType, 'image/png')

      const wrong = await agent.use(tool, { width: 9000, heigth: 1 })
      assert.ok(wrong.isError)
      assert.match(wrong.text, /- heigth is no input[\s\S]*- headline is required[\s\S]*- width must be at most 512/)

      await send('PATCH', `/${name}`, { tool: false })
      assert.equal(await find(), undefined)
      await assert.rejects(agent.use(tool, { headline: 'x' }), /not found/)
    })
  }
})

test('a name that is taken or too long gets a number', () => {
  const long = 'x'.repeat(63)
  const named = nameTools(['model', 'model-2', 'a-b', long], new Set(['run_model']))
  assert.deepEqual(
    [...named],
    [
      ['run_model_2', 'model-2'],
      ['run_a_b', 'a-b'],
      ['run_model_3', 'model'],
      [`run_${'x'.repeat(58)}_2`, long],
    ],
  )
})
