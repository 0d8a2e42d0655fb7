/** Reads which bytes the records refer to, to check them from outside, also while services run. */
import type { PostgresPlace } from '../../../../../lib/postgres/driver.ts'
import { toOpenError } from './open-error.ts'
import { openSession } from './session.ts'
import { statement } from './statement.ts'

interface VerifiedDatabase {
  /** Empty when every record could be read. */
  readonly problems: readonly string[]
  /** Bytes that some asset or output refers to. */
  readonly blobs: ReadonlyMap<string, { readonly hash: string; readonly sizeBytes: number }>
}

const REFERRED = statement<[string, number]>(
  'verify.referred',
  'SELECT hash, size_bytes FROM asset UNION SELECT hash, size_bytes FROM output',
)

/** Throws StoreOpenError when the database cannot be used at all. */
export async function verifyDatabase(options: PostgresPlace): Promise<VerifiedDatabase> {
  await using session = await openSession(options).catch((error: unknown) => {
    throw toOpenError(error, options.url)
  })
  const rows = await session.all(REFERRED)
  return { problems: [], blobs: new Map(rows.map(([hash, sizeBytes]) => [hash, { hash, sizeBytes }])) }
}
