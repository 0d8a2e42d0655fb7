/** The two kinds of connection, with everything that is set per connection. */
import { DatabaseSync } from 'node:sqlite'
import { StoreOpenError } from '../../../../domain/store.ts'

export type Synchronous = 'FULL' | 'NORMAL'

export interface WriterOptions {
  readonly synchronous: Synchronous
  /** The size, in pages of 4 KiB, beyond which writes are refused as on a full disk; null leaves it to the disk. */
  readonly maxPages: number | null
}

// Only another program (a backup, a shell) can hold the database: our own writer is alone.
const BUSY_TIMEOUT_MS = 5_000
// What one transaction touches many times over; the system keeps the rest of the file in its own cache.
const WRITER_CACHE_KIB = 16_384
// The reader's own cache is dropped whenever somebody wrote, so it reads through the system's page cache instead.
const READER_MAP_BYTES = 268_435_456
// From here on a commit also copies the log into the database, which takes it some tens of milliseconds: 16 MiB.
const CHECKPOINT_PAGES = 4_096
const WAL_LIMIT_BYTES = 67_108_864

export function openWriter(path: string, { synchronous, maxPages }: WriterOptions): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: false })
  const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode']
  if (mode !== 'wal') {
    database.close()
    throw new StoreOpenError(
      'unusable',
      `The file system of ${path} does not support SQLite's write-ahead log (journal mode is ${String(mode)}). Put the data directory on a local disk.`,
    )
  }
  // fullfsync matters on macOS only, where a plain fsync leaves the data in the drive's cache.
  database.exec(`
    PRAGMA synchronous = ${synchronous};
    PRAGMA fullfsync = ON;
    PRAGMA cache_size = -${WRITER_CACHE_KIB};
    PRAGMA temp_store = MEMORY;
    PRAGMA secure_delete = FAST;
    PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
    PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES};
  `)
  if (maxPages !== null) database.exec(`PRAGMA max_page_count = ${maxPages}`)
  return database
}

export function openReader(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS })
  database.exec(`PRAGMA mmap_size = ${READER_MAP_BYTES}; PRAGMA temp_store = MEMORY;`)
  return database
}
