/**
 * Forward-only migrations, one folder of numbered files per kind of database, with the same numbers and names. Each file runs
 * once and is remembered with the hash of its text: a file that changed after it was applied stops the start.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { StoreOpenError } from '../../domain/store.ts'

export interface Migration {
  readonly number: number
  /** The file's name without its ending, such as `0001-first-tables`. */
  readonly name: string
  readonly sql: string
  readonly checksum: string
  /**
   * `expand` adds what older programs do not mind. `contract` takes away what they need, and waits until none of them runs.
   * The files of a database that one process uses need not say it.
   */
  readonly phase: 'expand' | 'contract'
  /** False for the one statement of a file that cannot run inside a transaction. */
  readonly isTransactional: boolean
}

export interface AppliedMigration {
  readonly number: number
  readonly name: string
  readonly checksum: string
}

const FILE_NAME = /^(\d{4})-[a-z0-9-]+\.sql$/

export function loadMigrations(directory: string): Migration[] {
  const names = readdirSync(directory).filter((name) => FILE_NAME.test(name))
  return names.sort().map((fileName, index) => {
    const number = Number(fileName.slice(0, 4))
    if (number !== index + 1) throw new Error(`Migration ${fileName} does not follow number ${index}.`)
    const sql = readFileSync(`${directory}/${fileName}`, 'utf8')
    const checksum = createHash('sha256').update(sql).digest('hex')
    return { number, name: fileName.slice(0, -4), sql, checksum, ...readHeader(sql) }
  })
}

/** The comment lines at the beginning: `-- phase: expand|contract`, `-- no transaction`. */
function readHeader(sql: string): Pick<Migration, 'phase' | 'isTransactional'> {
  const header = /^(?:--.*\n)*/.exec(sql)?.[0] ?? ''
  return {
    phase: /^-- phase: contract$/m.test(header) ? 'contract' : 'expand',
    isTransactional: !/^-- no transaction$/m.test(header),
  }
}

/** Throws when a file is not as it was when it was applied. */
export function mustBeUnchanged({ name, checksum }: Migration, applied: AppliedMigration): void {
  if (checksum === applied.checksum) return
  throw new StoreOpenError(
    'changed_migration',
    `Migration ${name} differs from the one that was applied to this database (${applied.name}). Restore the file as it was released; put changes into a new migration.`,
  )
}
