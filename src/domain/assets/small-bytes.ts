/**
 * Bytes that a database keeps beside its records, because there are only few of them. They are written before the record that refers
 * to them and become durable with it at the latest: whoever finds the record finds the bytes.
 */
export interface SmallBytes {
  /** Harmless when the same bytes are already there. */
  put(hash: string, bytes: Uint8Array): Promise<void>
  /** null when they are not there. */
  find(hash: string): Promise<Uint8Array | null>
  /** null when they are not there. */
  sizeOf(hash: string): Promise<number | null>
  /** Harmless when there is nothing. */
  remove(hash: string): Promise<void>
  /** Every hash, in portions. */
  list(): AsyncIterable<readonly string[]>
}
