/** Random requests to the v1 API: the answer is never a failure of ours, and the service works afterwards. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { startTestApp, type TestApp } from '../../../../test/support/app/start-app.ts'
import { LegacyClient } from '../../../../test/support/clients/legacy-client.ts'
import { createFakeEngine } from '../../../../test/support/engines/fake-engine.ts'

const engine = createFakeEngine()
let app: TestApp
let client: LegacyClient
before(async () => {
  app = await startTestApp({ overrides: { engine } })
  client = new LegacyClient(app.url)
})
after(async () => {
  engine.release()
  await app[Symbol.asyncDispose]()
})

const SETTINGS = { seed: 20_261_115, numRuns: 150 } as const

async function assertHarmless(path: string, init: RequestInit): Promise<void> {
  const answer = await client.call(path, init)
  assert.ok(answer.status < 500, `${init.method} ${path}: ${answer.status} ${answer.text}`)
  if (answer.status >= 400 && !path.includes('userdata')) assert.notEqual(answer.json, null)
}

const graphs = fc.dictionary(
  fc.oneof(fc.constantFrom('1', '2', '__proto__', 'constructor'), fc.string()),
  fc.oneof(
    fc.jsonValue(),
    fc.record({
      class_type: fc.oneof(fc.constantFrom('FakeSave', 'FakeSource', 'FakeLoad', 'FakeValue'), fc.string()),
      inputs: fc.dictionary(fc.string(), fc.oneof(fc.jsonValue(), fc.tuple(fc.constantFrom('1', '2', '3'), fc.nat(2)))),
    }),
  ),
)

test('JSON bodies of every kind on every route that reads one', async () => {
  const routes = [
    '/prompt',
    '/queue',
    '/interrupt',
    '/history',
    '/api/jobs/cancel',
    '/settings',
    '/free',
    '/users',
    '/settings/x',
  ]
  const bodies = fc.oneof(
    fc.json(),
    fc.string({ unit: 'binary' }),
    fc.record(
      {
        prompt: graphs,
        prompt_id: fc.oneof(fc.uuid(), fc.jsonValue()),
        number: fc.oneof(fc.double(), fc.jsonValue()),
        front: fc.jsonValue(),
        client_id: fc.jsonValue(),
        extra_data: fc.oneof(fc.jsonValue(), fc.dictionary(fc.string(), fc.jsonValue())),
        partial_execution_targets: fc.oneof(fc.array(fc.string()), fc.jsonValue()),
        delete: fc.oneof(fc.array(fc.string()), fc.jsonValue()),
        clear: fc.jsonValue(),
        job_ids: fc.jsonValue(),
      },
      { requiredKeys: [] },
    ),
  )
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...routes), bodies, async (route, body) => {
      await assertHarmless(route, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })
    }),
    SETTINGS,
  )
})

/** Forms that are nearly right: boundaries cut, heads damaged, parts doubled, bytes of any kind. */
const forms = fc
  .record({
    boundary: fc.constantFrom('x', 'xx', '----form'),
    parts: fc.array(
      fc.record({
        head: fc.oneof(
          fc.constantFrom(
            'Content-Disposition: form-data; name="image"; filename="a.png"',
            'Content-Disposition: form-data; name="image"; filename=""',
            'Content-Disposition: form-data; name="image"',
            'Content-Disposition: form-data; name="original_ref"',
            'Content-Disposition: form-data; name="overwrite"',
            'Content-Disposition: form-data; name="subfolder"',
            'Content-Disposition: form-data; name="type"',
            "Content-Disposition: form-data; name=image; filename*=UTF-8''%zz",
          ),
          fc.string(),
        ),
        body: fc.oneof(
          fc.constantFrom('true', 'input', 'temp', '../..', '{"filename":"a.png"}', '{', '\u0000'),
          fc.string({ unit: 'binary' }),
        ),
      }),
      { maxLength: 6 },
    ),
    isClosed: fc.boolean(),
    declared: fc.constantFrom('x', 'xx', '----form', ''),
    cut: fc.nat(400),
  })
  .map(({ boundary, parts, isClosed, declared, cut }) => {
    const text = parts.map(({ head, body }) => `--${boundary}\r\n${head}\r\n\r\n${body}\r\n`).join('')
    const whole = text + (isClosed ? `--${boundary}--\r\n` : '')
    return { body: cut < 100 ? whole.slice(0, -cut - 1) : whole, declared }
  })

test('multipart bodies of every kind', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom('/upload/image', '/api/upload/mask'), forms, async (route, { body, declared }) => {
      const headers = { 'content-type': `multipart/form-data; boundary=${declared}` }
      await assertHarmless(route, { method: 'POST', body, headers })
    }),
    SETTINGS,
  )
})

test('queries and paths of every kind', async () => {
  const routes = ['/view', '/history', '/api/jobs', '/userdata', '/v2/userdata', '/view_metadata/checkpoints', '/queue']
  const names = [
    'filename',
    'type',
    'subfolder',
    'preview',
    'channel',
    'res',
    'max_items',
    'offset',
    'limit',
    'status',
    'sort_by',
    'dir',
    'path',
  ]
  const queries = fc.array(
    fc.tuple(fc.constantFrom(...names), fc.oneof(fc.string({ unit: 'binary' }), fc.integer().map(String))),
    { maxLength: 5 },
  )
  const folders = [
    '/history/',
    '/api/jobs/',
    '/object_info/',
    '/settings/',
    '/userdata/',
    '/models/',
    '/internal/files/',
    '/api/job/',
  ]
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...routes),
      queries,
      fc.constantFrom(...folders),
      fc.string(),
      async (route, query, folder, name) => {
        await assertHarmless(
          `${route}?${new URLSearchParams(query.map(([key, value]): [string, string] => [key, value.toWellFormed()]))}`,
          { method: 'GET' },
        )
        await assertHarmless(`${folder}${encodeURIComponent(name)}`, { method: 'GET' })
      },
    ),
    SETTINGS,
  )
})

test('the service still works after all of them', async () => {
  const id = await client.accepted({ '1': { class_type: 'FakeSave', inputs: {} } })
  assert.equal((await client.untilHistory(id)).status.status_str, 'success')
})
