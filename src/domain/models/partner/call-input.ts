/**
 * What a node's request says, from all places where it says something: path, query, body, and options within a text. All of it
 * goes to the provider, so a value that two places give differently is refused: nobody can tell which one the provider takes.
 */
import { createCheckNames } from '../catalog/check-input.ts'
import { writeJsonPath } from '../catalog/json-path.ts'
import type { JsonRecord, Model } from '../catalog/model.ts'
import type { ValidationFailure } from '../router-error.ts'
import type { CallRoute } from './partner-route.ts'
import { OPTION_TEXTS_MAX_LENGTH, readTextOptions } from './text-options.ts'

interface SaidSomewhere {
  readonly fields: JsonRecord
  readonly query: Readonly<Record<string, string>>
  readonly params: Readonly<Record<string, string>>
}

interface CallInput {
  readonly input: JsonRecord
  /** For the model that it names: what is wrong with it. */
  readonly failuresFor: (model: Model) => readonly ValidationFailure[]
}

export function joinInput(route: CallRoute, { fields, query, params }: SaidSomewhere): CallInput {
  const address = { ...query, ...params }
  const options = route.textOptions === null ? [] : readTextOptions(fields, route.textOptions)
  const input = { ...Object.fromEntries(options ?? []), ...fields, ...address }
  const contradictions = [...Object.entries(fields), ...(options ?? [])]
    .filter(([name, value]) => Object.hasOwn(input, name) && !isSame(input[name], value))
    .map(([name]) => toFailure(name, 'is given in two places with different values; give it once'))
  const repeated = (options ?? [])
    .filter(([name], index, all) => all.findIndex(([other]) => other === name) !== index)
    .map(([name]) => toFailure(name, 'is given more than once in the text; give it once'))
  const unpriced = [...route.unpriced]
    .filter(([name]) => input[name] !== undefined && input[name] !== null)
    .map(([name, why]) => toFailure(name, why))
  const tooLong = options === null ? [toFailure(pathOf(route), TOO_LONG)] : []
  const named = [...Object.keys(address), ...route.unpriced.keys(), ...(route.modelAt === null ? [] : [route.modelAt])]
  return {
    input,
    failuresFor: (model) => [
      ...tooLong,
      ...repeated,
      ...contradictions,
      ...unpriced,
      ...(route.isForm ? filesIn(fields, model) : []),
      ...createCheckNames(model, named)(input),
    ],
  }
}

const TOO_LONG = `may have at most ${OPTION_TEXTS_MAX_LENGTH} characters: options are searched in it`

/**
 * Of a form, all that is no text is a file; nobody can say what a provider reads in one that stands for a number. A table of rates
 * may count on a file: it costs what the table says of anything that is no text.
 */
function filesIn(fields: JsonRecord, { price }: Model): ValidationFailure[] {
  const counted = price.kind === 'sum' ? price.parts.flatMap(({ times }) => times) : []
  const names = new Set(counted.flatMap(({ from, path }) => (from === 'input' ? path.slice(0, 1) : [])))
  const files = Object.entries(fields).filter(([name, value]) => typeof value === 'object' && names.has(name))
  return files.map(([name]) => toFailure(name, 'decides the price and must be a text, not a file'))
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || (typeof one !== 'object' && typeof other !== 'object' && String(one) === String(other))
}

function pathOf({ textOptions }: CallRoute): string {
  return textOptions === null ? '' : writeJsonPath(textOptions.path)
}

function toFailure(field: string, msg: string): ValidationFailure {
  return { loc: ['body', field.slice(0, 128)], msg, type: 'value_error' }
}
