/** Inputs of endpoints in the words of the router: what is wrong with a call, field by field. */
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { JsonRecord } from '../../models/catalog/model.ts'
import type { CheckInput } from '../../models/catalog/model-catalog.ts'
import type { ValidationFailure } from '../../models/router-error.ts'
import { checkInputs } from '../check-inputs.ts'
import type { EndpointInput, InputProblem } from '../endpoint.ts'

const TYPES: Readonly<Record<InputProblem['reason'], string>> = {
  unknown: 'value_error',
  missing: 'missing',
  wrong_type: 'value_error',
  too_small: 'greater_than_equal',
  too_large: 'less_than_equal',
  too_short: 'sequence_too_short',
  too_long: 'sequence_too_long',
  not_one_of: 'one_of',
  no_match: 'value_error',
  not_a_file: 'image_load_error',
  unsupported_type: 'image_load_error',
  file_too_large: 'image_load_error',
  fetch_failed: 'image_load_error',
  fetch_forbidden: 'image_load_error',
  not_available: 'value_error',
}

export function toFailures(problems: readonly InputProblem[]): ValidationFailure[] {
  return problems.map(({ name, reason, message }) => ({
    loc: ['body', name],
    // It begins with the name, which stands in `loc` already.
    msg: message.startsWith(name) ? message.slice(name.length).replace(/^:? /, '') : message,
    type: TYPES[reason],
  }))
}

/** What the router asks before a call is admitted. The run asks again, of the bytes of the body. */
export function createInputCheck(inputs: readonly EndpointInput[]): CheckInput {
  return (input) => toFailures(checkInputs(inputs, withExactNumbers(input), { random: () => 0 }).problems)
}

/** A number that lost digits when the body was read is a whole one all the same. */
function withExactNumbers(input: JsonRecord): JsonObject {
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => {
      const isLarge = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
      return [name, isLarge ? BigInt(value) : (value as JsonValue)]
    }),
  )
}
