/** Truth, choices and lists. Truth is Python's: zero, nothing and everything empty is false. */

import { pythonStrip } from '../../../lib/python/text.ts'
import { toPythonFloat, truncatePythonFloat } from '../../../lib/python/values.ts'
import { type Cost, defineNode, values } from '../../node/define-node.ts'
import {
  autogrow,
  defineDynamicListNode,
  defineDynamicNode,
  LETTERS,
  MATCHED_OUTPUT,
  type Members,
  matchType,
} from '../../node/dynamic-node.ts'
import { anything, type InputKind, ofType, string, truth } from '../../node/input-kinds.ts'
import { NodeError, refuseLongList } from '../../node/node-error.ts'
import { evaluateExpression } from '../../python/expression/evaluate.ts'
import {
  asNumber,
  fromPyNumber,
  type PyNumber,
  type PyValue,
  pyRepr,
  pyStr,
  pyTruth,
  pyTypeName,
  toPyValue,
} from '../../python/python-value.ts'
import { boundCpu, shorten } from '../../python/text-limit.ts'
import type { Value } from '../../values/value.ts'

const isTrue = (value: Value) => pyTruth(toPyValue(value))

export const notNode = defineNode({
  classType: 'ComfyNotNode',
  displayName: 'Not',
  category: 'utilities/logic',
  description: 'True when the value is false, zero, empty or nothing.',
  style: 'schema',
  required: { value: anything({}) },
  outputs: [{ type: 'BOOLEAN' }],
  cost: 'inline',
  run: ({ value }) => values(!isTrue(value)),
})

const operands = autogrow({ member: 'value', kind: anything({}), naming: { prefix: 'value', max: 10 }, min: 1 })

export const andNode = defineDynamicNode({
  classType: 'ComfyAndNode',
  displayName: 'And',
  category: 'utilities/logic',
  description: 'True when every value counts as true.',
  style: 'schema',
  required: { values: operands },
  outputs: [{ type: 'BOOLEAN' }],
  cost: 'inline',
  run: (inputs) => values(Object.values(inputs.values).every(isTrue)),
})

export const orNode = defineDynamicNode({
  classType: 'ComfyOrNode',
  displayName: 'Or',
  category: 'utilities/logic',
  description: 'True when at least one value counts as true.',
  style: 'schema',
  required: { values: operands },
  outputs: [{ type: 'BOOLEAN' }],
  cost: 'inline',
  run: (inputs) => values(Object.values(inputs.values).some(isTrue)),
})

const branch = matchType({ id: 'switch', allowedTypes: '*' }, { lazy: true })

/** Only the chosen branch is evaluated: the other may be expensive, or fail. */
export const switchNode = defineDynamicNode({
  classType: 'ComfySwitchNode',
  displayName: 'If/Else Switch',
  category: 'utilities/logic',
  description: 'Hands on one of two inputs and runs only what that one needs.',
  style: 'schema',
  experimental: true,
  required: { switch: truth(), on_false: branch, on_true: branch },
  outputs: [{ type: MATCHED_OUTPUT, name: 'output' }],
  outputMatchTypes: ['switch'],
  cost: 'inline',
  askLazy({ switch: isOn, on_true, on_false }) {
    const [name, value] = isOn ? (['on_true', on_true] as const) : (['on_false', on_false] as const)
    // Absent and null both mean: not evaluated yet.
    return value === undefined || value === null ? [name] : []
  },
  run: ({ switch: isOn, on_true, on_false }) => values((isOn ? on_true : on_false) ?? null),
})

/** The list of choices lives in the editor, so any value is accepted. */
const choice: InputKind<Value> = { spec: ['COMBO', { multiselect: false, options: [] }], read: (value) => value }

export const customCombo = defineNode({
  classType: 'CustomCombo',
  displayName: 'Custom Combo',
  category: 'utilities',
  description: 'A choice from a list that is written in the editor: the choice and its place in the list.',
  style: 'schema',
  experimental: true,
  required: { choice },
  outputs: [{ type: 'STRING' }, { type: 'INT', name: 'INDEX' }],
  selfChecked: ['choice'],
  fileInputs: [],
  acceptsAllInputs: true,
  cost: 'inline',
  run(inputs) {
    // The editor sends the index as an input of its own, which the class does not declare.
    const { index = 0 } = inputs as { readonly index?: Value }
    return values(inputs.choice, index)
  },
})

/** One list of everything that its inputs bring, in the order of their names. */
export const createList = defineDynamicListNode({
  classType: 'CreateList',
  displayName: 'Create List',
  category: 'utilities',
  description: 'Joins its inputs into one list; nodes after it run once per element.',
  style: 'schema',
  required: {
    inputs: autogrow({
      member: 'input',
      kind: matchType({ id: 'type', allowedTypes: '*' }),
      naming: { prefix: 'input', max: 10 },
      min: 1,
    }),
  },
  outputs: [{ type: MATCHED_OUTPUT, name: 'list', isList: true }],
  outputMatchTypes: ['type'],
  cost: 'inline',
  run({ inputs }) {
    const lists = Object.values(inputs)
    refuseLongList(lists.reduce((sum, list) => sum + list.length, 0))
    return values(lists.flat())
  },
})

// A formula over named values, evaluated as Python would, without any way to run code.

const MAX_LENGTH = 10_000
const MAX_SHOWN = 200

/** Powers and shifts can be long work, and so can texts that grow, a long formula and one over long integers. */
const HEAVY = /\*\*|pow|<<|['"]/
const INLINE_LENGTH = 500

interface MathInputs {
  readonly expression: string
  readonly values: Members<Value>
}

function costOf({ expression, values: given }: MathInputs): Cost {
  const isLong = (value: Value) => typeof value === 'bigint' && BigInt.asIntN(64, value) !== value
  const isHeavy = expression.length > INLINE_LENGTH || HEAVY.test(expression) || Object.values(given).some(isLong)
  return isHeavy ? 'compute' : 'inline'
}

function failure(expression: string, problem: string): NodeError {
  return new NodeError('ValueError', `Math Expression '${expression}' ${problem}`)
}

function evaluate(expression: string, given: Members<Value>, checkpoint: () => void): PyValue {
  if (pythonStrip(expression) === '') throw new NodeError('ValueError', 'Expression cannot be empty.')
  if (expression.length > MAX_LENGTH) {
    throw new NodeError('ValueError', `Expression is longer than ${MAX_LENGTH} characters.`)
  }
  const named = Object.entries(given).map(([name, value]) => [name, toPyValue(value)] as const)
  const list = named.map(([, value]) => value)
  const names = new Map<string, PyValue>([...named, ['values', list]])
  return evaluateExpression(pythonStrip(expression), names, checkpoint)
}

/** Throws when the result is no number, or too large for one. */
function toFiniteFloat(expression: string, number: PyNumber): number {
  const float = Number(number)
  if (Number.isFinite(float)) return toPythonFloat(number)
  const problem =
    typeof number === 'bigint'
      ? 'produced a result too large to represent as a float'
      : `produced a non-finite result: ${pyStr(number)}`
  throw failure(expression, problem)
}

export const mathExpression = boundCpu(
  defineDynamicNode({
    classType: 'ComfyMathExpression',
    displayName: 'Math Expression',
    category: 'utilities',
    description:
      'Computes a formula over the values a, b, c … and gives the result as a float, an integer and a truth value.',
    style: 'schema',
    required: {
      expression: string({ default: 'a + b', multiline: true }),
      values: autogrow({ member: 'value', kind: ofType('FLOAT,INT,BOOLEAN'), naming: { names: LETTERS }, min: 1 }),
    },
    outputs: [{ type: 'FLOAT' }, { type: 'INT' }, { type: 'BOOLEAN', name: 'BOOL' }],
    cost: costOf,
    run({ expression, values: given }, { checkpoint }) {
      const result = evaluate(expression, given, checkpoint)
      const number = asNumber(result)
      if (number === null) {
        const shown = `${pyTypeName(result)}: ${shorten(pyRepr(result), MAX_SHOWN)}`
        throw failure(expression, `must evaluate to a numeric result, got ${shown}`)
      }
      const float = toFiniteFloat(expression, number)
      const int = typeof number === 'bigint' ? number : truncatePythonFloat(number)
      return values(fromPyNumber(float), fromPyNumber(int), pyTruth(result))
    },
  }),
)
