/** Which bytes the records refer to: for `verify`, which compares them with what is stored. */
import { all, type Steps } from '../statements/operation.ts'
import { query, selectFrom } from '../statements/statement.ts'
import { asset, output } from '../tables/assets.ts'
import { buildBlob } from '../tables/builds.ts'
import { pick, type RowOf } from '../tables/table.ts'

const referred = pick(asset, 'hash', 'sizeBytes')

const REFERRED = query('verify.referred', referred, ({ dialect }) =>
  [asset, output, buildBlob]
    .filter(({ only = dialect }) => only === dialect)
    .map((table) => selectFrom(table, 'WHERE hash IS NOT NULL', referred))
    .join(' UNION '),
)

export interface VerifiedDatabase {
  /** What is wrong with the database itself, in its own words; empty when it is sound. */
  readonly problems: readonly string[]
  /** Bytes that some asset, output or blob of a build refers to. */
  readonly blobs: ReadonlyMap<string, RowOf<typeof referred>>
}

export function* findReferredBytes(): Steps<VerifiedDatabase['blobs']> {
  return new Map((yield* all(REFERRED)).map((each) => [each.hash, each]))
}
