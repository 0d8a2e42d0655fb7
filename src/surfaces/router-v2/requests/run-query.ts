/**
 * The query of a call. `model_provider` may only name what runs the model anyway. A model has no second provider to fall back
 * to, so `strict_mode` and `fallback_provider` are accepted and change nothing. `reject_unknown_fields=true` refuses top-level
 * fields that the model's schema does not declare. Other parameters are ignored.
 */
import type { OpenedModel } from '../../../domain/models/access/model-access.ts'
import { isRecord, type Model } from '../../../domain/models/catalog/model.ts'
import { RouterError, type ValidationFailure } from '../../../domain/models/router-error.ts'
import { findRepeated, readQuery } from '../../kit/request-url.ts'

/** The model's own provider. */
const NATIVE: ReadonlySet<string> = new Set(['default', 'comfy', 'comfyui'])
/** Names that official clients know of others, which serve no model here. */
const ELSEWHERE: ReadonlySet<string> = new Set(['fal', 'wavespeed', 'runware', 'higgsfield'])
const SWITCHES = ['strict_mode', 'reject_unknown_fields'] as const
const SINGLE: readonly string[] = ['model_provider', 'fallback_provider', ...SWITCHES]

/** The model as this query wants it. Throws malformed, unknown_model. */
export function openWithQuery(opened: OpenedModel, url: string | undefined): OpenedModel {
  if (url === undefined || !url.includes('?')) return opened
  const query = readPairs(url)
  refuseOtherProvider(query.get('model_provider'), opened.model)
  for (const name of SWITCHES) mustBeSwitch(name, query.get(name))
  if (query.get('reject_unknown_fields') !== 'true') return opened
  const known = declaredFields(opened.model)
  if (known === null) return opened
  const { checkInput } = opened
  return { ...opened, checkInput: (input) => [...checkInput(input), ...unknownFields(input, known)] }
}

function readPairs(url: string): ReadonlyMap<string, string> {
  const pairs = readQuery(url)
  if (pairs === null) throw new RouterError('malformed', 'the query cannot be read')
  const repeated = findRepeated(pairs, SINGLE)
  if (repeated !== null) throw new RouterError('malformed', `${repeated} occurs twice in the query`)
  return new Map(pairs)
}

function refuseOtherProvider(name: string | undefined, { id }: Model): void {
  if (name === undefined || NATIVE.has(name)) return
  if (ELSEWHERE.has(name))
    throw new RouterError('unknown_model', `${id} is not served by ${name}; leave model_provider out`)
  const known = [...NATIVE, ...ELSEWHERE].join(', ')
  throw new RouterError('malformed', `model_provider must be one of ${known}`)
}

function mustBeSwitch(name: string, value: string | undefined): void {
  if (value === undefined || value === 'true' || value === 'false') return
  throw new RouterError('malformed', `${name} must be true or false`)
}

/** null: the model has no schema, or one that names no fields, and takes any object. */
function declaredFields({ input: { schema, modelField } }: Model): ReadonlySet<string> | null {
  const properties = schema?.['properties']
  if (!isRecord(properties)) return null
  return new Set([...Object.keys(properties), ...(modelField === null ? [] : [modelField])])
}

function unknownFields(input: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): ValidationFailure[] {
  const unknown = Object.keys(input).filter((field) => !known.has(field))
  return unknown.map((field) => ({ loc: ['body', field], msg: 'the model knows no such field', type: 'value_error' }))
}
