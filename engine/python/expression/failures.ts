/** Refusals of the evaluator, under the names that clients know from ComfyUI's. */
import { NodeError } from '../../node/node-error.ts'
import { type PyValue, pyStr, pyTypeName } from '../python-value.ts'
import { shorten } from '../text-limit.ts'

const MAX_SHOWN = 100

export function tooHigh(left: PyValue, operator: string, right: PyValue): NodeError {
  const shown = (value: PyValue) => shorten(pyStr(value), MAX_SHOWN)
  return new NodeError(
    'simpleeval.NumberTooHigh',
    `Sorry! I don't want to evaluate ${shown(left)} ${operator} ${shown(right)}`,
  )
}

export function tooLong(): NodeError {
  return new NodeError('simpleeval.IterableTooLong', 'Sorry, I will not evaluate something that long.')
}

export function notAvailable(what: string): NodeError {
  return new NodeError('simpleeval.FeatureNotAvailable', `Sorry, ${what} is not available in this evaluator`)
}

export function typeError(message: string): NodeError {
  return new NodeError('TypeError', message)
}

export function unsupported(operator: string, left: PyValue, right: PyValue): NodeError {
  return typeError(`unsupported operand type(s) for ${operator}: '${pyTypeName(left)}' and '${pyTypeName(right)}'`)
}
