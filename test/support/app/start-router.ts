/** The whole service with a fake provider and a few models of it. */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { ModelOverrides } from '../../../src/compose/router/open-models.ts'
import type { Model } from '../../../src/domain/models/catalog/model.ts'
import { RouterClient } from '../clients/router-client.ts'
import { createFakeEngine } from '../engines/fake-engine.ts'
import {
  createFakeProvider,
  type FakeProvider,
  type FakeProviderOptions,
  fakeModel,
} from '../providers/fake-provider.ts'
import { addPaidAccount, type PaidAccountOptions } from './paid-account.ts'
import type { ConfigPatch } from './patch-config.ts'
import { startTestApp, type TestApp } from './start-app.ts'

export const PRICE = { parts: [{ unit: 'image', usd: '0.04', times: [{ input: 'n', fallback: 1 }] }] }
const SCHEMA = {
  type: 'object',
  required: ['prompt'],
  properties: {
    prompt: { type: 'string', maxLength: 100 },
    n: { type: 'integer', minimum: 1, maximum: 4 },
    size: { type: 'string', enum: ['small', 'large'] },
    tags: { type: 'array', items: { type: 'string' }, maxItems: 2 },
  },
}

/** `direct` and `polled` take anything; `strict` and `paid` have a schema. */
export const MODELS: readonly Model[] = [
  fakeModel('fake/direct'),
  fakeModel('fake/polled', { returns: 'poll' }),
  fakeModel('fake/strict', {
    input: { schema: SCHEMA, model_field: 'model', modalities: ['text'], example: { prompt: 'x' } },
  }),
  fakeModel('fake/paid', { price: PRICE, input: { schema: SCHEMA } }),
  fakeModel('fake/paid-polled', { price: PRICE, returns: 'poll' }),
  fakeModel('fake/quick', { returns: 'poll', deadline_seconds: 1 }),
  fakeModel('fake/listed', { state: 'listed' }),
  fakeModel('fake/secret', { state: 'unreleased' }),
  fakeModel('fake/old', { state: 'retired', successor: 'fake/direct' }),
  fakeModel('fake/special', { entitlement: 'special' }),
]

export interface RouterApp extends AsyncDisposable {
  readonly client: RouterClient
  readonly provider: FakeProvider
  readonly test: TestApp
  /** Stops the service and starts it again over the same data, with the same provider. */
  restart(): Promise<RouterApp>
}

export interface RouterAppOptions {
  readonly settings?: Readonly<Record<string, string>>
  readonly patch?: ConfigPatch
  readonly provider?: FakeProvider | FakeProviderOptions
  readonly models?: readonly Model[]
  readonly overrides?: Partial<ModelOverrides>
  readonly clock?: Clock
  readonly log?: Log
  /** Opens the kind with accounts, for one that has this much. */
  readonly account?: PaidAccountOptions
}

export async function startRouter(options: RouterAppOptions = {}): Promise<RouterApp> {
  const { provider: given = {}, models = MODELS, account } = options
  const provider = 'submit' in given ? given : createFakeProvider(given)
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-test-'))
  const paid = account === undefined ? null : await addPaidAccount(dataDir, account)
  const kind: Record<string, string> = paid === null ? {} : { kind: 'cloud' }
  const test = await startTestApp({
    dataDir,
    settings: { workers: '0', ...kind, ...options.settings },
    patch: options.patch,
    log: options.log,
    // No workflow runs here; the built-in engine would cost every start its threads.
    overrides: {
      engine: createFakeEngine(),
      clock: options.clock,
      models: { providers: [provider], models, ...options.overrides },
    },
  })
  const headers = paid === null ? undefined : { 'x-api-key': paid.key }
  return toRouterApp(test, provider, headers)
}

function toRouterApp(test: TestApp, provider: FakeProvider, headers?: Readonly<Record<string, string>>): RouterApp {
  return {
    client: new RouterClient(test.url, headers),
    provider,
    test,
    restart: async () => toRouterApp(await test.restart(), provider, headers),
    [Symbol.asyncDispose]: () => test[Symbol.asyncDispose](),
  }
}
