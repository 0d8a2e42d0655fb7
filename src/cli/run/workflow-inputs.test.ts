import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type JsonObject, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { CommandError } from '../terminal.ts'
import { readInput, withInputs } from './workflow-inputs.ts'

const TEXT =
  '{"3":{"class_type":"KSampler","inputs":{"seed":18446744073709551615,"cfg":7.0}},"3.1":{"class_type":"Other","inputs":{}}}'
const workflow = parseLosslessJson(TEXT) as JsonObject

function readValueOf(text: string) {
  const { value } = readInput(text, workflow)
  assert.equal(value.kind, 'value')
  return value.kind === 'value' ? value.value : null
}

describe('--input', () => {
  test('is JSON where it is valid JSON, else text', () => {
    assert.equal(readValueOf('3.a=42'), 42)
    assert.equal(readValueOf('3.a=true'), true)
    assert.equal(readValueOf('3.a=a cat, sitting'), 'a cat, sitting')
    assert.equal(readValueOf('3.a="42"'), '42')
    assert.equal(readValueOf('3.a='), '')
    assert.equal(readValueOf('3.a=x=y'), 'x=y')
    assert.deepEqual(readValueOf('3.a=["1",0]'), ['1', 0])
    assert.equal(readValueOf('3.a=18446744073709551615'), 18446744073709551615n)
  })

  test('@ is a file and @@ is text with an @', () => {
    assert.deepEqual(readInput('3.image=@a/b.png', workflow).value, { kind: 'file', path: 'a/b.png' })
    assert.equal(readValueOf('3.a=@@home'), '@home')
  })

  test('takes the longest node id that matches, so that ids may contain dots', () => {
    const { nodeId, field } = readInput('3.1.seed=1', workflow)
    assert.deepEqual([nodeId, field], ['3.1', 'seed'])
  })

  test('a malformed input and an unknown node are mistakes in the call', () => {
    for (const bad of ['', 'seed', '3=1', '3.seed', '9.seed=1', '3.=1', '__proto__.x=1']) {
      assert.throws(
        () => readInput(bad, workflow),
        (error) => error instanceof CommandError && error.exitCode === 2,
        bad,
      )
    }
    assert.throws(() => readInput('9.seed=1', workflow), /it has 3 \(KSampler\), 3\.1 \(Other\)/)
  })
})

describe('the workflow', () => {
  test('keeps every digit that it does not change', () => {
    const input = readInput('3.steps=20', workflow)
    const text = stringifyLosslessJson(withInputs(workflow, [[input, 20]]))
    assert.equal(
      text,
      '{"3":{"class_type":"KSampler","inputs":{"seed":18446744073709551615,"cfg":7.0,"steps":20}},"3.1":{"class_type":"Other","inputs":{}}}',
    )
    assert.equal(stringifyLosslessJson(workflow), TEXT, 'the original is untouched')
  })

  test('has inputs with names of their own, which come before ids of nodes', () => {
    const parameters = [{ name: 'seed', node_id: '3', input: 'noise.seed' }]
    const { nodeId, field } = readInput('seed=5', workflow, parameters)
    assert.deepEqual([nodeId, field], ['3', 'noise.seed'])
    assert.throws(
      () => readInput('sead=5', workflow, parameters),
      /nor does it name a parameter; the workflow has seed/,
    )
  })
})
