import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readNodeClasses } from '../../../console/src/api/node-classes.ts'
import { countBatch, joinValues, readValues, splitValues, toBatch } from '../../../console/src/form/batch.ts'
import {
  changeWorkflow,
  randomSeed,
  readField,
  showValue,
  toFieldGroups,
} from '../../../console/src/form/workflow-fields.ts'
import { readWorkflow } from '../../../console/src/graph/workflow-graph.ts'
import { daysOf, monthBy, toCsv, toMonth } from '../../../console/src/pages/account/usage-range.ts'
import { diffWorkflows } from '../../../console/src/pages/diff/workflow-diff.ts'
import { packDraft, readRunHash, unpackDraft, writeRunHash } from '../../../console/src/pages/run/draft.ts'
import { parseLosslessJson } from '../../../lib/json/lossless-json.ts'

const WORKFLOW = `{"4":{"class_type":"KSampler","inputs":{"seed":18446744073709551615,"cfg":7.0,"model":["1",0],"flag":true,
"sampler":"euler"}},"2":{"class_type":"Text","inputs":{"text":"a\\nb"},"_meta":{"title":"Prompt"}},"1":{"class_type":"Load","inputs":{}}}`
const CLASSES = `{"classes":{"KSampler":{"display_name":"Sampler","input":{"required":{
"seed":["INT",{"min":0,"max":18446744073709551615}],
"cfg":["FLOAT",{"min":0,"max":100}],
"sampler":[["euler","ddim"],{}]},"optional":{}}}}}`

const fieldsOf = (classes: string | null) =>
  toFieldGroups(readWorkflow(WORKFLOW), classes === null ? null : readNodeClasses(classes)).flatMap(
    ({ fields }) => fields,
  )

test('every literal of a workflow is a field; links are not', () => {
  assert.deepEqual(
    fieldsOf(CLASSES).map(({ input, kind }) => `${input} ${kind}`),
    ['text multiline', 'seed integer', 'cfg number', 'flag switch', 'sampler choice'],
  )
  assert.equal(fieldsOf(null).find(({ input }) => input === 'sampler')?.kind, 'text')
})

test('a seed of 64 bits goes through the form digit by digit', () => {
  const seed = fieldsOf(CLASSES).find(({ input }) => input === 'seed')
  assert.ok(seed !== undefined)
  assert.equal(showValue(seed), '18446744073709551615')
  assert.deepEqual(readField(seed, '18446744073709551614'), { valueText: '18446744073709551614' })
  assert.deepEqual(readField(seed, '18446744073709551616'), { problem: 'at most 18446744073709551615' })
  assert.deepEqual(readField(seed, '-1'), { problem: 'at least 0' })
  assert.deepEqual(readField(seed, '1.5'), { problem: 'a whole number' })
  const changed = changeWorkflow(WORKFLOW, [{ node: '4', input: 'seed', valueText: '18446744073709551614' }])
  assert.match(changed, /"seed":18446744073709551614,"cfg":7\.0/)
  assert.equal(randomSeed(seed, 2n ** 64n - 1n), '18446744073709551615')
})

test('what is not changed in the form is not changed in the workflow', () => {
  fc.assert(
    fc.property(fc.constantFrom(...fieldsOf(CLASSES)), (field) => {
      const read = readField(field, showValue(field))
      assert.deepEqual(read, { valueText: field.valueText })
    }),
  )
  const parsed = (text: string) => parseLosslessJson(text)
  assert.deepEqual(parsed(changeWorkflow(WORKFLOW, [])), parsed(WORKFLOW))
})

test('an input with several values makes a job for each, in every combination or side by side', () => {
  const lists = [
    { node: '4', input: 'seed', valueTexts: ['1', '2', '3'] },
    { node: '4', input: 'cfg', valueTexts: ['7.0', '8.0'] },
  ]
  const seen = (way: 'combinations' | 'side by side', of = lists) =>
    toBatch(of, way).map((changes) => changes.map(({ valueText }) => valueText).join(' '))
  assert.deepEqual(seen('combinations'), ['1 7.0', '1 8.0', '2 7.0', '2 8.0', '3 7.0', '3 8.0'])
  assert.deepEqual(seen('side by side', [lists[0], { ...lists[1], valueTexts: ['4', '5', '6'] }]), [
    '1 4',
    '2 5',
    '3 6',
  ])
  assert.deepEqual(countBatch(lists, 'side by side'), {
    problem: 'side by side needs lists of one length, these have 3, 2',
  })
  assert.deepEqual([toBatch([], 'combinations'), countBatch([], 'combinations')], [[[]], 1])
  const many = { ...lists[0], valueTexts: Array.from({ length: 30 }, String) }
  assert.deepEqual(countBatch([many, many], 'combinations'), { problem: '900 jobs are too many: at most 500 at once' })
})

test('values are typed one in a line, texts of several lines between lines of dashes, each by the rules of its field', () => {
  const seed = fieldsOf(CLASSES).find(({ input }) => input === 'seed')
  assert.ok(seed !== undefined)
  assert.deepEqual(readValues(seed, '18446744073709551615\n\n 7 '), { valueTexts: ['18446744073709551615', '7'] })
  assert.deepEqual(readValues(seed, '1\n-1'), { problem: 'value 2: at least 0' })
  assert.deepEqual(readValues(seed, ' \n'), { problem: 'no value yet' })
  const texts = ['a\nb', 'c -- d']
  assert.deepEqual(splitValues('multiline', joinValues('multiline', texts)), texts)
})

test('two workflows differ in the inputs that were changed, and in nodes that only one has', () => {
  const a = readWorkflow(WORKFLOW)
  const b = readWorkflow(changeWorkflow(WORKFLOW, [{ node: '4', input: 'seed', valueText: '1' }]))
  assert.deepEqual(diffWorkflows(a, a), { onlyA: [], onlyB: [], inputs: [] })
  assert.deepEqual(diffWorkflows(a, b).inputs, [
    { node: '4', title: 'KSampler', input: 'seed', a: '18446744073709551615', b: '1' },
  ])
  const other = readWorkflow('{"4":{"class_type":"Other","inputs":{}}}')
  const diff = diffWorkflows(a, other)
  assert.deepEqual([diff.onlyA.length, diff.onlyB.map(({ id }) => id)], [3, ['4']])
})

test('months follow each other, and cells of a sheet are never formulas', () => {
  assert.deepEqual(toMonth('2026-12'), { name: '2026-12', from: '2026-12-01', to: '2027-01-01' })
  assert.deepEqual([toMonth('2026-13'), toMonth('x')], [null, null])
  assert.deepEqual([monthBy('2026-12', 1), monthBy('2026-01', -1)], ['2027-01', '2025-12'])
  assert.equal(toCsv([['=1+1', 'a "b", c', '@x', '-2']]), `'=1+1,"a ""b"", c",'@x,'-2\r\n`)
})

test('times of usage are whole days of their zone, also where a day has 23 hours', () => {
  const now = Date.parse('2026-03-29T22:30:00Z')
  assert.deepEqual(daysOf('yesterday', now, 'UTC'), { from: '2026-03-28', to: '2026-03-29', last: '2026-03-28' })
  const vienna = daysOf('yesterday', now, 'Europe/Vienna')
  assert.deepEqual(vienna, { from: '2026-03-29', to: '2026-03-30', last: '2026-03-29' })
  assert.deepEqual(daysOf('7d', now, 'UTC'), { from: '2026-03-23', to: '2026-03-30', last: '2026-03-29' })
  assert.deepEqual(daysOf('month', now, 'UTC'), { from: '2026-03-01', to: '2026-03-30', last: '2026-03-29' })
})

test('a draft is the same after its way through an address, and what is no draft is none', async () => {
  const name = fc.string({ maxLength: 80 })
  const draft = fc.record({
    workflowText: fc.option(fc.json(), { nil: null }),
    name,
    typed: fc.array(fc.tuple(name, fc.string())),
    files: fc.array(fc.tuple(name, fc.array(fc.tuple(fc.uuid(), name, fc.constant('image/png'))))),
    several: fc.array(name),
    way: fc.constantFrom('combinations' as const, 'side by side' as const),
  })
  await fc.assert(
    fc.asyncProperty(draft, async (one) => {
      const text = await packDraft(one)
      assert.ok(text !== null)
      const found = readRunHash(writeRunHash({ isJson: true, draft: text })).draft ?? ''
      assert.deepEqual(await unpackDraft(found), { ...one })
    }),
    { numRuns: 20 },
  )
  const long = Array.from({ length: 40_000 }, (_, index) => Math.sin(index)).join()
  const many = { ...{ workflowText: null, name: '', files: [], several: [] }, way: 'combinations' as const }
  assert.equal(await packDraft({ ...many, typed: [['1 a', long]] }), null)
  for (const text of ['', 'x', '!', 'x'.repeat(200), 'a'.repeat(20_000)]) assert.equal(await unpackDraft(text), null)
  // A few letters that unfold to more than any form holds, and a file that is no id.
  assert.equal(await unpackDraft((await packDraft({ ...many, typed: [['1 a', 'a'.repeat(2_100_000)]] })) ?? ''), null)
  const crafted = await packDraft({ ...many, typed: [], files: [['1 a', [['"x"}', 'n', 'image/png']]]] })
  assert.equal(await unpackDraft(crafted ?? ''), null)
})
