/**
 * A provider's answer in the form of the model that it stood in for. The form is a template: an object with one of the words below
 * is a place that is filled, everything else stays as it is. What the answer does not have is left out.
 *
 *   {"$from": path}              the first value there
 *   {"$each": path, "$item": …}  a list, with the template once for each; inside it, paths begin at the element
 *   {"$base64": path}            the media at an address (or in a data URI), inline
 *   {"$media_type": path}        their type
 *   {"$address": path}           the address itself, where the media could not be had inline
 */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import { type Alternate, findLeaves, findValue, readJsonPath } from '../catalog/model.ts'

export interface FetchedMedia {
  readonly contentType: string
  readonly bytes: Buffer
}

/** null: they cannot be had. */
type FetchMedia = (url: string) => Promise<FetchedMedia | null>

const WORDS = ['$from', '$each', '$base64', '$media_type', '$address'] as const
type Word = (typeof WORDS)[number]
const DATA_URI = /^data:([^;,]+)?(?:;[^,]*)?;base64,/

export async function translateAnswer(body: Buffer, { answer }: Alternate, fetchMedia: FetchMedia): Promise<Buffer> {
  const document = parseLosslessJson(body.toString('utf8'))
  const template = answer as JsonValue
  const addresses = new Set(inlineOf(template, document))
  const media = new Map(
    await Promise.all([...addresses].map(async (url) => [url, await readMedia(url, fetchMedia)] as const)),
  )
  return Buffer.from(stringifyLosslessJson(fill(template, document, media) ?? {}))
}

/** The form filled from the example, with a stand-in for all media. */
export function previewAnswer({ answer, answerExample }: Pick<Alternate, 'answer' | 'answerExample'>): unknown {
  const template = answer as JsonValue
  const document = JSON.parse(JSON.stringify(answerExample)) as JsonValue
  const standIn = { contentType: 'image/png', bytes: Buffer.from('media') }
  return fill(template, document, new Map(inlineOf(template, document).map((url) => [url, standIn])))
}

async function readMedia(url: string, fetchMedia: FetchMedia): Promise<FetchedMedia | null> {
  const inline = DATA_URI.exec(url)
  if (inline === null) return fetchMedia(url)
  const bytes = Buffer.from(url.slice(inline[0].length), 'base64')
  return { contentType: inline[1] ?? 'application/octet-stream', bytes }
}

function wordOf(template: JsonValue): Word | null {
  return isJsonObject(template) ? (WORDS.find((word) => word in template) ?? null) : null
}

/** What is wrong with a template, in words. */
export function checkTemplate(template: unknown): string[] {
  if (typeof template !== 'object' || template === null) return []
  const unknown = Object.keys(template).filter(
    (name) => name.startsWith('$') && name !== '$item' && !WORDS.some((word) => word === name),
  )
  const problems = unknown.map((name) => `has no word ${name}; there are ${WORDS.join(', ')}`)
  const word = wordOf(template as JsonValue)
  if (word === null) return [...problems, ...Object.values(template).flatMap(checkTemplate)]
  const path: unknown = (template as Record<string, unknown>)[word]
  try {
    readJsonPath(typeof path === 'string' ? path : '..')
  } catch {
    problems.push(`${word} must be a path, such as data[].url`)
  }
  return word === '$each' ? [...problems, ...checkTemplate((template as JsonObject)['$item'])] : problems
}

function pathOf(template: JsonObject, word: Word) {
  return readJsonPath(String(template[word]))
}

/** The addresses of all media that are wanted inline. */
function inlineOf(template: JsonValue, scope: unknown): string[] {
  const word = wordOf(template)
  if (word === '$base64' || word === '$media_type') {
    const url = findValue(scope, pathOf(template as JsonObject, word))
    return typeof url === 'string' && url !== '' ? [url] : []
  }
  if (word === '$each') {
    const { $item = null } = template as JsonObject
    return findLeaves(scope, pathOf(template as JsonObject, word)).flatMap(({ value }) => inlineOf($item, value))
  }
  if (word !== null || typeof template !== 'object' || template === null) return []
  return Object.values(template).flatMap((item) => inlineOf(item as JsonValue, scope))
}

type Media = ReadonlyMap<string, FetchedMedia | null>

function fill(template: JsonValue, scope: unknown, media: Media): JsonValue | undefined {
  const word = wordOf(template)
  if (word !== null) return FILL[word](template as JsonObject, scope, media)
  if (Array.isArray(template))
    return template.map((item) => fill(item, scope, media)).filter((item) => item !== undefined)
  if (!isJsonObject(template)) return template
  const members = Object.entries(template).map(([name, item]) => [name, fill(item, scope, media)] as const)
  const there = members.filter((member): member is readonly [string, JsonValue] => member[1] !== undefined)
  // Of an object nothing but places, all of which stayed empty, nothing is left.
  return there.length === 0 && members.length > 0 ? undefined : Object.fromEntries(there)
}

const FILL: Readonly<Record<Word, (template: JsonObject, scope: unknown, media: Media) => JsonValue | undefined>> = {
  $from: (template, scope) =>
    (findValue(scope, pathOf(template, '$from')) as JsonValue | null | undefined) ?? undefined,
  $each(template, scope, media) {
    const { $item = null } = template
    return findLeaves(scope, pathOf(template, '$each'))
      .map(({ value }) => fill($item, value, media))
      .filter((item) => item !== undefined)
  },
  $base64: (template, scope, media) => mediaAt(template, '$base64', { scope, media })?.bytes.toString('base64'),
  $media_type: (template, scope, media) => mediaAt(template, '$media_type', { scope, media })?.contentType,
  $address(template, scope, media) {
    const url = findValue(scope, pathOf(template, '$address'))
    return typeof url === 'string' && url !== '' && (media.get(url) ?? null) === null ? url : undefined
  },
}

interface Filling {
  readonly scope: unknown
  readonly media: Media
}

function mediaAt(template: JsonObject, word: Word, { scope, media }: Filling): FetchedMedia | null | undefined {
  return media.get(String(findValue(scope, pathOf(template, word))))
}
