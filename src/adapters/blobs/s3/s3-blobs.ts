/**
 * Blobs as objects of a bucket. An object has a name that is used once, `up/<day>/<uuid>` below the prefix; which object holds the
 * bytes of which hash is in the index, a table of the database that all processes share. So nothing is copied and no name is ever
 * reused: a late removal can never hit new bytes, and keeping and removing are ordered by the row of the hash alone.
 */
import { randomUUID } from 'node:crypto'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { Blake3 } from '../../../../lib/files/blake3.ts'
import type { Log } from '../../../../lib/log.ts'
import type { BlobIndex, StoredObject } from '../../../domain/assets/blob-index.ts'
import type { Blobs, PendingBlob } from '../../../domain/assets/blob-store.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { FileOps } from '../fs/file-ops.ts'
import type { Bucket } from './bucket.ts'
import { createDirectUploads, createJoinUpload } from './direct-uploads.ts'
import type { LocalFiles } from './local-files.ts'
import { createPartialObjects } from './partial-objects.ts'
import { createParts } from './parts.ts'
import { createHedge, type Hedge, readObject } from './read-object.ts'
import { type Received, receiveObject } from './receive-object.ts'
import { isNotFound, toStorageError } from './s3-error.ts'

interface S3BlobsOptions {
  readonly bucket: Bucket
  /** '' or ending with a slash. */
  readonly prefix: string
  readonly index: BlobIndex
  readonly files: LocalFiles
  readonly blake3: Blake3
  readonly clock: Clock
  readonly log: Log
  readonly disk: FileOps
  readonly hedge?: Hedge
  readonly partMemoryBytes?: number
  /** Called for every chunk of larger pieces that is stored or read, so that its buffer may be freed soon. */
  readonly onTransferred?: (bytes: number) => void
}

// For parts of all uploads together. Two under way and one being filled take half of it.
const PART_MEMORY_BYTES = 48 * 1024 * 1024
const MAX_KNOWN_OBJECTS = 10_000
const MAX_SUSPECTS = 1_000
// An object that was there so lately need not be looked for before other bytes are spared because of it.
const SEEN_FOR_MS = 600_000
// A redirect is followed at once; a large download may go on after the end.
const DIRECT_SECONDS = 300
/** The folder of all objects that hold bytes, by day. */
export const OBJECTS = 'up/'

export function createS3Blobs(options: S3BlobsOptions): Blobs {
  const { bucket, prefix, index, files, disk, blake3, clock, onTransferred = () => {} } = options
  const { hedge = createHedge(), partMemoryBytes = PART_MEMORY_BYTES } = options
  const parts = createParts({ directory: files.temporaryDirectory, memoryBytes: partMemoryBytes, files: disk })
  const newKey = () => `${prefix}${OBJECTS}${clock.now().toISOString().slice(0, 10)}/${randomUUID()}`
  const deps = { bucket, parts, blake3, newKey, onTransferred }
  const objects = createKnownObjects(options)
  const { known, see, find, suspect } = objects
  const toPending = createToPending(options, newKey, objects)

  async function readAt(hash: string, object: StoredObject, range?: { readonly start: number; readonly end: number }) {
    const stream = await readObject(
      { key: object.objectKey, sizeBytes: object.sizeBytes, hash, range },
      { bucket, blake3, hedge, onTransferred, onDamage: () => suspect(hash, object, 'damaged in the bucket') },
    )
    see(object.objectKey)
    return stream
  }

  async function open(hash: string, range?: { readonly start: number; readonly end: number }) {
    const here = await files.openHere(hash, range)
    if (here !== null) return here
    const remembered = known.get(hash)
    const object = remembered ?? (await find(hash))
    try {
      return await readAt(hash, object, range)
    } catch (error) {
      if (!isNotFound(error)) throw error
      // What we remembered may have been removed, and the same bytes stored anew.
      const newest = await find(hash)
      if (remembered !== undefined && newest.objectKey !== object.objectKey) return readAt(hash, newest, range)
      suspect(hash, newest, 'missing in the bucket')
      throw gone(error)
    }
  }

  const join = createJoinUpload({
    ...{ bucket, index, blake3, hedge, clock, onTransferred },
    toPending: (object) => toPending({ kind: 'object', ...object }),
  })

  return {
    async receive(source, putOptions) {
      return toPending(await receiveObject(source, putOptions, deps))
    },
    async stat(hash) {
      const object = await index.find(hash)
      if (object === null) return null
      known.set(hash, object)
      return { sizeBytes: object.sizeBytes }
    },
    open,
    localPath: () => null,
    async borrow(hash) {
      const { sizeBytes } = known.get(hash) ?? (await find(hash))
      try {
        return await files.borrow(hash, { sizeBytes, read: () => open(hash) })
      } catch (error) {
        throw toStorageError(error)
      }
    },
    async signDirect(hash, { method, contentType, disposition }) {
      const { objectKey } = known.get(hash) ?? (await find(hash))
      const query = { 'response-content-type': contentType, 'response-content-disposition': disposition }
      try {
        return await bucket.presign(method, objectKey, { query, lifetimeSeconds: DIRECT_SECONDS })
      } catch (error) {
        throw toStorageError(error)
      }
    },
    directUploads: createDirectUploads({ bucket, newKey, join }),
    partials: createPartialObjects({ ...deps, join }),
    async remove(hash, isKnown) {
      known.delete(hash)
      await index.remove(hash, { isKnown, now: clock.now() })
    },
    list: () => index.list(),
  }
}

function createToPending(
  { bucket, index, clock, log }: S3BlobsOptions,
  newKey: () => string,
  { known, suspects, see, suspect, isThere }: ReturnType<typeof createKnownObjects>,
) {
  /** Best effort: nothing refers to the object, and the sweep finds what stays. */
  async function dropObject(key: string): Promise<void> {
    await bucket.remove(key).catch((error: unknown) => log.debug({ err: error, key }, 'an object stays to be swept'))
  }

  async function sendWhole(received: Received & { kind: 'part' }): Promise<string> {
    const key = newKey()
    await bucket.put(key, received.part)
    return key
  }

  return function toPending(received: Received): PendingBlob {
    const { hash, sizeBytes } = received
    async function isWanted(): Promise<boolean> {
      if (suspects.get(hash) !== undefined) return true
      const object = await index.find(hash)
      if (object === null) return true
      if (await isThere(object)) return false
      suspect(hash, object, 'missing in the bucket')
      return true
    }
    // New bytes are sent while the caller is still busy announcing them. A failure here shows again in `keep`.
    const sent: Promise<string | null> =
      received.kind === 'object'
        ? Promise.resolve(received.key)
        : isWanted().then((wanted) => (wanted ? sendWhole(received) : null))
    sent.catch(() => {})

    /** Null when the bytes were there and still are. */
    async function ensureObject(): Promise<string | null> {
      const key = await sent
      if (key !== null || received.kind === 'object') return key
      if ((await index.touch(hash, clock.now())) !== null) return null
      return sendWhole(received)
    }

    async function record(objectKey: string): Promise<void> {
      const own = { objectKey, sizeBytes }
      const bad = suspects.get(hash)
      const now = clock.now()
      see(objectKey)
      const kept = bad === undefined ? await index.keep(hash, own, now) : await index.replace(hash, own, { bad, now })
      // Ours may only go when the other one is there.
      const stored = (await isThere(kept)) ? kept : await index.replace(hash, own, { bad: kept.objectKey, now })
      suspects.delete(hash)
      known.set(hash, stored)
      if (stored.objectKey !== objectKey) await dropObject(objectKey)
    }

    const free = () => (received.kind === 'part' ? received.part.free() : Promise.resolve())
    return {
      hash,
      sizeBytes,
      async keep() {
        try {
          const key = await ensureObject()
          // When the answer of the database is lost, the object stays: the row may be there.
          if (key !== null) await record(key)
        } catch (error) {
          throw toStorageError(error)
        } finally {
          await free()
        }
      },
      async discard() {
        const key = await sent.catch(() => null)
        await free()
        if (key !== null) await dropObject(key)
      },
    }
  }
}

/** What this process knows of the objects in the bucket. */
function createKnownObjects({ bucket, index, clock, log }: S3BlobsOptions) {
  const known = new BoundedMap<string, StoredObject>(MAX_KNOWN_OBJECTS)
  // Objects that this process found damaged or gone: whoever sends it the same bytes again replaces them. Other processes find out
  // for themselves what is gone, because they look before they rely on it.
  const suspects = new BoundedMap<string, string>(MAX_SUSPECTS)
  const seen = new BoundedMap<string, number>(MAX_KNOWN_OBJECTS)
  const see = (objectKey: string) => seen.set(objectKey, clock.now().getTime())

  async function find(hash: string): Promise<StoredObject> {
    const object = await index.find(hash)
    if (object === null) throw gone()
    known.set(hash, object)
    return object
  }

  function suspect(hash: string, { objectKey }: StoredObject, what: string): void {
    suspects.set(hash, objectKey)
    log.error({ hash, objectKey }, `stored bytes are ${what}; sending them again mends this`)
  }

  /** Whether the storage still has the object, as far as it can be asked. */
  async function isThere({ objectKey, sizeBytes }: StoredObject): Promise<boolean> {
    const seenAt = seen.get(objectKey) ?? Number.NEGATIVE_INFINITY
    if (clock.now().getTime() - seenAt < SEEN_FOR_MS || !bucket.isAnswering()) return true
    const found = await bucket.sizeOf(objectKey).catch(() => sizeBytes)
    if (found === sizeBytes) see(objectKey)
    return found === sizeBytes
  }

  return { known, suspects, see, find, suspect, isThere }
}

function gone(cause?: unknown): ServiceError {
  return new ServiceError('output_unavailable', 'the stored bytes are gone; trying again cannot bring them back', {
    cause,
  })
}
