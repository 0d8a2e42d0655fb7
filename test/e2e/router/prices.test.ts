/** What callers of the whole service pay for shipped models whose length the provider chooses. */
import assert from 'node:assert/strict'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { addPaidAccount } from '../../support/app/paid-account.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { RouterClient } from '../../support/clients/router-client.ts'
import { bflFake } from '../../support/providers/fake-providers/bfl.ts'
import { byteplusFake } from '../../support/providers/fake-providers/byteplus.ts'
import { startFakeProvider } from '../../support/providers/fake-providers/fake-card.ts'
import { createLoopbackNetwork } from '../../support/providers/loopback-network.ts'

const SHIPPED = path.join(import.meta.dirname, '../../../models')
const SEEDANCE = 'byteplus/seedance-1-5-pro-251215'
const FLUX = 'bfl/flux-3-video'
const stack = new AsyncDisposableStack()
const clients = new Map<string, RouterClient>()
let app: TestApp

before(async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  stack.defer(() => rm(directory, { recursive: true, force: true }))
  const keys: Record<string, object> = {}
  for (const card of [bflFake, byteplusFake]) {
    const fake = stack.use(await startFakeProvider(card))
    fake.pendingPolls = 0
    keys[card.provider] = { key: card.key, base_url: fake.baseUrl }
    await copyInHaste(card.provider, directory)
  }
  const providers = path.join(directory, 'providers.json')
  await writeFile(providers, JSON.stringify(keys))
  const dataDir = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  const rich = { micros: 9_000_000, overrides: { committedSpendMicros: 4_000_000 } }
  const accounts = [
    await addPaidAccount(dataDir, { id: 'rich', ...rich }),
    await addPaidAccount(dataDir, { id: 'modest', micros: 500_000 }),
    await addPaidAccount(dataDir, { id: 'poor', micros: 0 }),
  ]
  const settings = { kind: 'cloud', workers: '0', providers, catalogs: path.join(directory, 'models') }
  app = stack.use(
    await startTestApp({ dataDir, settings, overrides: { models: { network: createLoopbackNetwork() } } }),
  )
  for (const { accountId, key } of accounts) clients.set(accountId, new RouterClient(app.url, { 'x-api-key': key }))
})
after(() => stack.disposeAsync())

/** The shipped files of a provider, but polled without a pause. */
async function copyInHaste(provider: string, directory: string): Promise<void> {
  const folder = path.join(directory, 'models', provider)
  await mkdir(folder, { recursive: true })
  await cp(path.join(SHIPPED, provider, 'provider.json'), path.join(folder, 'provider.json'))
  for (const id of [SEEDANCE, FLUX].filter((one) => one.startsWith(`${provider}/`))) {
    const text = await readFile(path.join(SHIPPED, `${id}.json`), 'utf8')
    await writeFile(
      path.join(directory, 'models', `${id}.json`),
      text.replaceAll(/"interval_ms": \d+/g, '"interval_ms": 100'),
    )
  }
}

const CLIP = { content: [{ type: 'text', text: 'a fox' }] }

function clientOf(account: string): RouterClient {
  const client = clients.get(account)
  if (client === undefined) throw new Error(`no account ${account}`)
  return client
}

async function spent(account: string, work: () => Promise<void>): Promise<number> {
  const before = await app.app.store.ledger.balance(account)
  await work()
  const now = await app.app.store.ledger.balance(account)
  assert.equal(now?.held, 0)
  return (before?.available ?? 0) - (now?.available ?? 0)
}

const CASES: readonly [model: string, input: object, estimate: object, committedCents: string, micros: number][] = [
  [SEEDANCE, CLIP, { source: 'exact', amount: '0.26' }, '26', 260_000],
  [SEEDANCE, { ...CLIP, duration: 12 }, { source: 'exact', amount: '0.624' }, '63', 624_000],
  // The fake says that it made 5.04 seconds.
  [
    SEEDANCE,
    { ...CLIP, duration: -1 },
    { source: 'estimated', min_amount: '0.208', max_amount: '0.624' },
    '63',
    262_080,
  ],
  [FLUX, { mode: 't2v' }, { source: 'exact', amount: '0.85' }, '85', 850_000],
  [
    FLUX,
    { mode: 't2v', duration: 'auto' },
    { source: 'estimated', min_amount: '0.85', max_amount: '3.40' },
    '340',
    850_000,
  ],
]
for (const [model, input, estimate, committedCents, micros] of CASES) {
  test(`${model} with ${JSON.stringify(input).slice(-20)} is estimated, held and charged as its provider may choose`, async () => {
    const client = clientOf('rich')
    const estimated = await client.post(`/v2/models/${model}/estimate`, input)
    assert.partialDeepStrictEqual(estimated.json, estimate)
    const paid = await spent('rich', async () => {
      const answer = await client.run(model, input)
      assert.equal(answer.status, 200, answer.text)
      assert.equal(answer.headers['x-committed-spend-current'], committedCents)
      assert.equal(answer.headers['x-litellm-response-cost'], String(micros / 1_000_000))
    })
    assert.equal(paid, micros)
  })
}

test('an account that could not pay the longest is refused before anything is sent', async () => {
  const open = { ...CLIP, duration: -1 }
  for (const [account, model, input] of [
    ['poor', SEEDANCE, open],
    ['poor', FLUX, { mode: 't2v', duration: 'auto' }],
    ['modest', SEEDANCE, open],
    ['modest', FLUX, { mode: 't2v', duration: 'auto' }],
  ] as const) {
    for (const send of [
      () => clientOf(account).run(model, input),
      () => clientOf(account).post(`/v2/models/${model}/requests`, input),
    ]) {
      const answer = await send()
      assert.equal(answer.status, 402, answer.text)
      assert.equal(answer.json.error_type, 'insufficient_credits')
    }
  }
  assert.equal(await spent('modest', async () => void (await clientOf('modest').run(SEEDANCE, CLIP))), 260_000)
})
