/** What a provider may read in the bytes that it gets is what the price was made of. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { estimatePrice } from '../../../src/domain/models/pricing/pricing.ts'
import { type RouterApp, startRouter } from '../../support/app/start-router.ts'
import { refusedWith } from '../../support/clients/router-client.ts'
import { fakeModel } from '../../support/providers/fake-provider.ts'
import { READERS, readLeniently } from '../../support/providers/lenient-json.ts'

const MODEL = fakeModel('fake/priced', {
  input: { model_field: 'model' },
  price: {
    parts: [
      {
        unit: 'second',
        by: [{ input: 'resolution', fallback: '480p' }],
        rates: { '480p': '0.01', '1080p': '0.04', '*': '0.09' },
        times: [
          { input: 'duration', fallback: 5, min: 1, max: 12 },
          { input: 'parameters.sampleCount', fallback: 1, min: 1, max: 9 },
        ],
      },
    ],
  },
})
const KNOWN = ['model', 'resolution', 'duration', 'parameters', 'sampleCount']

let app: RouterApp
before(async () => {
  app = await startRouter({ models: [MODEL] })
})
after(() => app[Symbol.asyncDispose]())

/** A name as somebody may write it who wants it to be read by one reader and not by another. */
const disguise = fc.constantFrom<(name: string) => string>(
  (name) => JSON.stringify(name),
  (name) => JSON.stringify(name),
  (name) => JSON.stringify(name),
  (name) => `"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}"`,
  (name) => JSON.stringify(name.toUpperCase()),
  (name) => JSON.stringify(name.replace(/^./, (first) => first.toUpperCase())),
  (name) => JSON.stringify(name.replace('s', 'ſ').replace('k', '\u212a')),
)
const names = fc.tuple(disguise, fc.constantFrom(...KNOWN, 'prompt', 'x')).map(([write, name]) => write(name))
const plain = fc.constantFrom('9', '1', '"10"', '"5"', '"1080p"', '"480p"', 'null', 'true')
const { body } = fc.letrec<{ value: string; body: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 3 },
    { weight: 5, arbitrary: plain },
    tie('body'),
    listOf(tie('value')),
  ),
  body: fc.array(fc.tuple(names, tie('value')), { maxLength: 5 }).map(toObject),
}))

function listOf(value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.array(value, { maxLength: 2 }).map((items) => `[${items.join()}]`)
}

function toObject(members: readonly (readonly [name: string, value: string])[]): string {
  return `{${members.map(([name, value]) => `${name} : ${value}`).join()}}`
}

test('whatever is accepted, every reader of the bytes that were sent finds the price that was charged', async () => {
  const seen = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(body, async (text) => {
      const sentBefore = app.provider.submits.length
      const { status } = await app.client.run('fake/priced', text)
      seen.set(status, (seen.get(status) ?? 0) + 1)
      const [sent] = app.provider.submits.slice(sentBefore)
      if (status !== 200) {
        assert.equal(sent, undefined)
        return
      }
      const priced = estimatePrice(MODEL.price, sent.input)
      for (const reader of READERS) {
        const read = readLeniently(sent.body.toString(), reader, KNOWN)
        assert.deepEqual(estimatePrice(MODEL.price, read as never), priced, JSON.stringify(reader))
        if (!reader.ignoresCase) assert.deepEqual(read, sent.input)
      }
    }),
    { numRuns: 250, seed: 10 },
  )
  assert.ok((seen.get(200) ?? 0) > 25 && (seen.get(422) ?? 0) > 25, JSON.stringify([...seen]))
})

const TWICE: readonly [what: string, text: string, loc: readonly (string | number)[]][] = [
  ['a field', '{"duration":"10","duration":"5"}', ['body', 'duration']],
  ['a field with an escaped name', '{"duration":10,"\\u0064uration":5}', ['body', 'duration']],
  ['the model', '{"model":"dear","model":"priced"}', ['body', 'model']],
  ['a field that nobody prices', '{"a":[0,{"b":{"n":9,"n":1}}]}', ['body', 'a', 1, 'b', 'n']],
  ['a field called __proto__', '{"__proto__":1,"__proto__":2}', ['body', '__proto__']],
  ['a field in another case', '{"Duration":10}', ['body', 'Duration']],
  ['a field with other signs', '{"parameters":{"sample_count":4}}', ['body', 'parameters', 'sample_count']],
  ['the model in another case', '{"MODEL":"dear"}', ['body', 'MODEL']],
  ['a field far behind another', `{"n":1,"x":"${'y'.repeat(300_000)}","n":2}`, ['body', 'n']],
]
for (const [what, text, loc] of TWICE) {
  test(`${what} given twice or under another name is refused by its place, for a call, a queue and an estimate`, async () => {
    const sentBefore = app.provider.submits.length
    for (const where of ['', '/requests', '/estimate']) {
      const answer = await app.client.post(`/v2/models/fake/priced${where}`, text)
      assert.deepEqual(refusedWith(answer, 422, 'invalid_input').json.detail[0].loc, loc)
    }
    assert.equal(app.provider.submits.length, sentBefore)
  })
}
