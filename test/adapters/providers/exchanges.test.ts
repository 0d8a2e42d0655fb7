/**
 * One exchange for each model, in the form of its provider's documents (test/fixtures/exchanges): with the shipped rules and the
 * model's own example, exactly these requests are sent, these answers make a result, and it costs this.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import type { JsonRecord } from '../../../src/domain/models/catalog/model.ts'
import { priceOf, quoteFor } from '../../../src/domain/models/pricing/pricing.ts'
import type { ProviderResult } from '../../../src/domain/models/provider.ts'
import {
  type FakeAnswer,
  type FakeCall,
  type FakeCard,
  type FakeRoute,
  startFakeProvider,
} from '../../support/providers/fake-providers/fake-card.ts'
import { openProviderUnderTest, readShippedCatalog, shippedModel } from '../../support/providers/provider-under-test.ts'

interface Exchange {
  readonly model: string
  readonly steps: readonly Step[]
  readonly charge_usd: string
}

interface Step {
  /** `POST /v1/things` */
  readonly request: string
  readonly body?: JsonRecord
  readonly answer: JsonRecord
}

const FOLDER = path.join(import.meta.dirname, '../../fixtures/exchanges')
const KEY = 'key-of-the-operator'
const FILES = readdirSync(FOLDER).map((file) => ({
  provider: path.basename(file, '.json'),
  exchanges: JSON.parse(readFileSync(path.join(FOLDER, file), 'utf8')) as readonly Exchange[],
}))

for (const { provider, exchanges } of FILES)
  describe(`${provider} as its documents say`, () => {
    for (const { model: id, steps, charge_usd: charge } of exchanges)
      test(`${id} is asked for in its words, understood, and costs $${charge}`, async () => {
        const seen: unknown[] = []
        const { providers } = await readShippedCatalog()
        const rules = providers.find((one) => one.provider === provider)
        const basePath = new URL(rules?.base_url ?? '').pathname.replace(/\/$/, '')
        await using fake = await startFakeProvider({ ...playing(provider, steps, seen), basePath })
        await using under = await openProviderUnderTest(fake)
        const model = await shippedModel(id)
        const outcome = await under.run(id, model.input.example ?? {})
        assert.deepEqual(
          seen,
          steps.map(({ request, body = null }) => ({ request, body })),
        )
        assert.equal(outcome.outcome, 'finished', JSON.stringify(outcome))
        const { result } = outcome as { readonly result: ProviderResult }
        const output = JSON.parse(Buffer.from(result.body as Buffer).toString())
        assert.deepEqual(output, filled(steps.at(-1)?.answer ?? {}, fake.url))
        const { usage, costMicros } = result
        const quote = quoteFor(model.price, model.input.example ?? {})
        assert.equal(priceOf(model.price, quote, { output, usage, costMicros }) / 1_000_000, Number(charge))
        assert.ok(
          fake.requests.every(({ headers }) => JSON.stringify(headers).includes(KEY)),
          'every request is signed',
        )
      })
  })

test('every model of a provider that has exchanges and no card has one', async () => {
  const { models } = await readShippedCatalog()
  for (const { provider, exchanges } of FILES) {
    const known = new Set(exchanges.map(({ model }) => model))
    if (CARDED.has(provider)) continue
    const missing = models.filter((model) => model.provider === provider && !known.has(model.id))
    assert.deepEqual(
      missing.map(({ id }) => id),
      [],
    )
  }
})

/** Their cards play one model of each form. */
const CARDED = new Set(
  ['anthropic', 'bfl', 'byteplus', 'fal', 'higgsfield', 'kling', 'openai', 'recraft', 'vertexai', 'wan'].concat('xai'),
)

function playing(provider: string, steps: readonly Step[], seen: unknown[]): FakeCard {
  const left = [...steps]
  const answer = ({ request, at }: FakeCall): FakeAnswer => {
    const query = request.query.size === 0 ? '' : `?${request.query}`
    seen.push({ request: `${request.method} ${request.path}${query}`, body: request.json })
    const step = left.shift()
    return step === undefined ? { status: 404, json: {} } : { json: filled(step.answer, at('127.0.0.1', '')) }
  }
  const routes = (['GET', 'POST'] as const).map((method): FakeRoute => [method, /^/, answer])
  return { provider, basePath: '', key: KEY, isKnown: () => true, unauthorized: { status: 401 }, routes }
}

/** `{base}` in an answer is the address of the provider. */
function filled(answer: JsonRecord, base: string): JsonRecord {
  return JSON.parse(JSON.stringify(answer).replaceAll('{base}', base))
}
