/**
 * Ties the stored blobs to their database by an id that both hold. Blobs without a record are removed after a start; with a
 * database that was lost or exchanged by mistake, that would be all of them. So a start over such a pair is refused, before
 * anything is removed. Processes that share a database must share the folder too: one with a folder of its own would not
 * find what the others stored.
 */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileWhole } from '../../../lib/files/write-file-whole.ts'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { type MetaStore, type Store, StoreOpenError } from '../../domain/store.ts'

const META_KEY = 'blobs_id'
const FILE_NAME = 'id'
const OWNER_ONLY = 0o600
const LOOK_EVERY_MS = 100
const MAX_LOOKS = 10

type BoundStore = MetaStore & Pick<Store, 'isExclusive'>

export async function bindBlobs(store: BoundStore, directory: string): Promise<void> {
  const path = join(directory, FILE_NAME)
  for (let looks = 1; ; looks++) {
    // The file first: it is written after the database, so an id that is found here is known there.
    const found = await readId(path)
    const known = await store.readMeta(META_KEY)
    if (found !== null && found === known) return
    if (found !== null) {
      throw new StoreOpenError(
        'unusable',
        `The stored bytes in ${directory} belong to another database than the one beside them and would be removed as left over. ` +
          'Put their database back, or move that folder away to start afresh.',
      )
    }
    if (known === null || store.isExclusive) break
    if (looks === MAX_LOOKS) {
      throw new StoreOpenError(
        'unusable',
        `The bytes of this database are not in ${directory}. Give every process the folder that holds them (--data-dir); ` +
          `if they are lost for good, write ${known} into the file ${path}.`,
      )
    }
    // Perhaps another process is at this moment between its two writes.
    await sleep(LOOK_EVERY_MS)
  }
  // The database first: after a crash between the two writes, an id on the blobs alone would refuse every start.
  const id = await store.ensureMeta(META_KEY, randomUUID)
  const aside = `${path}.${randomUUID()}`
  await writeFileWhole(path, `${id}\n`, { mode: OWNER_ONLY, isDurable: true, aside })
}

async function readId(path: string): Promise<string | null> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}
