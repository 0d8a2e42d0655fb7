/** A formula over named values, evaluated as Python would, without any way to run code. */

import { toPythonFloat, truncatePythonFloat } from '../../../lib/python/numbers.ts'
import { pythonStrip } from '../../../lib/python/text.ts'
import { type Cost, values } from '../../node/define-node.ts'
import { autogrow, LETTERS, type Members } from '../../node/dynamic-kinds.ts'
import { defineDynamicNode } from '../../node/dynamic-node.ts'
import { ofType, string } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
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
import { shorten } from '../../python/text-limit.ts'
import type { Value } from '../../values/value.ts'

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

export const mathExpression = defineDynamicNode({
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
})
