/** Readers for the variables of OpenTelemetry. An empty text counts as a variable that is not set. */
import { Secret } from '../secrets.ts'

/** null: not set. */
export function readOtlpUrl(text: string): string | null {
  if (text === '') return null
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.hash === '') return text
  throw new Error('is not an http or https address without a user name in it; give for example http://127.0.0.1:4318')
}

const MAX_PAIRS = 64
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
const HEADER_VALUE = /^[\x20-\x7e]{0,4096}$/

/** JSON of an object; null: none. */
export function readOtlpHeaders(text: string): Secret<string> | null {
  const pairs = readPairs(text)
  if (pairs.some(([name, value]) => !HEADER_NAME.test(name) || !HEADER_VALUE.test(value)))
    throw new Error('has a name or a value that no header can have; give name=value,name=value')
  const headers = pairs.map(([name, value]) => [name.toLowerCase(), value])
  return pairs.length === 0 ? null : new Secret(JSON.stringify(Object.fromEntries(headers)))
}

const MAX_ATTRIBUTE_LENGTH = 255

export function readResource(text: string): Readonly<Record<string, string>> {
  const pairs = readPairs(text)
  if (pairs.some((pair) => pair.some((part) => part.length > MAX_ATTRIBUTE_LENGTH)))
    throw new Error(`has a key or a value of more than ${MAX_ATTRIBUTE_LENGTH} characters; shorten it`)
  return Object.fromEntries(pairs)
}

export function readServiceName(text: string): string {
  if (/^[^\p{Cc}]{1,255}$/u.test(text)) return text
  throw new Error('is not a name of at most 255 characters; give for example atelier')
}

function readPairs(text: string): readonly (readonly [string, string])[] {
  const items = text.split(',').filter((item) => item.trim() !== '')
  if (items.length > MAX_PAIRS) throw new Error(`has more than ${MAX_PAIRS} pairs`)
  return items.map((item) => {
    const at = item.indexOf('=')
    if (at < 1) throw new Error('is not a list of pairs; give key=value,key=value')
    return [item.slice(0, at).trim(), decode(item.slice(at + 1).trim())]
  })
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('has a value with a broken % in it; write a percent sign as %25')
  }
}

export function readRatio(text: string): number {
  const ratio = Number(text)
  if (/^\d{1,3}(\.\d{1,12})?$/.test(text) && ratio <= 1) return ratio
  throw new Error('is not a number from 0 to 1; give for example 0.1')
}
