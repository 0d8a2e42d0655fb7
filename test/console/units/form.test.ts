import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readNodeClasses } from '../../../console/src/api/node-classes.ts'
import { changeWorkflow } from '../../../console/src/form/change-workflow.ts'
import { readSchemaFields, toSchemaFields } from '../../../console/src/form/schema-fields.ts'
import { randomSeed, readField, showValue, toFieldGroups } from '../../../console/src/form/workflow-fields.ts'
import { readWorkflow } from '../../../console/src/graph/workflow-graph.ts'
import { monthBy, toCsv, toMonth } from '../../../console/src/pages/account/usage-range.ts'
import { diffWorkflows } from '../../../console/src/pages/diff/workflow-diff.ts'
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

test('a schema becomes fields, and what it cannot draw is a field of JSON', () => {
  const fields = toSchemaFields({
    required: ['text', 'list'],
    example: { text: 'Hello' },
    properties: {
      width: { type: 'integer', minimum: 1, maximum: 8192, default: 768 },
      text: { type: 'string', maxLength: 1000 },
      align: { type: 'string', enum: ['left', 'right'], default: 'left' },
      list: { type: 'array', items: { type: 'string' } },
    },
  })
  assert.deepEqual(
    fields.map(({ name, field, isRequired }) => `${name} ${field.kind} ${isRequired}`),
    ['text multiline true', 'list json true', 'width integer false', 'align choice false'],
  )
  const read = (typed: Record<string, string>) => readSchemaFields(fields, new Map(Object.entries(typed)))
  assert.deepEqual([...read({}).problems], [['list', 'needed']])
  assert.equal(read({ list: '["a"]' }).text, '{"text":"Hello","list":["a"]}')
  assert.equal(read({ list: '[]', width: '768', align: 'right' }).text, '{"text":"Hello","list":[],"align":"right"}')
  assert.deepEqual(
    [...read({ list: '[', width: '9000' }).problems],
    [
      ['list', 'not JSON'],
      ['width', 'at most 8192'],
    ],
  )
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
