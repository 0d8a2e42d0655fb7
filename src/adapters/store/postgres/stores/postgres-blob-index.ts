/** The index of stored objects on Postgres. */
import type { BlobIndex, StoredObject } from '../../../../domain/assets/blob-index.ts'
import { createGather } from '../database/gather.ts'
import {
  FIND_OBJECT,
  FORGET_GARBAGE,
  HASH_OF_OBJECT,
  KNOWN_OBJECTS,
  keepObjects,
  LIST_HASHES,
  OLD_GARBAGE,
  removeObject,
  replaceObject,
  THROW_AWAY_MANY,
  TOUCH_OBJECT,
} from '../operations/assets/blob-objects.ts'
import type { StoreParts } from './store-parts.ts'

const PORTION = 1000
const KEPT_AT_ONCE = 64

export function createBlobIndex({ durable, relaxed, read, chore }: StoreParts): BlobIndex {
  // Durable: whoever keeps bytes outlives a crash of the server, and records then what leads to them.
  const keep = createGather({
    run: (kept: Parameters<typeof keepObjects>[1]) => keepObjects(durable, kept),
    onBatch: durable.noteBatch,
    maxItems: KEPT_AT_ONCE,
    maxRunning: 2,
    nameOf: ({ hash }) => hash,
  })
  return {
    async find(hash) {
      const row = await read.get(FIND_OBJECT, [hash])
      return row === undefined ? null : toObject(row)
    },
    async keep(hash, object, now) {
      return toObject(await keep({ hash, ...object, now: now.getTime() }))
    },
    async replace(hash, object, { bad, now }) {
      const replacement = { ...object, bad, now: now.getTime() }
      const row = await durable.transaction((tx) => replaceObject(tx, hash, replacement))
      return row === undefined ? object : toObject(row)
    },
    // Relaxed: the row is there, and the announcement of the bytes is what keeps it.
    async touch(hash, now) {
      const row = await relaxed.get(TOUCH_OBJECT, [hash, now.getTime()])
      return row === undefined ? null : toObject(row)
    },
    remove: (hash, { isKnown, now }) =>
      chore.transaction((tx) => removeObject(tx, hash, { isKnown, now: now.getTime() })),
    async *list() {
      for (let after = ''; ; ) {
        const hashes = (await chore.all(LIST_HASHES, [after, PORTION])).map(([hash]) => hash)
        if (hashes.length > 0) yield hashes
        const last = hashes.at(-1)
        if (last === undefined || hashes.length < PORTION) return
        after = last
      }
    },
    async garbage(before, limit) {
      return (await chore.all(OLD_GARBAGE, [before.getTime(), limit])).map(([objectKey]) => objectKey)
    },
    async forgetGarbage(objectKeys) {
      if (objectKeys.length > 0) await chore.run(FORGET_GARBAGE, [objectKeys])
    },
    async hashOf(objectKey) {
      return (await read.get(HASH_OF_OBJECT, [objectKey]))?.[0] ?? null
    },
    async throwAway(objectKeys, now) {
      if (objectKeys.length > 0) await chore.run(THROW_AWAY_MANY, [objectKeys, now.getTime()])
    },
    async knownObjects(objectKeys) {
      if (objectKeys.length === 0) return []
      return (await chore.all(KNOWN_OBJECTS, [objectKeys])).map(([objectKey]) => objectKey)
    },
  }
}

function toObject([objectKey, sizeBytes]: readonly [string, number]): StoredObject {
  return { objectKey, sizeBytes }
}
