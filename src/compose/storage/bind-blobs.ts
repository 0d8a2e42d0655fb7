/**
 * Ties the stored blobs to their database by an id that both hold. Blobs without a record are removed after a start; with a
 * database that was lost or exchanged by mistake, that would be all of them. So a start over such a pair is refused, before
 * anything is removed. Processes that share a database must share the bytes too: one with a folder of its own would not
 * find what the others stored.
 */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileWhole } from '../../../lib/files/write-file-whole.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { toMistake } from '../../adapters/blobs/s3/s3-error.ts'
import { ConfigError } from '../../config/config-error.ts'
import { isStoreAway } from '../../domain/errors.ts'
import { type MetaStore, type Store, StoreOpenError } from '../../domain/store.ts'

/** Where bytes are kept: a folder or a bucket, which holds an id beside them. */
export interface BlobsPlace {
  /** For messages. */
  readonly shown: string
  /** What to do when the bytes of a database are not here. */
  mending(id: string): string
  /** null: none yet. */
  readId(): Promise<string | null>
  /** Of several that write at the same time, it is enough that one comes through. */
  writeId(id: string): Promise<void>
}

const META_KEY = 'blobs_id'
const FILE_NAME = 'id'
const OWNER_ONLY = 0o600
const LOOK_EVERY_MS = 100
const MAX_LOOKS = 10

type BoundStore = MetaStore & Pick<Store, 'isExclusive'>

export async function bindBlobs(store: BoundStore, place: BlobsPlace): Promise<void> {
  for (let looks = 1; ; looks++) {
    // The place first: it is written after the database, so an id that is found here is known there.
    const found = await ask(place, () => place.readId())
    const known = await store.readMeta(META_KEY)
    if (found !== null && found === known) return
    if (found !== null) {
      throw new StoreOpenError(
        'unusable',
        `The stored bytes in ${place.shown} belong to another database than the one beside them and would be removed as left over. ` +
          'Put their database back, or move them away to start afresh.',
      )
    }
    if (known === null || store.isExclusive) break
    if (looks === MAX_LOOKS) {
      throw new StoreOpenError(
        'unusable',
        `The bytes of this database are not in ${place.shown}. ${place.mending(known)}`,
      )
    }
    // Perhaps another process is at this moment between its two writes.
    await sleep(LOOK_EVERY_MS)
  }
  // The database first: after a crash between the two writes, an id on the blobs alone would refuse every start.
  const id = await store.ensureMeta(META_KEY, randomUUID)
  await ask(place, () => place.writeId(id))
  if (!store.isExclusive && (await ask(place, () => place.readId())) !== id) {
    throw new StoreOpenError('unusable', `The stored bytes in ${place.shown} were taken by another database just now.`)
  }
}

/** Throws ConfigError for what the operator has to change, and StoreOpenError for what may pass. */
export async function ask<Answer>(place: BlobsPlace, question: () => Promise<Answer>): Promise<Answer> {
  try {
    return await question()
  } catch (error) {
    const { message, name } = error as Error
    const mistake = toMistake(error)
    if (mistake !== null) throw new ConfigError(`blobs names ${place.shown}, but ${mistake.fault}; ${mistake.remedy}`)
    if (!isStoreAway(error) && name !== 'S3Error') throw error
    throw new StoreOpenError('unusable', `The stored bytes in ${place.shown} cannot be reached: ${message}`, {
      cause: error,
    })
  }
}

export function toFolderPlace(directory: string): BlobsPlace {
  const path = join(directory, FILE_NAME)
  return {
    shown: directory,
    mending: (id) =>
      `Give every process the folder that holds them (--data-dir); if they are lost for good, write ${id} into the file ${path}.`,
    async readId() {
      try {
        return (await readFile(path, 'utf8')).trim()
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
        throw error
      }
    },
    async writeId(id) {
      const aside = `${path}.${randomUUID()}`
      await writeFileWhole(path, `${id}\n`, { mode: OWNER_ONLY, isDurable: true, aside })
    },
  }
}
