/** Bytes of small outputs on SQLite, as the main thread sees them. */
import type { SmallBytes } from '../../../../domain/assets/small-bytes.ts'
import type { StoreChannels } from './store-channels.ts'

const PAGE = 500

export function createSmallBytes({ write, read }: StoreChannels): SmallBytes {
  return {
    put(hash, bytes) {
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
      return write.call('putBytes', { hash, text }, text.length)
    },
    find: (hash) => read.call('findBytes', hash),
    sizeOf: (hash) => read.call('sizeOfBytes', hash),
    remove: (hash) => write.call('removeBytes', hash),
    async *list() {
      let after = ''
      for (;;) {
        const hashes = await read.call('listBytes', { after, limit: PAGE })
        if (hashes.length > 0) yield hashes
        if (hashes.length < PAGE) return
        after = hashes[hashes.length - 1]
      }
    },
  }
}
