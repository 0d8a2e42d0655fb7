/**
 * Blobs of which the smallest outputs are kept in the database instead of in files. Their bytes and the record that refers to them
 * then share a sync, where a file needs three of its own. Where there is a file with the same bytes, it is read, and compared and
 * replaced by whoever stores them again, as if there were no database.
 */
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Blake3 } from '../../../lib/files/blake3.ts'
import { inOneChunk } from '../../../lib/files/in-one-chunk.ts'
import type { Log } from '../../../lib/log.ts'
import { createKeyedLock } from '../../../lib/waiting/keyed-lock.ts'
import type { Blobs, ByteRange, PutOptions } from '../../domain/assets/blob-store.ts'
import type { SmallBytes } from '../../domain/assets/small-bytes.ts'
import { ServiceError } from '../../domain/errors.ts'
import { toStorageError } from './fs/file-ops.ts'
import { createInterruptible, type Interruptible } from './interruptible.ts'

// Four pages of the database: a larger limit would make it, its log and its backups grow with pictures.
export const SMALL_OUTPUT_BYTES = 16_384

interface SmallOutputsDeps {
  readonly small: SmallBytes
  /** Where engines get small outputs as files. A start removes what a crash leaves there. */
  readonly temporaryDirectory: string
  readonly blake3: Blake3
  readonly log: Log
}

export function keepSmallOutputs(files: Blobs, deps: SmallOutputsDeps): Blobs {
  const { small, temporaryDirectory, blake3, log } = deps
  const locks = createKeyedLock()
  const puts = new Map<string, Promise<void>>()

  // A look at one name takes microseconds; the thread pool would take far longer.
  function isFile(hash: string): boolean {
    const path = files.localPath(hash)
    return path !== null && existsSync(path)
  }

  /** null when they are not there, or damaged. */
  async function find(hash: string): Promise<Uint8Array | null> {
    const bytes = await small.find(hash)
    if (bytes === null || blake3.hash(bytes) === hash) return bytes
    return locks.run(hash, async () => {
      // Somebody may have stored them anew meanwhile.
      const now = await small.find(hash)
      if (now === null || blake3.hash(now) === hash) return now
      log.error({ hash }, 'stored bytes were damaged in the database and are removed; sending them again mends this')
      await small.remove(hash)
      return null
    })
  }

  async function put(hash: string, bytes: Uint8Array): Promise<void> {
    if (!isFile(hash)) return small.put(hash, bytes)
    const pending = await files.receive(inOneChunk(bytes), { maxBytes: bytes.length })
    await pending.keep()
  }

  /** Jobs that make the same bytes at the same time write them once. */
  function keep(hash: string, bytes: Uint8Array): Promise<void> {
    const underWay = puts.get(hash)
    if (underWay !== undefined) return underWay
    const started = locks.run(hash, () => put(hash, bytes))
    puts.set(hash, started)
    const forget = () => puts.delete(hash)
    started.then(forget, forget)
    return started
  }

  async function receiveOutput(source: AsyncIterable<Uint8Array>, options: PutOptions) {
    const { chunks, rest } = await gather(source, options)
    if (rest !== null) {
      try {
        return await files.receive(joined(chunks, rest), options)
      } catch (error) {
        rest.stop()
        throw error
      }
    }
    const bytes = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)
    const hash = blake3.hash(bytes)
    return { hash, sizeBytes: bytes.length, keep: () => keep(hash, bytes), async discard() {} }
  }

  return {
    ...files,
    receive: (source, options) =>
      options.isOutput === true ? receiveOutput(source, options) : files.receive(source, options),
    async stat(hash) {
      await locks.settled(hash)
      const sizeBytes = isFile(hash) ? null : await small.sizeOf(hash)
      return sizeBytes === null ? files.stat(hash) : { sizeBytes }
    },
    async open(hash, range) {
      await locks.settled(hash)
      const wasFile = isFile(hash)
      const bytes = wasFile ? null : await find(hash)
      if (bytes !== null) return toReadable(bytes, range)
      try {
        // A file that is set aside at this moment looks as if there were none.
        return await files.open(hash, range)
      } catch (error) {
        const isGone = error instanceof ServiceError && error.refusal === 'output_unavailable'
        const second = wasFile && isGone ? await find(hash) : null
        if (second === null) throw error
        return toReadable(second, range)
      }
    },
    localPath: (hash) => (isFile(hash) ? files.localPath(hash) : null),
    async borrow(hash) {
      const there = isFile(hash) ? files.localPath(hash) : null
      if (there !== null) return { path: there, async [Symbol.asyncDispose]() {} }
      const bytes = await find(hash)
      if (bytes === null) throw new ServiceError('output_unavailable', 'the stored bytes are gone')
      const path = join(temporaryDirectory, randomUUID())
      await writeFile(path, bytes, { flag: 'wx', mode: 0o600 }).catch((error: unknown) => {
        throw toStorageError(error)
      })
      return { path, [Symbol.asyncDispose]: () => unlink(path) }
    },
    remove: (hash, isKnown) =>
      locks.run(hash, async () => {
        await files.remove(hash, isKnown)
        if (!(await isKnown())) await small.remove(hash)
      }),
    async *list() {
      yield* files.list()
      // What lies in a file too was named before.
      for await (const hashes of small.list()) yield hashes.filter((hash) => !isFile(hash))
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

async function* joined(head: readonly Uint8Array[], rest: Interruptible<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* head
    for (let step = await rest.next(); !step.done; step = await rest.next()) yield step.value
  } finally {
    rest.stop()
  }
}

function toReadable(bytes: Uint8Array, range?: ByteRange): Readable {
  const wanted = range === undefined ? bytes : bytes.subarray(range.start, range.end + 1)
  return Readable.from([Buffer.from(wanted.buffer, wanted.byteOffset, wanted.byteLength)], { objectMode: false })
}
