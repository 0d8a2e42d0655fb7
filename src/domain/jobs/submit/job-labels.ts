/** The labels of a job: a small map of strings. The same rules judge a submit and a list filter. */
import { hasAtMost } from '../../../../lib/text/cut-text.ts'
import { ServiceError } from '../../errors.ts'

const MAX_PAIRS = 16
const MAX_VALUE_CHARACTERS = 512
const KEY = /^[A-Za-z0-9_.-]{1,64}$/
// Control characters, and the bidirectional embeddings, overrides and isolates that can disguise a text on a screen.
const FORBIDDEN = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u

export function isMetadataKey(key: string): boolean {
  return KEY.test(key)
}

export function isMetadataValue(value: unknown): value is string {
  if (typeof value !== 'string' || FORBIDDEN.test(value) || !value.isWellFormed()) return false
  return hasAtMost(value, MAX_VALUE_CHARACTERS)
}

// A key that no caller can choose.
const LABEL_KEY = ''
const MAX_LABEL_BYTES = 1024

/** The text that was sent instead of a map; null when a map was sent. */
export function labelOf(metadata: Readonly<Record<string, string>>): string | null {
  return Object.hasOwn(metadata, LABEL_KEY) ? metadata[LABEL_KEY] : null
}

// The labels of a call of an endpoint, under keys that no caller can choose either: its runs are found by them.
const ENDPOINT_KEY = '@endpoint'
const VERSION_KEY = '@version'
// The link to its page through which the call came.
const SHARE_KEY = '@share'

// What was asked, of a call through a link that came with a key: the same key with something else is another call.
const ASKED_KEY = '@asked'

export interface CalledEndpoint {
  readonly name: string
  readonly version: number
  /** The id of the link through which it was called; left out: none. */
  readonly share?: string
}

interface RunLabels extends Partial<CalledEndpoint> {
  readonly name: string
  /** A digest of what was asked. */
  readonly asked?: string
}

/** `version` left out: of any version; `share` likewise. */
export function toRunLabels({ name, version, share, asked }: RunLabels) {
  return {
    [ENDPOINT_KEY]: name,
    ...(version !== undefined && { [VERSION_KEY]: String(version) }),
    ...(share !== undefined && { [SHARE_KEY]: share }),
    ...(asked !== undefined && { [ASKED_KEY]: asked }),
  }
}

/** null: it was not noted. */
export function readAsked(metadata: Readonly<Record<string, string>>): string | null {
  return Object.hasOwn(metadata, ASKED_KEY) ? metadata[ASKED_KEY] : null
}

/** null: the graph was submitted as such. */
export function readRunLabels(metadata: Readonly<Record<string, string>>): CalledEndpoint | null {
  if (!Object.hasOwn(metadata, ENDPOINT_KEY)) return null
  const called = { name: metadata[ENDPOINT_KEY], version: Number(metadata[VERSION_KEY]) }
  return Object.hasOwn(metadata, SHARE_KEY) ? { ...called, share: metadata[SHARE_KEY] } : called
}

/**
 * A run of an endpoint of another account: the name has its owner before it. Whoever called it sees what went in and what came out, and
 * nothing of the workflow.
 */
export function isOfOther(metadata: Readonly<Record<string, string>>): boolean {
  return readRunLabels(metadata)?.name.includes('/') === true
}

/** Those that the submitter chose. */
export function ownLabels(metadata: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (!Object.hasOwn(metadata, ENDPOINT_KEY)) return metadata
  const { [ENDPOINT_KEY]: _, [VERSION_KEY]: __, [SHARE_KEY]: ___, [ASKED_KEY]: ____, ...own } = metadata
  return own
}

function readLabel(text: string): Record<string, string> {
  if (FORBIDDEN.test(text) || !text.isWellFormed())
    throw new ServiceError('metadata_invalid', 'metadata has control or bidirectional formatting characters')
  if (Buffer.byteLength(text) > MAX_LABEL_BYTES)
    throw new ServiceError('metadata_invalid', `metadata as one text must have at most ${MAX_LABEL_BYTES} bytes`)
  return { [LABEL_KEY]: text }
}

/** Absent means no labels. A text, as the official proxy takes it, is kept whole. Throws `metadata_invalid`. */
export function readMetadata(value: unknown): Record<string, string> {
  if (value === undefined) return {}
  if (typeof value === 'string') return readLabel(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ServiceError('metadata_invalid', 'metadata must be an object of string values, or one text')
  }
  const pairs = Object.entries(value)
  if (pairs.length > MAX_PAIRS) {
    throw new ServiceError('metadata_invalid', `metadata has ${pairs.length} pairs; at most ${MAX_PAIRS} are allowed`)
  }
  for (const [key, text] of pairs) {
    if (!isMetadataKey(key)) {
      throw new ServiceError(
        'metadata_invalid',
        'a metadata key must be 1 to 64 characters out of A-Z, a-z, 0-9, "_", "." and "-"',
      )
    }
    if (!isMetadataValue(text)) {
      throw new ServiceError(
        'metadata_invalid',
        `metadata.${key} must be a string of at most ${MAX_VALUE_CHARACTERS} characters without control or bidirectional formatting characters`,
        { details: { key } },
      )
    }
  }
  // fromEntries defines own properties, so a key named __proto__ stays an ordinary label.
  return Object.fromEntries(pairs)
}
