/** Malformed submits and unknown ids: refused by the whole service before any engine is involved. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createUuidV7 } from '../../../lib/ids.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { CheckedClient, node, refused } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const DAY_MS = 86_400_000
const SAVE = { '1': node('FakeSave') }
const newJobId = createUuidV7(Date.now)

describe('a submit is refused', () => {
  let service: TestApp
  let client: CheckedClient
  const engine = createFakeEngine()
  before(async () => {
    service = await startTestApp({ overrides: { engine } })
    client = new CheckedClient(service.url)
  })
  after(async () => {
    await service[Symbol.asyncDispose]()
    assert.equal(engine.runs.length, 0, 'something refused was run')
  })

  const REFUSALS: Record<string, [status: number, code: string, bodies: unknown[]]> = {
    'without a workflow': [
      422,
      'invalid_workflow',
      [{}, { workflow: null }, { workflow: [] }, { workflow: 'x' }, { workflow: 5 }, { prompt: SAVE }],
    ],
    'with a workflow that has nothing to run': [422, 'invalid_workflow', [{ workflow: {} }]],
    'with a workflow of the editor': [
      422,
      'workflow_format_ui',
      [
        { workflow: { nodes: [], links: [], last_node_id: 0 } },
        { workflow: { nodes: [{ id: 1, type: 'SaveImage' }], links: [[1, 1, 0, 2, 0, 'IMAGE']] } },
        { workflow: { nodes: [], links: [], version: 0.4, groups: [], config: {}, extra: {} } },
      ],
    ],
    'with reserved fields': [
      422,
      'invalid_request',
      [
        { workflow: SAVE, webhook_url: 'https://example.com' },
        { workflow: SAVE, webhook_url: '' },
        { workflow: SAVE, inputs: {} },
        { workflow: SAVE, inputs: [] },
        { workflow: SAVE, inputs: false },
      ],
    ],
    'with a wrong priority': [
      422,
      'invalid_request',
      [true, false, null, '5', 1.5, 1_000_001, -1_000_001, [], {}, 1e300].map((priority) => ({
        workflow: SAVE,
        priority,
      })),
    ],
    'with wrong labels': [
      422,
      'metadata_invalid',
      [
        Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v'])),
        { '': 'v' },
        { 'a b': 'v' },
        { ä: 'v' },
        { 'a[b]': 'v' },
        { ['k'.repeat(65)]: 'v' },
        { k: 'v'.repeat(513) },
        { k: '😀'.repeat(513) },
        { k: 'a\nb' },
        { k: '\u0000' },
        { k: '\u007f' },
        { k: '\u0085' },
        { k: '\u202e' },
        { k: '\u202a' },
        { k: '\u2066x\u2069' },
        { k: 5 },
        { k: null },
        { k: true },
        { k: ['v'] },
        { k: {} },
        [],
        ['a'],
        'a'.repeat(1025),
        'a\nb',
        5,
        null,
      ].map((metadata) => ({ workflow: SAVE, metadata })),
    ],
    'when it is no JSON object': [
      400,
      'invalid_request',
      ['', ' ', '{', '[]', 'null', '"x"', '5', '{"workflow":{}}x', "{'workflow':{}}", '\ufeff', '{"workflow":NaN}'],
    ],
  }

  for (const [name, [status, code, bodies]] of Object.entries(REFUSALS)) {
    test(name, async () => {
      for (const body of bodies) refused(await client.submit(body), status, code)
    })
  }

  test('but the largest labels and odd content types are accepted', async () => {
    const metadata = Object.fromEntries(
      Array.from({ length: 16 }, (_, index) => [`${index}`.padEnd(64, 'x'), 'v'.repeat(512)]),
    )
    for (const type of ['', 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'nonsense'])
      assert.equal(
        (await client.submit({ workflow: { '1': node('Nope') }, metadata }, { 'content-type': type })).json.error.code,
        'invalid_workflow',
        type,
      )
  })
})

test('an expectation that nobody knows is ignored, not answered outside of the envelope', async () => {
  await using service = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = new CheckedClient(service.url)
  const body = JSON.stringify({ workflow: SAVE })
  for (const expect of ['something', '100-continue']) {
    assert.equal((await client.call('/api/v2/jobs', { method: 'POST', headers: { expect }, body })).status, 201)
  }
})

describe('an id that is nobody’s job', () => {
  test('is 404 on every operation, also when it is another account’s or no id at all; no engine is asked', async () => {
    const engine = createFakeEngine()
    await using service = await startTestApp({ overrides: { engine } })
    const client = new CheckedClient(service.url)
    const foreign = newJobId()
    const createdAt = new Date()
    await service.app.store.accounts.put({ id: 'somebody', maxRunning: 1, maxQueued: 10 })
    await service.app.store.jobs.submit(
      {
        id: foreign,
        accountId: 'somebody',
        pool: 'elsewhere',
        priority: 0,
        metadata: {},
        createdAt,
        expiresAt: new Date(createdAt.getTime() + DAY_MS),
        workflow: '{}',
        inputs: [],
        needsExtraData: false,
        sealedExtraData: null,
        needs: '',
      },
      null,
    )
    const known = (await client.run(SAVE)).id
    const wrong = [
      foreign,
      newJobId(),
      known.toUpperCase(),
      known.replaceAll('-', ''),
      `${known}0`,
      known.slice(1),
      `%7B${known}%7D`,
      `${known}%20`,
      `${known}%00`,
      '..%2F..%2Ffree',
      '..%2f..%2fjobs',
      '%2e%2e',
      '1',
      'null',
      '*',
      'x'.repeat(300),
      '%F0%9F%98%80',
    ]
    for (const id of wrong) {
      for (const rest of ['', '/workflow', '/logs', '/events']) {
        refused(await client.call(`/api/v2/jobs/${id}${rest}`), 404, 'not_found')
      }
      refused(await client.cancel(id), 404, 'not_found')
    }
    assert.equal((await client.call('/api/v2/jobs')).json.jobs.length, 1)
    assert.equal(engine.runs.length, 1)
  })
})
