/**
 * Values that must never be printed. They have a type of their own that shows a placeholder wherever it is printed by accident (a
 * template, JSON, a log line, an inspection). Only `reveal` returns the value, and its uses are easy to find.
 */
import { accessSync, constants, readFileSync, statSync } from 'node:fs'
import { inspect } from 'node:util'
import { readSecretText } from '../../lib/standard-webhooks.ts'
import { ConfigError, quote } from './config-error.ts'

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

/** A key that signs content addresses. Without a name, one is derived from its secret. */
export interface SigningSecret {
  readonly name: string | null
  readonly secret: Secret<Uint8Array>
}

export interface Secrets {
  /** The static bearer token of the local kind; null: no authentication. */
  readonly token: Secret<string> | null
  /** 32 bytes that seal the credentials of jobs until they end; null: they live in memory only. */
  readonly secretKey: Secret<Uint8Array> | null
  /** Keys that sealed before, newest first: what they sealed still opens. */
  readonly formerSecretKeys: readonly Secret<Uint8Array>[]
  /** Of the database; null: it asks for none, or there is no database server. */
  readonly databasePassword: Secret<string> | null
  /** Of the servers that carry notices: of a user, or a token where there is no user; null: they ask for none, or there are none. */
  readonly busPassword: Secret<string> | null
  /** Of the bucket that holds the bytes, as `id:secret` or `id:secret:token`; null: they come from where the process runs. */
  readonly blobsKeys: Secret<string> | null
  /** The token of the admin API; null: there is no admin API. */
  readonly adminToken: Secret<string> | null
  /** Newest first; none: one is made and kept in the data folder. */
  readonly signingKeys: readonly SigningSecret[]
  /** Signs what is sent to the address of the pool hook; null: a key of the service does. */
  readonly poolHook: Secret<string> | null
  /** Keys and settings of providers, as JSON; null: none. */
  readonly providers: Secret<string> | null
  /** By host, the headers for those that files of callers are fetched from, as JSON; null: none. */
  readonly inputHeaders: Secret<string> | null
  /** What signs questions to the hooks of moderation, as JSON; null: there are none. */
  readonly moderation: Secret<string> | null
  /** What hosts of models are sent by the builder, as JSON; null: nothing. */
  readonly builderHeaders: Secret<string> | null
  /** Headers for the collector of traces, as JSON; null: none. */
  readonly traceHeaders: Secret<string> | null
}

// What a client can put after `Authorization: Bearer `.
const TOKEN = /^[\x21-\x7e]{1,1024}$/

export function readToken(text: string): Secret<string> {
  if (TOKEN.test(text)) return new Secret(text)
  throw new Error(
    'is empty, too long, or has blanks or other characters that no header can carry; give 1 to 1024 visible ASCII characters',
  )
}

export function readWebhookSecret(text: string): Secret<string> {
  if (readSecretText(text) !== null) return new Secret(text)
  throw new Error('is not a webhook secret; give whsec_ followed by 24 to 64 bytes in base64')
}

const KEY_BYTES = 32
const SECRET_KEYS_MAX = 8

/** Newest first. */
export function readSecretKeys(text: string): readonly Secret<Uint8Array>[] {
  const keys = text.split(',').map((item) => readSecretKey(item.trim()))
  if (keys.length <= SECRET_KEYS_MAX) return keys
  throw new Error(`has more than ${SECRET_KEYS_MAX} keys; leave out those whose jobs are past their retention`)
}

function readSecretKey(text: string): Secret<Uint8Array> {
  const isHex = /^[0-9a-f]{64}$/i.test(text)
  const isBase64 = /^[A-Za-z0-9+/_-]{43}=?$/.test(text)
  const bytes = isHex ? Buffer.from(text, 'hex') : isBase64 ? Buffer.from(text, 'base64') : Buffer.alloc(0)
  if (bytes.byteLength === KEY_BYTES) return new Secret<Uint8Array>(new Uint8Array(bytes))
  throw new Error('is not 32 bytes in hex or base64; make one with: openssl rand -base64 32')
}

const SIGNING_KEY = /^(?:([A-Za-z0-9_-]{1,32}):)?([A-Za-z0-9+/_-]{16,}={0,2})$/
const SIGNING_KEY_MIN_BYTES = 16
const SIGNING_KEYS_MAX = 16

export function readSigningKeys(text: string): readonly SigningSecret[] {
  const keys = text.split(',').map((item) => readSigningKey(item.trim()))
  const names = keys.flatMap(({ name }) => name ?? [])
  if (keys.length <= SIGNING_KEYS_MAX && new Set(names).size === names.length) return keys
  throw new Error(`has more than ${SIGNING_KEYS_MAX} keys, or two of one name; give each a name of its own`)
}

function readSigningKey(text: string): SigningSecret {
  const [, name = null, spelled = ''] = SIGNING_KEY.exec(text) ?? []
  const isHex = spelled.length % 2 === 0 && /^[0-9a-f]+$/i.test(spelled)
  const bytes = Buffer.from(spelled, isHex ? 'hex' : 'base64')
  if (bytes.byteLength >= SIGNING_KEY_MIN_BYTES) return { name, secret: new Secret<Uint8Array>(new Uint8Array(bytes)) }
  throw new Error(
    'has a key that is not at least 16 bytes in hex or base64, with an optional name: before it; make one with: openssl rand -base64 32',
  )
}

const MAX_SECRET_FILE_BYTES = 16_384

/** The first line of a small file that the setting names. */
export function readSecretFile(setting: string, path: string): Secret<string> {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat?.isFile() !== true || stat.size > MAX_SECRET_FILE_BYTES) {
    throw new ConfigError(`${setting} names ${quote(path)}, which is not a file of at most 16 KiB; correct the path`)
  }
  const [line] = readFileSync(path, 'utf8').split(/\r?\n/)
  if (line !== '') return new Secret(line)
  throw new ConfigError(`${setting} names ${quote(path)}, whose first line is empty; write the secret there`)
}

/** The file itself; `what` begins the message: "bus names the sslkey". */
export function mustBeReadable(what: string, file: string): string {
  try {
    accessSync(file, constants.R_OK)
    return file
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    throw new ConfigError(`${what} ${quote(file)}, which cannot be read (${code}); correct the path`)
  }
}
