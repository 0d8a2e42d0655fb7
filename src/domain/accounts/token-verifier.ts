/** Tokens that somebody else signs: who they speak for, and until when. */
export interface VerifiedToken {
  readonly accountId: string
  /** null: everything that the account may. */
  readonly scopes: readonly string[] | null
  readonly expiresAt: Date
}

/** null: not a token of ours. Rejects only when the keys to check it cannot be had. */
export type VerifyToken = (token: string) => Promise<VerifiedToken | null>
