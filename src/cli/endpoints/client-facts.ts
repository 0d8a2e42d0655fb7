/** What clients in all languages are made of, and texts of others as parts of source text: none of them can become code. */
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import type { EndpointWire, InputWire, OutputWire, VersionWire } from './endpoint-api.ts'
import { toLimits, toShown } from './endpoint-text.ts'

export interface ClientFacts {
  /** As it is called: `card`, or `card@stable`. */
  readonly reference: string
  readonly baseUrl: string
  readonly endpoint: Pick<EndpointWire, 'name' | 'title' | 'description'>
  readonly version: Pick<VersionWire, 'version' | 'inputs' | 'outputs'>
}

/** The name as a part of an address: of another account's it has the owner before it. */
export function toPathPart(reference: string): string {
  return encodeURIComponent(reference).replace('%40', '@')
}

// What a comment of neither language can hold, and characters that make a reader see another order than the compiler.
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point.
const LINE_END = /\r\n|[\n\r\u000b\u000c\u001c-\u001e\u0085\u2028\u2029]/

/** The lines of a comment, none of which can end it. */
export function toCommentLines(text: string): string[] {
  return text
    .toWellFormed()
    .trim()
    .split(LINE_END)
    .map((line) => line.replaceAll(UNSEEN, '').replaceAll('*/', '* /').trimEnd())
}

/** A text as both languages write it: JSON, with everything escaped that cannot be seen. */
export function toLiteral(text: string): string {
  const toEscape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(text)
    .replaceAll(UNSEEN, toEscape)
    .replaceAll(/[\u2028\u2029]/g, toEscape)
}

export function describeInput(input: InputWire): string[] {
  const { title, description, default: preset = null, type, required } = input
  const limits = toLimits(input)
  return [
    ...toCommentLines(description === '' ? title : description),
    ...(limits === '' ? [] : toCommentLines(`Takes: ${limits.slice(0, MAX_LIMITS)}`)),
    ...(type === 'seed' ? ['Drawn at random when it is left out; the run says which it was.'] : []),
    ...(required || preset === null ? [] : toCommentLines(`Default: ${toShown(preset).slice(0, MAX_LIMITS)}`)),
  ].filter((line) => line !== '')
}

const MAX_LIMITS = 500

export function describeOutput({ title, kind }: OutputWire): string[] {
  return toCommentLines(title === '' || title === kind ? `Files: ${kind}.` : `${title} (${kind}).`)
}

/** A caller may have to send a number that not every language can write; its digits as a text do. */
export function isBeyondDouble({ minimum = null, maximum = null }: InputWire): boolean {
  return [minimum, maximum].some((bound: JsonValue) => typeof bound === 'bigint')
}
