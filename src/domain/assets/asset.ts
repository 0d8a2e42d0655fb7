/** An asset is an owned record over a blob; a blob is shared, content-addressed bytes. */
export interface Asset {
  readonly id: string
  readonly accountId: string
  /** Plain lower-case hex of the blake3 digest; surfaces add the `blake3:` prefix. */
  readonly hash: string
  readonly sizeBytes: number
  readonly contentType: string
  readonly filePath: string | null
  readonly tags: readonly string[]
  readonly createdAt: Date
  /** null: never. */
  readonly expiresAt: Date | null
  /** The job that produced it; null for uploads. */
  readonly jobId: string | null
}
