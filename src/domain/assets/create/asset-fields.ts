/** The rules for what a caller may say about an asset besides its path. Each throws `invalid_field` and names the field. */

import { isMediaType, typeFromName } from '../../../../lib/files/mime.ts'
import { hasAtMost } from '../../../../lib/text/cut-text.ts'
import { invalidField } from '../../errors.ts'

const LIFETIME_MIN_SECONDS = 60
const LIFETIME_MAX_SECONDS = 604_800 // seven days
export const TAGS_MAX_COUNT = 32
const TAG_MAX_LENGTH = 128

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are exactly what is refused
const CONTROL = /[\x00-\x1f\x7f-\x9f]/

export function readContentType(text: string, field = 'content_type'): string {
  if (!isMediaType(text)) throw invalidField(field, 'must be a media type such as image/png, of at most 255 characters')
  return text
}

/** The type of a file whose sender names none: what its name suggests. */
export function contentTypeOf(fileName: string): string {
  return typeFromName(fileName) ?? 'application/octet-stream'
}

/** Tags are a set: order and repetition make no difference, also not for telling two records apart. */
export function readTags(tags: readonly string[]): readonly string[] {
  if (tags.length > TAGS_MAX_COUNT) throw invalidField('tags', `may hold at most ${TAGS_MAX_COUNT} tags`)
  for (const tag of tags) {
    if (tag === '' || !hasAtMost(tag, TAG_MAX_LENGTH) || !tag.isWellFormed() || CONTROL.test(tag)) {
      throw invalidField('tags', `must have 1 to ${TAG_MAX_LENGTH} characters each, without control characters`)
    }
  }
  return [...new Set(tags)].sort()
}

interface LifetimeRule {
  readonly now: Date
  /** What applies when the caller does not say; null: for ever. */
  readonly defaultMs: number | null
}

/** When the record ends; null: never. */
export function readExpiry(expiresInSeconds: number | null, { now, defaultMs }: LifetimeRule): Date | null {
  if (expiresInSeconds === null) return defaultMs === null ? null : new Date(now.getTime() + defaultMs)
  const isAllowed =
    Number.isInteger(expiresInSeconds) &&
    expiresInSeconds >= LIFETIME_MIN_SECONDS &&
    expiresInSeconds <= LIFETIME_MAX_SECONDS
  if (!isAllowed) {
    throw invalidField(
      'expires_in',
      `must be a whole number of seconds from ${LIFETIME_MIN_SECONDS} to ${LIFETIME_MAX_SECONDS}`,
    )
  }
  return new Date(now.getTime() + expiresInSeconds * 1000)
}
