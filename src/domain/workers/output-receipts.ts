/**
 * Proof that a worker had the bytes that it names. A hash alone is no right to read: without a receipt a worker could make any
 * bytes of the service an output of its own job. A receipt is given for bytes that came under a lease, or that the job's account
 * has already, and counts only with that lease. It is a keyed digest, so that every process can check what another one gave.
 */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { SigningKey } from '../assets/signed-url.ts'
import { ServiceError } from '../errors.ts'

export interface StoredPiece {
  readonly hash: string
  readonly sizeBytes: number
}

export interface OutputReceipts {
  give(leaseId: string, piece: StoredPiece): string
  /** Throws forbidden. */
  mustHold(leaseId: string, piece: StoredPiece, receipt: string): void
}

// Separates these digests from any other use of the same secret.
const PURPOSE = 'atelier worker output v1'
const KEY_BYTES = 32

/** The newest key gives, every known one checks: keys can be exchanged while runs are under way. */
export function createOutputReceipts(keys: readonly SigningKey[]): OutputReceipts {
  const secrets = keys.map(({ secret }) => Buffer.from(hkdfSync('sha256', secret, '', PURPOSE, KEY_BYTES)))
  const sign = (secret: Buffer, leaseId: string, { hash, sizeBytes }: StoredPiece) =>
    createHmac('sha256', secret).update(`${leaseId}\n${hash}\n${sizeBytes}`).digest()
  return {
    give: (leaseId, piece) => sign(secrets[0], leaseId, piece).toString('base64url'),
    mustHold(leaseId, piece, receipt) {
      const shown = Buffer.from(receipt, 'base64url')
      const isRight = secrets.some((secret) => {
        const expected = sign(secret, leaseId, piece)
        return shown.length === expected.length && timingSafeEqual(shown, expected)
      })
      if (!isRight) throw new ServiceError('forbidden', 'these bytes were not stored under this lease; send them first')
    },
  }
}
