/**
 * API keys as text: `atl_<id>_<secret><checksum>`. The prefix lets people and scanners recognise a key, the id finds its
 * record, the checksum refuses typing mistakes and noise before anything is looked up. The secret has 190 bits, so a plain
 * SHA-256 is all that needs to be stored of it.
 */
import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

export interface ApiKey {
  readonly id: string
  readonly accountId: string
  readonly name: string
  /** null: everything that the account may. */
  readonly scopes: readonly string[] | null
  /** Those that it may call and see, each a name, perhaps with a version; null: all. */
  readonly endpoints: readonly string[] | null
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly revokedAt: Date | null
  /** To the minute or so: written in batches, never while a request waits. */
  readonly lastUsedAt: Date | null
  /** Until when the secret before the last rotation still counts. */
  readonly previousUntil: Date | null
}

/** A key and what is stored of its secrets. */
export interface StoredKey extends ApiKey {
  readonly digest: Uint8Array
  readonly previousDigest: Uint8Array | null
}

export const KEY_PREFIX = 'atl_'
const ID_LENGTH = 12
const SECRET_LENGTH = 32
const CHECKSUM_LENGTH = 6
const KEY_LENGTH = KEY_PREFIX.length + ID_LENGTH + 1 + SECRET_LENGTH + CHECKSUM_LENGTH
const KEY = /^atl_([0-9A-Za-z]{12})_[0-9A-Za-z]{38}$/
/** Whatever looks like a key, anywhere in a text. */
export const KEY_IN_TEXT = /atl_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}/g
const KEY_ID = /^[0-9A-Za-z]{12}$/
const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

export function newKeyId(): string {
  return randomLetters(ID_LENGTH)
}

/** The text of a new secret for this key: shown once, then known to its owner alone. */
export function newKeyText(id: string): string {
  const body = `${KEY_PREFIX}${id}_${randomLetters(SECRET_LENGTH)}`
  return body + checksumOf(body)
}

export function isKeyId(text: string): boolean {
  return KEY_ID.test(text)
}

/** The id in a well-formed key; null for anything else. */
export function readKeyId(text: string): string | null {
  if (text.length !== KEY_LENGTH) return null
  const id = KEY.exec(text)?.[1]
  const bodyLength = KEY_LENGTH - CHECKSUM_LENGTH
  return id !== undefined && checksumOf(text.slice(0, bodyLength)) === text.slice(bodyLength) ? id : null
}

export function digestOf(credential: string): Buffer {
  return hash('sha256', credential, 'buffer')
}

function checksumOf(text: string): string {
  let rest = crc32(text)
  let letters = ''
  for (let index = 0; index < CHECKSUM_LENGTH; index++) {
    letters = LETTERS[rest % LETTERS.length] + letters
    rest = Math.floor(rest / LETTERS.length)
  }
  return letters
}

// Bytes from here on would make the first letters likelier than the last.
const FAIR_BYTES = 256 - (256 % LETTERS.length)

function randomLetters(count: number): string {
  let letters = ''
  while (letters.length < count) {
    for (const byte of randomBytes(count)) {
      if (byte < FAIR_BYTES && letters.length < count) letters += LETTERS[byte % LETTERS.length]
    }
  }
  return letters
}
