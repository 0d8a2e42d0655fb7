/**
 * Judges an input before anything is dispatched: the model's name in it, its schema, whether it leaves the price without any
 * bound, and whether a provider may read a price into it that we do not. Everything that is wrong is listed. Schemas are compiled
 * by an adapter.
 */
import { sourcesOf } from '../pricing/price-rule.ts'
import { findUnbounded } from '../pricing/pricing.ts'
import type { ValidationFailure } from '../router-error.ts'
import type { JsonPath } from './json-path.ts'
import { compileNames, findLookalikes } from './lookalikes.ts'
import type { JsonRecord, Model } from './model.ts'

const MAX_LISTED = 100
const SHOWN_LENGTH = 128

/** Empty when the input is fine. */
export type CheckInput = (input: JsonRecord) => readonly ValidationFailure[]

/** Throws with a readable reason when the schema itself is wrong. */
export type CompileSchema = (schema: JsonRecord) => CheckInput

export function createCheckInput(model: Model, compile: CompileSchema): CheckInput {
  const { schema, modelField, modelName } = model.input
  const checkSchema: CheckInput = schema === null ? () => [] : whenNeeded(() => compile(schema))
  const checkNames = createCheckNames(model)
  const check: CheckInput = (input) => {
    const failures = [...checkSchema(input), ...checkNames(input)]
    return failures.length > 0 ? failures : findUnbounded(model.price, input).map(toUnbounded)
  }
  if (modelField === null) return check
  return (input) => {
    const named = input[modelField]
    // The router fills an omitted name; null counts as omitted.
    const failures = check(named === null ? withoutField(input, modelField) : input)
    const isOther = named !== undefined && named !== null && named !== modelName
    if (!isOther) return failures
    const others = failures.filter(({ loc }) => !(loc.length === 2 && loc[1] === modelField))
    return [toOtherModel(modelField, modelName, named), ...others]
  }
}

/** Refuses names that a provider may take for one that decides model or price, and that we do not read. */
export function createCheckNames({ price, input: { modelField } }: Model, also: readonly string[] = []): CheckInput {
  const priced = sourcesOf(price).flatMap(({ from, path }) => (from === 'input' ? [path] : []))
  const named = [...also, ...(modelField === null ? [] : [modelField])].map((name) => [name])
  const names = compileNames([...priced, ...named])
  return (input) =>
    findLookalikes(names, input)
      .slice(0, MAX_LISTED)
      .map(({ at, meant }) => ({
        loc: ['body', ...at.map((step) => (typeof step === 'string' ? step.slice(0, SHOWN_LENGTH) : step))],
        msg: `is not the name that is read here: write ${meant}, or leave it out`,
        type: 'value_error',
      }))
}

/** Of a large catalogue few models are called; a schema is compiled with the first call. */
function whenNeeded(compile: () => CheckInput): CheckInput {
  let check: CheckInput | null = null
  return (input) => {
    check ??= compile()
    return check(input)
  }
}

function withoutField(input: JsonRecord, field: string): JsonRecord {
  return Object.fromEntries(Object.entries(input).filter(([name]) => name !== field))
}

function toOtherModel(field: string, expected: string, input: JsonRecord[string]): ValidationFailure {
  return {
    loc: ['body', field],
    msg: `the path names ${expected}; leave ${field} out or give the same`,
    type: 'one_of',
    ctx: { expected: [expected] },
    input,
  }
}

function toUnbounded(path: JsonPath): ValidationFailure {
  return {
    loc: ['body', ...path.filter((step) => typeof step !== 'symbol')],
    msg: 'must be a number above 0: the price of the call depends on it',
    type: 'value_error',
  }
}
