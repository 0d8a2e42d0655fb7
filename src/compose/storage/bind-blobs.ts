/**
 * Ties the stored blobs to their database by an id that both hold. Blobs without a record are removed after a start; with a
 * database that was lost or exchanged by mistake, that would be all of them. So a start over such a pair is refused, before
 * anything is removed.
 */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileWhole } from '../../../lib/files/write-file-whole.ts'
import { type MetaStore, StoreOpenError } from '../../domain/store.ts'

const META_KEY = 'blobs_id'
const FILE_NAME = 'id'
const OWNER_ONLY = 0o600

export async function bindBlobs(store: MetaStore, directory: string): Promise<void> {
  const path = join(directory, FILE_NAME)
  const [known, found] = await Promise.all([store.readMeta(META_KEY), readId(path)])
  if (found !== null && found !== known) {
    throw new StoreOpenError(
      'unusable',
      `The stored bytes in ${directory} belong to another database than the one beside them and would be removed as left over. ` +
        'Put their database back, or move that folder away to start afresh.',
    )
  }
  if (found !== null) return
  // The database first: after a crash between the two writes, an id on the blobs alone would refuse every start.
  const id = await store.ensureMeta(META_KEY, randomUUID)
  await writeFileWhole(path, `${id}\n`, { mode: OWNER_ONLY, isDurable: true })
}

async function readId(path: string): Promise<string | null> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}
