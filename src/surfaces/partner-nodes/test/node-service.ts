/** The whole service over fake providers, with an account that pays, and a client that sends what ComfyUI's nodes send. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { addPaidAccount } from '../../../../test/support/app/paid-account.ts'
import { startTestApp, type TestApp } from '../../../../test/support/app/start-app.ts'
import { createFakeEngine } from '../../../../test/support/engines/fake-engine.ts'
import {
  type FakeCard,
  type FakeProvider,
  startFakeProvider,
} from '../../../../test/support/providers/fake-providers/fake-card.ts'
import { createLoopbackNetwork } from '../../../../test/support/providers/loopback-network.ts'
import { waitUntil } from '../../../../test/support/wait-until.ts'

export const CREDIT = 100_000_000

export interface NodeService extends AsyncDisposable {
  readonly test: TestApp
  readonly key: string
  readonly accountId: string
  fakeOf(card: FakeCard): FakeProvider
  /** A request as a node sends it; `body` is JSON or a form. */
  send(method: string, path: string, body?: object | FormData, headers?: Record<string, string>): Promise<Response>
  /** What was charged since the last look, once nothing is held any more. */
  charged(): Promise<number>
}

/** `values`: settings of single providers. */
export async function startNodeService(
  cards: readonly FakeCard[],
  values: Readonly<Record<string, object>> = {},
): Promise<NodeService> {
  await using stack = new AsyncDisposableStack()
  const fakes = new Map<FakeCard, FakeProvider>()
  for (const card of cards) fakes.set(card, stack.use(await startFakeProvider(card)))
  const dataDir = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const { key, accountId } = await addPaidAccount(dataDir, { micros: CREDIT })
  const providers = path.join(dataDir, 'providers.json')
  const settings = [...fakes].map(([card, fake]) => [
    card.provider,
    { key: card.key, base_url: fake.baseUrl, settings: values[card.provider] ?? {} },
  ])
  await writeFile(providers, JSON.stringify(Object.fromEntries(settings)))
  const overrides = { engine: createFakeEngine(), models: { network: createLoopbackNetwork() } }
  const test = stack.use(
    await startTestApp({ dataDir, settings: { kind: 'cloud', workers: '0', providers }, overrides }),
  )
  const opened = stack.move()
  let seen = CREDIT
  return {
    test,
    key,
    accountId,
    fakeOf(card) {
      const fake = fakes.get(card)
      if (fake === undefined) throw new Error(`no fake for ${card.provider}`)
      return fake
    },
    send: (method, where, body, headers = {}) =>
      fetch(`${test.url}${where}`, {
        method,
        headers: {
          'x-api-key': key,
          ...(body !== undefined && !(body instanceof FormData) && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: body instanceof FormData ? body : JSON.stringify(body) }),
      }),
    async charged() {
      const balanceOf = () => test.app.store.ledger.balance(accountId)
      await waitUntil(async () => (await balanceOf())?.held === 0)
      const available = (await balanceOf())?.available ?? 0
      const charged = seen - available
      seen = available
      return charged
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
