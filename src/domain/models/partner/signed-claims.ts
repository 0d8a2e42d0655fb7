/**
 * Short texts that carry what they allow, signed for one purpose and a limited time. Nothing is remembered: any process of the
 * service verifies them. The newest key signs and every known key verifies. All refusals read the same.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../../lib/clock.ts'
import type { SigningKey } from '../../assets/signed-url.ts'
import { isRecord, type JsonRecord } from '../catalog/model.ts'

export interface SignedClaims {
  sign(claims: JsonRecord, expiresAt: Date): string
  /** null: it was not signed here for this purpose, or its time is over. */
  verify(text: string): JsonRecord | null
}

const TEXT = /^([A-Za-z0-9_-]{1,4096})\.([A-Za-z0-9_-]{1,32})\.([A-Za-z0-9_-]{43})$/

/** `purpose` keeps a text from being used for anything else that the same keys sign. */
export function createSignedClaims(purpose: string, keys: readonly SigningKey[], clock: Clock): SignedClaims {
  const [newest] = keys
  if (newest === undefined) throw new RangeError('signing needs at least one key')
  const signatureOf = ({ id, secret }: SigningKey, body: string) =>
    createHmac('sha256', secret).update(`atelier ${purpose}\n${id}\n${body}`).digest('base64url')
  return {
    sign(claims, expiresAt) {
      const body = Buffer.from(JSON.stringify({ ...claims, exp: expiresAt.getTime() })).toString('base64url')
      return `${body}.${newest.id}.${signatureOf(newest, body)}`
    },
    verify(text) {
      const [, body = '', keyId, signature = ''] = TEXT.exec(text) ?? []
      const key = keys.find(({ id }) => id === keyId)
      // An unknown key costs as much as a known one.
      const expected = signatureOf(key ?? newest, body)
      const isSigned =
        signature.length === expected.length && timingSafeEqual(Buffer.from(signature), Buffer.from(expected))
      if (!isSigned || key === undefined) return null
      const claims: unknown = JSON.parse(Buffer.from(body, 'base64url').toString())
      if (!isRecord(claims) || typeof claims['exp'] !== 'number') return null
      return clock.now().getTime() < claims['exp'] ? claims : null
    },
  }
}
