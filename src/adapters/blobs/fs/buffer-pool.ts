/** Buffers of one size that are used again. At most `keep` idle ones are remembered; the rest is left to the collector. */
export interface BufferPool {
  take(): Buffer
  giveBack(buffer: Buffer): void
}

interface BufferPoolOptions {
  readonly sizeBytes: number
  readonly keep: number
  /** Once this many are out, further takers get small buffers, however many they are: a crowd is served with less each. */
  readonly crowd?: { readonly from: number; readonly sizeBytes: number }
}

export function createBufferPool({ sizeBytes, keep, crowd }: BufferPoolOptions): BufferPool {
  const idle: Buffer[] = []
  let lent = 0
  return {
    take() {
      if (crowd !== undefined && lent >= crowd.from) return Buffer.allocUnsafeSlow(crowd.sizeBytes)
      lent++
      return idle.pop() ?? Buffer.allocUnsafeSlow(sizeBytes)
    },
    giveBack(buffer) {
      if (buffer.length !== sizeBytes) return
      lent--
      if (idle.length < keep) idle.push(buffer)
    },
  }
}
