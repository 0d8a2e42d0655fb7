import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_MICROS } from '../../../../lib/text/usd.ts'
import type { JsonRecord } from '../catalog/model.ts'
import { readModel } from '../catalog/read-model.ts'
import { estimatePrice, findUnbounded, holdFor, leastPrice, priceOf, quoteFor } from './pricing.ts'

function ruleOf(price: JsonRecord) {
  const { model, problems } = readModel({ id: 'a/b', price })
  if (model === null) throw new Error(problems.join())
  return model.price
}

const NOTHING = { output: null, usage: null, costMicros: null }

test('a price that the input decides is exact beforehand and charged so', () => {
  const rule = ruleOf({
    parts: [
      {
        unit: 'second',
        by: [
          { input: 'resolution', fallback: '720p' },
          { input: 'sound', fallback: false },
        ],
        rates: { '720p|false': '0.05', '720p|true': '0.08', '*': '0.20' },
        times: [{ input: 'duration', fallback: 5 }],
      },
    ],
  })
  const cases: [JsonRecord, number][] = [
    [{}, 250_000],
    [{ duration: '8s' }, 400_000],
    [{ sound: true, duration: 2 }, 160_000],
    [{ resolution: '4k', duration: 1 }, 200_000],
    [{ duration: null }, 250_000],
  ]
  for (const [input, micros] of cases) {
    assert.deepEqual(estimatePrice(rule, input), { source: 'exact', micros }, JSON.stringify(input))
    assert.equal(priceOf(rule, quoteFor(rule, input), NOTHING), micros)
  }
})

test('a price that the answer decides is a range, and its top is set aside', () => {
  const rule = ruleOf({
    parts: [
      { unit: 'token', usd: '1', per: 1_000_000, times: [{ input: 'prompt', measure: 'characters' }] },
      { unit: 'token', usd: '8', per: 1_000_000, times: [{ usage: 'output_tokens', max: 1000 }] },
    ],
  })
  const input = { prompt: 'x'.repeat(2000) }
  assert.deepEqual(estimatePrice(rule, input), { source: 'estimated', minMicros: 2008, maxMicros: 10_000 })
  assert.equal(holdFor(rule, input), 10_000)
  assert.equal(priceOf(rule, quoteFor(rule, input), { ...NOTHING, usage: { output_tokens: 500 } }), 6000)
})

test("a provider's own figure is charged where the rule asks for it; unlisted values are never free", () => {
  const reported = ruleOf({ kind: 'reported', hold_usd: '0.5' })
  assert.equal(holdFor(reported, {}), 500_000)
  assert.deepEqual(estimatePrice(reported, {}), { source: 'estimated', minMicros: 1, maxMicros: 500_000 })
  assert.equal(priceOf(reported, [], { ...NOTHING, costMicros: 900_000 }), 500_000)
  assert.equal(priceOf(reported, [], { ...NOTHING, costMicros: 0 }), 1)
  assert.equal(priceOf(reported, [], { ...NOTHING, costMicros: 123 }), 123)
  const table = ruleOf({ parts: [{ by: [{ input: 'size' }], rates: { small: '0.01', large: '0.05' } }] })
  assert.equal(holdFor(table, { size: 'unheard of' }), 50_000)
  assert.equal(leastPrice(ruleOf({ kind: 'free' })), 0)
})

test('a call that began under a quote of one number per part is priced as that quote says', () => {
  const rule = ruleOf({
    parts: [
      {
        unit: 'second',
        usd: '0.05',
        times: [
          { input: 'duration', fallback: 5, max: 10 },
          { usage: 'clips', fallback: 1, max: 4 },
        ],
      },
    ],
  })
  assert.equal(priceOf(rule, [350_000], { ...NOTHING, usage: { clips: 2 } }), 700_000)
  assert.equal(priceOf(rule, [350_000], NOTHING), 350_000)
})

test('an input that leaves open what nothing bounds is named, and never held for less than everything', () => {
  const rule = ruleOf({ parts: [{ unit: 'image', usd: '0.04', times: [{ input: 'options.n', fallback: 1 }] }] })
  for (const n of ['auto', -1, 0, true, []] as const) {
    assert.deepEqual(findUnbounded(rule, { options: { n } }), [['options', 'n']], JSON.stringify(n))
    assert.equal(holdFor(rule, { options: { n } }), MAX_MICROS)
  }
  const bounded: readonly JsonRecord[] = [{}, { options: { n: null } }, { options: { n: 3 } }, { options: { n: '3' } }]
  for (const input of bounded) assert.deepEqual(findUnbounded(rule, input), [], JSON.stringify(input))
})

test('whatever the input, what is charged lies within what was estimated, and is whole', () => {
  const rule = ruleOf({
    parts: [
      { unit: 'image', usd: '0.013', times: [{ input: 'n', fallback: 1 }] },
      { unit: 'token', usd: '2.5', per: 1_000_000, times: [{ usage: 'tokens', max: 5000 }] },
    ],
  })
  const values = fc.oneof(fc.integer(), fc.double(), fc.string(), fc.constant(null), fc.constant('7'))
  fc.assert(
    fc.property(values, fc.integer({ min: 0, max: 1_000_000 }), (n, tokens) => {
      const input = { n } as JsonRecord
      const estimate = estimatePrice(rule, input)
      const charged = priceOf(rule, quoteFor(rule, input), { ...NOTHING, usage: { tokens } })
      assert.ok(Number.isSafeInteger(charged) && charged > 0)
      if (estimate.source === 'exact') assert.equal(charged, estimate.micros)
      if (estimate.source === 'estimated') assert.ok(charged >= estimate.minMicros && charged <= estimate.maxMicros)
    }),
    { seed: 20_261_115 },
  )
})
