import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CallResult, NodeContext } from '../../node/node-context.ts'
import type { Value } from '../../values/value.ts'
import { regexExtract, regexMatch, regexReplace } from './regex-nodes.ts'

const context = { checkpoint() {} } as NodeContext
const flags = { case_insensitive: true, multiline: false, dotall: false }

function extract(mode: string, string: string, regex_pattern: string, group_index = 1): Value {
  const inputs = { string, regex_pattern, mode, ...flags, group_index }
  return ((regexExtract.run(inputs, context) as CallResult).outputs as readonly Value[])[0]
}

test('extraction gives the first or every match, whole or by group', () => {
  const [text, pattern] = ['a1 b22 c333', '([a-z])(\\d+)']
  assert.equal(extract('First Match', text, pattern), 'a1')
  assert.equal(extract('All Matches', text, pattern), 'a\nb\nc')
  assert.equal(extract('First Group', text, pattern, 2), '1')
  assert.equal(extract('All Groups', text, pattern, 2), '1\n22\n333')
  assert.equal(extract('First Group', text, pattern, 0), 'a1')
  assert.equal(extract('All Groups', text, pattern, 0), 'a1\nb22\nc333')
})

test('nothing found, no such group and a wrong pattern are an empty text', () => {
  assert.equal(extract('First Match', 'x', 'y'), '')
  assert.equal(extract('First Group', 'x', '(x)', 2), '')
  assert.equal(extract('All Groups', 'xx', 'x', 0), '')
  assert.equal(extract('All Matches', 'x', '('), '')
})

test('a group that took no part is nothing by itself, empty among all matches, and an error in a join of groups', () => {
  assert.equal(extract('First Group', 'b', '(a)|b'), null)
  assert.equal(extract('All Matches', 'ab', '(a)|b'), 'a\n')
  assert.throws(() => extract('All Groups', 'ab', '(a)|b'), {
    exceptionType: 'TypeError',
    message: 'sequence item 1: expected str instance, NoneType found',
  })
})

test('a wrong pattern matches nothing, and fails a replacement', () => {
  const inputs = { string: 'x', regex_pattern: '(', ...flags }
  assert.deepEqual(regexMatch.run(inputs, context), { outputs: [false] })
  assert.throws(() => regexReplace.run({ ...inputs, replace: '' }, context), {
    exceptionType: 're.error',
    message: 'missing ), unterminated subpattern at position 0',
  })
})

test('a replacement ignores case and replaces everything unless told otherwise', () => {
  const replace = (inputs: object) =>
    (regexReplace.run({ string: 'aAa', regex_pattern: 'a', replace: 'b', ...inputs }, context) as CallResult).outputs
  assert.deepEqual(replace({}), ['bbb'])
  assert.deepEqual(replace({ case_insensitive: false }), ['bAb'])
  assert.deepEqual(replace({ count: 2 }), ['bba'])
})

test('regular expressions never run on the engine thread', () => {
  const costs = [regexMatch, regexExtract, regexReplace].map((node) => node.costOf({}))
  assert.deepEqual(costs, ['compute', 'compute', 'compute'])
})
