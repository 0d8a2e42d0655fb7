/**
 * Blobs of which the smallest outputs are kept in the database instead of in files. Their bytes and the record that refers to them
 * then share a sync, where a file needs three of its own. Where a file holds the same bytes, either of the two is read.
 */
import { existsSync } from 'node:fs'
import { Readable } from 'node:stream'
import type { Blake3 } from '../../../lib/files/blake3.ts'
import type { Log } from '../../../lib/log.ts'
import { createKeyedLock, type KeyedLock } from '../../../lib/waiting/keyed-lock.ts'
import type { Blobs, ByteRange, PendingBlob, PutOptions } from '../../domain/assets/blob-store.ts'
import type { SmallBytes } from '../../domain/assets/small-bytes.ts'
import { createInterruptible, type Interruptible } from './interruptible.ts'

// Four pages of the database. Writing as many costs a tenth of what a file costs, and a backup of the database stays small.
export const SMALL_OUTPUT_BYTES = 16_384

interface SmallOutputsDeps {
  readonly small: SmallBytes
  readonly blake3: Blake3
  readonly log: Log
}

export function keepSmallOutputs(files: Blobs, { small, blake3, log }: SmallOutputsDeps): Blobs {
  const locks = createKeyedLock()

  // A look at one name, which the system has in memory, takes microseconds; the thread pool would take far longer.
  function isFile(hash: string): boolean {
    const path = files.localPath(hash)
    return path !== null && existsSync(path)
  }

  async function findChecked(hash: string): Promise<Uint8Array | null> {
    const bytes = await small.find(hash)
    if (bytes === null || blake3.hash(bytes) === hash) return bytes
    log.error({ hash }, 'stored bytes were damaged in the database and are removed; sending them again mends this')
    await small.remove(hash)
    return null
  }

  return {
    ...files,
    async receive(source, options) {
      if (options.isOutput !== true) return files.receive(source, options)
      const gathered = await gather(source, options)
      if (gathered.rest !== null) return files.receive(joined(gathered.chunks, gathered.rest), options)
      const bytes = gathered.chunks.length === 1 ? gathered.chunks[0] : Buffer.concat(gathered.chunks)
      return toPending(bytes, { hash: blake3.hash(bytes), small, locks })
    },
    async stat(hash) {
      await locks.settled(hash)
      const bytes = isFile(hash) ? null : await small.find(hash)
      return bytes === null ? files.stat(hash) : { sizeBytes: bytes.length }
    },
    async open(hash, range) {
      await locks.settled(hash)
      const bytes = isFile(hash) ? null : await findChecked(hash)
      // A file that is set aside at this moment looks as if there were none.
      return bytes === null ? files.open(hash, range) : toReadable(bytes, range)
    },
    localPath: (hash) => (isFile(hash) ? files.localPath(hash) : null),
    remove: (hash, isKnown) =>
      locks.run(hash, async () => {
        await files.remove(hash, isKnown)
        if (!(await isKnown())) await small.remove(hash)
      }),
    async *list() {
      yield* files.list()
      yield* small.list()
    },
  }
}

interface Gathered {
  readonly chunks: readonly Uint8Array[]
  /** What is still to come of bytes that turn out to be too many; null: these were all. */
  readonly rest: Interruptible<Uint8Array> | null
}

async function gather(source: AsyncIterable<Uint8Array>, { maxBytes, signal }: PutOptions): Promise<Gathered> {
  signal?.throwIfAborted()
  const steps = createInterruptible(source)
  const onAbort = () => steps.interrupt(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  const limit = Math.min(SMALL_OUTPUT_BYTES, maxBytes)
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  try {
    while (sizeBytes <= limit) {
      const step = await steps.next()
      if (step.done) return { chunks, rest: null }
      sizeBytes += step.value.length
      // The source may use its buffer again as soon as it is asked for more; the last chunk is handed on before that.
      chunks.push(sizeBytes <= limit ? Buffer.from(step.value) : step.value)
    }
    return { chunks, rest: steps }
  } catch (error) {
    steps.stop()
    throw error
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

async function* joined(
  head: readonly Uint8Array[],
  rest: Interruptible<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* head
    for (let step = await rest.next(); !step.done; step = await rest.next()) yield step.value
  } finally {
    rest.stop()
  }
}

interface PendingDeps {
  readonly hash: string
  readonly small: SmallBytes
  readonly locks: KeyedLock
}

function toPending(bytes: Uint8Array, { hash, small, locks }: PendingDeps): PendingBlob {
  return {
    hash,
    sizeBytes: bytes.length,
    keep: () => locks.run(hash, () => small.put(hash, bytes)),
    async discard() {},
  }
}

function toReadable(bytes: Uint8Array, range?: ByteRange): Readable {
  const wanted = range === undefined ? bytes : bytes.subarray(range.start, range.end + 1)
  return Readable.from([Buffer.from(wanted.buffer, wanted.byteOffset, wanted.byteLength)], { objectMode: false })
}
