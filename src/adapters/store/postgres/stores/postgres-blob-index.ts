/** The index of stored objects on Postgres. */
import type { BlobIndex, StoredObject } from '../../../../domain/assets/blob-index.ts'
import {
  FIND_OBJECT,
  FORGET_GARBAGE,
  HASH_OF_OBJECT,
  KEEP_OBJECT,
  KNOWN_OBJECTS,
  LIST_HASHES,
  OLD_GARBAGE,
  removeObject,
  replaceObject,
  THROW_AWAY_MANY,
  TOUCH_OBJECT,
} from '../operations/assets/blob-objects.ts'
import type { StoreParts } from './store-parts.ts'

const PORTION = 1000

export function createBlobIndex({ relaxed, read, chore }: Pick<StoreParts, 'relaxed' | 'read' | 'chore'>): BlobIndex {
  return {
    async find(hash) {
      const row = await read.get(FIND_OBJECT, [hash])
      return row === undefined ? null : toObject(row)
    },
    // Relaxed: the record that points at the bytes is written later and durably, and carries this row along.
    async keep(hash, { objectKey, sizeBytes }, now) {
      const row = await relaxed.get(KEEP_OBJECT, [hash, objectKey, sizeBytes, now.getTime()])
      return row === undefined ? { objectKey, sizeBytes } : toObject(row)
    },
    async replace(hash, object, { bad, now }) {
      const replacement = { ...object, bad, now: now.getTime() }
      const row = await relaxed.transaction((tx) => replaceObject(tx, hash, replacement))
      return row === undefined ? object : toObject(row)
    },
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
