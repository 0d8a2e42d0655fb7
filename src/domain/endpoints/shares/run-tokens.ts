/**
 * What a visitor knows one of his runs by. Ids of jobs are not made to be secret, so a token adds what nobody can guess and nobody has to keep:
 * a keyed digest of the link and the job.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

const ID_BYTES = 16
const PROOF_BYTES = 16
const TOKEN = /^[A-Za-z0-9_-]{43}$/

export interface SharedRunTokens {
  tokenOf(shareId: string, jobId: string): string
  /** The id of the job; null: no token of a run of this link. */
  read(shareId: string, token: string): string | null
}

export function createSharedRunTokens(secret: Uint8Array): SharedRunTokens {
  const proofOf = (shareId: string, jobId: string) =>
    createHmac('sha256', secret).update(`run of share ${shareId} ${jobId}`).digest().subarray(0, PROOF_BYTES)
  return {
    tokenOf: (shareId, jobId) =>
      Buffer.concat([Buffer.from(jobId.replaceAll('-', ''), 'hex'), proofOf(shareId, jobId)]).toString('base64url'),
    read(shareId, token) {
      if (!TOKEN.test(token)) return null
      const bytes = Buffer.from(token, 'base64url')
      const jobId = bytes.toString('hex', 0, ID_BYTES).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
      return timingSafeEqual(bytes.subarray(ID_BYTES), proofOf(shareId, jobId)) ? jobId : null
    },
  }
}
