/**
 * What a node's request says, from all places where it says something: path, query, body, and options within a text. All of it
 * goes to the provider, so a value that two places give differently is refused: nobody can tell which one the provider takes.
 */
import { createHash } from 'node:crypto'
import type { Asset } from '../../assets/asset.ts'
import { CONTENT_PATH } from '../../assets/signed-url.ts'
import { type JsonRecord, type Model, writeJsonPath } from '../catalog/model.ts'
import { createCheckNames } from '../catalog/model-catalog.ts'
import type { ValidationFailure } from '../router-error.ts'
import { type CallRoute, OPTION_TEXTS_MAX_LENGTH, readTextOptions } from './partner-route.ts'

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

interface SentBody {
  readonly bytes: Buffer
  /** Stands between the parts of a form; null: it is none. */
  readonly divider: string | null
}

type DigestRequest = (accountId: string, body: SentBody) => Promise<string>

interface DigestDeps {
  readonly findAssets: (
    accountId: string,
    assetIds: readonly string[],
  ) => Promise<readonly Pick<Asset, 'id' | 'hash'>[]>
}

interface Span {
  readonly from: number
  readonly to: number
  readonly text: string
}

const ADDRESS = new RegExp(
  `^${CONTENT_PATH}/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\\?X-Goog-Date=[^"'\\s<>\\\\]{1,900}&signature=[A-Za-z0-9_-]{43}`,
)
const ADDRESS_MAX_LENGTH = 1100
// No node hands over as many; a body full of addresses is compared as it is.
const MAX_ADDRESSES = 64

/**
 * What a node's request says, in short: equal for two sends of one request. Two sends of a form differ in the line between its
 * parts. A job that runs again hands its files over again, and they get new addresses here: such an address counts as the
 * bytes that lie behind it.
 */
export function createRequestDigest({ findAssets }: DigestDeps): DigestRequest {
  return async (accountId, { bytes, divider }) => {
    const found = findAddresses(bytes)
    const ids = [...new Set(found.map(({ text }) => text))]
    const assets = ids.length === 0 ? [] : await findAssets(accountId, ids)
    const hashes = new Map(assets.map(({ id, hash }) => [id, hash]))
    const addresses = found.flatMap((span) => {
      const hash = hashes.get(span.text)
      return hash === undefined ? [] : [{ ...span, text: hash }]
    })
    const dividers = divider === null ? [] : findDividers(bytes, divider)
    return digestWithout(bytes, [...addresses, ...dividers])
  }
}

/** The addresses of files of this service, each with the id of its asset. */
function findAddresses(bytes: Buffer): Span[] {
  const spans: Span[] = []
  for (let at = bytes.indexOf(`${CONTENT_PATH}/`); at >= 0; at = bytes.indexOf(`${CONTENT_PATH}/`, at + 1)) {
    const match = ADDRESS.exec(bytes.toString('latin1', at, at + ADDRESS_MAX_LENGTH))
    if (match === null) continue
    spans.push({ from: at, to: at + match[0].length, text: match[1] })
    if (spans.length > MAX_ADDRESSES) return []
  }
  return spans
}

function findDividers(bytes: Buffer, divider: string): Span[] {
  const line = Buffer.from(divider)
  const spans: Span[] = []
  for (let at = bytes.indexOf(line); at >= 0; at = bytes.indexOf(line, at + line.length))
    spans.push({ from: at, to: at + line.length, text: '' })
  return spans
}

function digestWithout(bytes: Buffer, spans: readonly Span[]): string {
  const hash = createHash('sha256')
  let from = 0
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    // The line feed keeps what stands before and behind apart.
    hash.update(bytes.subarray(from, span.from)).update(`${span.text}\n`)
    from = span.to
  }
  return hash.update(bytes.subarray(from)).digest('base64')
}
