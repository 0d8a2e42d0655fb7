/**
 * Values that must never be seen. They travel in a type of their own whose every accidental spelling (a template, JSON, a log
 * line, an inspection) is a placeholder; only `reveal` gives the value, and it is easy to search for.
 */
import { inspect } from 'node:util'

const PLACEHOLDER = '[secret]'

export class Secret<Value extends string | Uint8Array> {
  readonly #value: Value

  constructor(value: Value) {
    this.#value = value
  }

  reveal(): Value {
    return this.#value
  }

  toString(): string {
    return PLACEHOLDER
  }

  toJSON(): string {
    return PLACEHOLDER
  }

  [inspect.custom](): string {
    return PLACEHOLDER
  }
}

export interface Secrets {
  /** The static bearer token of the local kind; null: no authentication. */
  readonly token: Secret<string> | null
  /** 32 bytes that seal `extra_data` while a job waits; null: it lives in memory only. */
  readonly secretKey: Secret<Uint8Array> | null
}

// What a client can put after `Authorization: Bearer `.
const TOKEN = /^[\x21-\x7e]{1,1024}$/

export function readToken(text: string): Secret<string> {
  if (TOKEN.test(text)) return new Secret(text)
  throw new Error(
    'is empty, too long, or has blanks or other characters that no header can carry; give 1 to 1024 visible ASCII characters',
  )
}

const KEY_BYTES = 32

export function readSecretKey(text: string): Secret<Uint8Array> {
  const isHex = /^[0-9a-f]{64}$/i.test(text)
  const isBase64 = /^[A-Za-z0-9+/_-]{43}=?$/.test(text)
  const bytes = isHex ? Buffer.from(text, 'hex') : isBase64 ? Buffer.from(text, 'base64') : Buffer.alloc(0)
  if (bytes.byteLength === KEY_BYTES) return new Secret<Uint8Array>(new Uint8Array(bytes))
  throw new Error('is not 32 bytes in hex or base64; make one with: openssl rand -base64 32')
}
