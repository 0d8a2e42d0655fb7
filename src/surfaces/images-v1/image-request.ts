/** What a request of an image client asks for, before it is known which inputs the endpoint has. Pure. Refusals name the parameter. */
import { type JsonObject, type JsonValue, NumberText } from '../../../lib/json/lossless-json.ts'
import type { PictureFormat } from '../../domain/assets/pictures.ts'
import { invalidField } from '../../domain/errors.ts'
import { isMetadataValue } from '../../domain/jobs/submit/job-labels.ts'

export interface ImageRequest {
  /** null: whatever the account's only one is. */
  readonly model: string | null
  readonly prompt: string | null
  /** null: one. */
  readonly n: number | null
  /** Pictures as addresses instead of base64. */
  readonly isByUrl: boolean
  /** null: as the endpoint makes them. */
  readonly format: PictureFormat | null
  readonly compression: number | null
  readonly isStream: boolean
  readonly partialImages: number
  /** The caller's own user, as a label of the job. */
  readonly user: string | null
  /** Everything else, which may be an input of the endpoint. */
  readonly others: JsonObject
}

const MAX_IMAGES = 10
// Of the id of a model, or of an endpoint with its owner and its version.
const MAX_NAME_LENGTH = 256
const FORMATS: readonly PictureFormat[] = ['png', 'jpeg', 'webp']
const OWN_FIELDS: ReadonlySet<string> = new Set([
  ...['model', 'prompt', 'n', 'response_format', 'output_format', 'output_compression'],
  ...['stream', 'partial_images', 'user', 'safety_identifier'],
])

/** `areTexts`: forms have texts only. */
export function readImageRequest(body: JsonObject, { areTexts }: { readonly areTexts: boolean }): ImageRequest {
  const given = new Map(Object.entries(body).filter(([, value]) => value !== null))
  const text = (name: string) => readText(given.get(name), name)
  const whole = (name: string, from: number, to: number) => readWhole(given.get(name), { name, areTexts, from, to })
  const responseFormat = oneOf(text('response_format'), 'response_format', ['b64_json', 'url'] as const)
  const format = oneOf(text('output_format'), 'output_format', FORMATS)
  const compression = whole('output_compression', 0, 100)
  const isByUrl = responseFormat === 'url'
  const converted = compression === null ? (format === null ? null : 'output_format') : 'output_compression'
  if (isByUrl && converted !== null)
    throw invalidField(
      converted,
      'does not go with response_format url: what has an address is as it was made; take b64_json',
    )
  const isStream = readFlag(given.get('stream'), 'stream', areTexts)
  if (isStream && isByUrl) throw invalidField('response_format', 'must be b64_json for a stream')
  return {
    model: readName(text('model')),
    prompt: text('prompt'),
    n: whole('n', 1, MAX_IMAGES),
    ...{ isByUrl, format, compression, isStream },
    partialImages: whole('partial_images', 0, 3) ?? 0,
    user: readUser(text('user') ?? text('safety_identifier')),
    others: Object.fromEntries([...given].filter(([name]) => !OWN_FIELDS.has(name))),
  }
}

export function readText(value: JsonValue | undefined, name: string): string | null {
  if (value === undefined || typeof value === 'string') return value ?? null
  throw invalidField(name, 'must be a text')
}

function readName(name: string | null): string | null {
  if (name === null || name.length <= MAX_NAME_LENGTH) return name
  throw invalidField('model', `must have at most ${MAX_NAME_LENGTH} characters`)
}

function readWhole(
  value: JsonValue | undefined,
  {
    name,
    areTexts,
    from,
    to,
  }: { readonly name: string; readonly areTexts: boolean; readonly from: number; readonly to: number },
): number | null {
  if (value === undefined) return null
  const plain = value instanceof NumberText ? value.value : value
  const number = areTexts && typeof plain === 'string' && /^\d{1,9}$/.test(plain) ? Number(plain) : plain
  if (typeof number === 'number' && Number.isInteger(number) && number >= from && number <= to) return number
  throw invalidField(name, `must be a whole number from ${from} to ${to}`)
}

function readFlag(value: JsonValue | undefined, name: string, areTexts: boolean): boolean {
  if (value === undefined || value === false || value === true) return value === true
  if (areTexts && (value === 'true' || value === 'false')) return value === 'true'
  throw invalidField(name, 'must be true or false')
}

function oneOf<Word extends string>(value: string | null, name: string, words: readonly Word[]): Word | null {
  if (value === null || (words as readonly string[]).includes(value)) return value as Word | null
  throw invalidField(name, `must be one of ${words.join(', ')}`)
}

function readUser(user: string | null): string | null {
  if (user === null || isMetadataValue(user)) return user
  throw invalidField('user', 'must have at most 512 characters, and no control characters')
}
