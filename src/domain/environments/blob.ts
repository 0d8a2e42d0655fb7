/** Bytes that an account uploaded for its builds, told by their sha256. */
export type BlobKind = 'model' | 'node_zip'

export interface BuildBlob {
  readonly id: string
  readonly accountId: string
  readonly kind: BlobKind
  readonly filename: string
  /** In hex; of bytes that were checked when they came. */
  readonly sha256: string
  readonly sizeBytes: number
  readonly createdAt: Date
  /** null: its bytes are not there yet. */
  readonly uploadedAt: Date | null
}
