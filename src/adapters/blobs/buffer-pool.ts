/** Buffers of one size that are used again. At most `keep` idle ones are remembered; the rest is left to the collector. */
export interface BufferPool {
  take(): Buffer
  giveBack(buffer: Buffer): void
}

export function createBufferPool(sizeBytes: number, keep: number): BufferPool {
  const idle: Buffer[] = []
  return {
    take: () => idle.pop() ?? Buffer.allocUnsafeSlow(sizeBytes),
    giveBack(buffer) {
      if (idle.length < keep) idle.push(buffer)
    },
  }
}
