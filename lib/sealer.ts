/**
 * Seals bytes with AES-256-GCM, bound to a context (such as a record's id), so that a sealed value copied to
 * another record does not open. Layout: version byte, 12-byte nonce, 16-byte tag, ciphertext.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEADER_BYTES = 1 + NONCE_BYTES + TAG_BYTES
const SEALER_KEY_BYTES = 32

export interface Sealer {
  seal(plain: Uint8Array, context: string): Uint8Array
  /** null when the bytes were not sealed under one of the keys and this context, or were changed. */
  open(sealed: Uint8Array, context: string): Uint8Array | null
  /** What a former key sealed, sealed under the present one; null: the present one did, or none of the keys. */
  renew(sealed: Uint8Array, context: string): Uint8Array | null
}

/** The key seals; the former ones only open what they sealed before the key was exchanged. */
export function createSealer(key: Uint8Array, former: readonly Uint8Array[] = []): Sealer {
  const keys = [key, ...former]
  if (keys.some(({ byteLength }) => byteLength !== SEALER_KEY_BYTES)) {
    throw new RangeError(`a sealing key has ${SEALER_KEY_BYTES} bytes`)
  }
  const seal = (plain: Uint8Array, context: string) => sealWith(key, plain, context)
  return {
    seal,
    open: (sealed, context) => openWithAny(keys, sealed, context),
    renew(sealed, context) {
      if (openWithAny([key], sealed, context) !== null) return null
      const plain = openWithAny(former, sealed, context)
      return plain === null ? null : seal(plain, context)
    },
  }
}

function sealWith(key: Uint8Array, plain: Uint8Array, context: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(context))
  const body = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), body])
}

function openWithAny(keys: readonly Uint8Array[], sealed: Uint8Array, context: string): Uint8Array | null {
  if (sealed.byteLength < HEADER_BYTES || sealed[0] !== VERSION) return null
  for (const key of keys) {
    const plain = openWith(key, sealed, context)
    if (plain !== null) return plain
  }
  return null
}

function openWith(key: Uint8Array, sealed: Uint8Array, context: string): Uint8Array | null {
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(context))
  decipher.setAuthTag(sealed.subarray(1 + NONCE_BYTES, HEADER_BYTES))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES)), decipher.final()])
  } catch {
    return null
  }
}
