/**
 * Moves every record from one store to another, and then compares the two row by row. The place that was reached is written with
 * each batch, in one transaction: a move that is killed goes on from there, and no row is written twice. Nothing else may use
 * either store meanwhile.
 */
import { createHash } from 'node:crypto'
import { keyOf, type OwnMeta, type RecordKind, type RecordRow, type RecordValue } from './record-kinds.ts'

export interface RecordReader {
  /** The same in every store, in the order in which they are written: whatever a row refers to comes before it. */
  readonly kinds: readonly RecordKind[]
  /** A single value of the service; those of the store itself do not move with the others. */
  readOwn(key: OwnMeta | 'blobs_id'): Promise<string | null>
  /** At most `limit` rows behind this key, in the order of their keys; null: from the first one on. */
  read(kind: RecordKind, after: RecordRow | null, limit: number): Promise<readonly RecordRow[]>
}

export interface RecordSource extends RecordReader {
  /** Tells this store's records from any other's, in each attempt the same. */
  moveId(): Promise<string>
  /** Jobs that a process held wait again, with the attempt given back; whatever was being canceled is. Twice is harmless. */
  settle(now: Date): Promise<void>
  /** From now on no service starts on it. */
  retire(movedTo: string): Promise<void>
}

export interface MoveProgress {
  readonly moveId: string
  /** The last kind and key that were written; null: none yet. */
  readonly kind: string | null
  readonly key: readonly (string | number | null)[] | null
}

export interface RecordTarget extends RecordReader {
  /** `used`: it holds records of its own. A half-moved one tells how far the move came. */
  state(): Promise<
    { readonly state: 'empty' | 'used' } | { readonly state: 'half_moved'; readonly progress: MoveProgress }
  >
  writeOwn(key: OwnMeta, value: string): Promise<void>
  /** Both in one transaction. */
  write(kind: RecordKind, rows: readonly RecordRow[], progress: MoveProgress): Promise<void>
  /** Makes whatever follows from the rows; then the rows are compared. */
  derive(): Promise<void>
  /** It is complete, and a service may use it. */
  open(): Promise<void>
}

export interface MovedKind {
  readonly name: string
  readonly rows: number
  /** SHA-256 over all rows in the order of their keys, the same on both sides. */
  readonly digest: string
}

interface MoveOptions {
  readonly now: Date
  /** What the source says about itself from now on. */
  readonly movedTo: string
  /** Called when all records are there and the same, before anything says so. */
  beforeOpen?(): Promise<void>
  onBatch?(kind: string, rows: number): void
}

export class MoveError extends Error {
  override readonly name = 'MoveError'
}

/** Rows with a whole workflow each, which may be long. */
const BATCH_ROWS = 200

export async function moveRecords(
  source: RecordSource,
  target: RecordTarget,
  { now, movedTo, beforeOpen, onBatch = () => {} }: MoveOptions,
): Promise<readonly MovedKind[]> {
  const moveId = await source.moveId()
  const found = await target.state()
  if (found.state === 'used') throw new MoveError('the target holds records already; give an empty one')
  if (found.state === 'half_moved' && found.progress.moveId !== moveId) {
    throw new MoveError('the target holds a part of another move; give an empty one')
  }
  await source.settle(now)
  const progress = found.state === 'half_moved' ? found.progress : { moveId, kind: null, key: null }
  await copy(source, target, progress, onBatch)
  await target.derive()
  const moved: MovedKind[] = []
  for (const kind of source.kinds) moved.push(await compare(kind, source, target))
  await beforeOpen?.()
  await source.retire(movedTo)
  await target.open()
  return moved
}

async function copy(
  source: RecordSource,
  target: RecordTarget,
  { moveId, kind: reached, key }: MoveProgress,
  onBatch: (kind: string, rows: number) => void,
): Promise<void> {
  const from = source.kinds.findIndex(({ name }) => name === reached)
  for (const [index, kind] of source.kinds.entries()) {
    if (index < from || kind.isDerived === true) continue
    let after: RecordRow | null = index === from ? key : null
    for (;;) {
      const rows = await source.read(kind, after, BATCH_ROWS)
      const last = rows.at(-1)
      if (last === undefined) break
      after = keyOf(kind, last)
      await target.write(kind, rows, { moveId, kind: kind.name, key: after as MoveProgress['key'] })
      onBatch(kind.name, rows.length)
    }
  }
}

/** Throws at the first row that is not the same on both sides, with its key. */
async function compare(kind: RecordKind, source: RecordReader, target: RecordReader): Promise<MovedKind> {
  const hash = createHash('sha256')
  let rows = 0
  let after: RecordRow | null = null
  for (;;) {
    const [expected, found]: [readonly RecordRow[], readonly RecordRow[]] = await Promise.all([
      source.read(kind, after, BATCH_ROWS),
      target.read(kind, after, BATCH_ROWS),
    ])
    for (const [index, row] of expected.entries()) {
      const text = toText(row)
      const other = found[index]
      if (other === undefined || toText(other) !== text) throw differs(kind, row, other)
      hash.update(`${text}\n`)
    }
    if (found.length > expected.length) throw differs(kind, undefined, found[expected.length])
    rows += expected.length
    const last = expected.at(-1)
    if (last === undefined || expected.length < BATCH_ROWS) return { name: kind.name, rows, digest: hash.digest('hex') }
    after = keyOf(kind, last)
  }
}

function differs(kind: RecordKind, expected: RecordRow | undefined, found: RecordRow | undefined): MoveError {
  const key = keyOf(kind, expected ?? found ?? [])
    .map(String)
    .join(', ')
  if (expected === undefined || found === undefined) {
    return new MoveError(`${kind.name} ${key} is on one side only`)
  }
  const column = kind.columns.find((_, index) => toText([expected[index]]) !== toText([found[index]]))
  return new MoveError(`${kind.name} ${key} is not the same on both sides: its ${column ?? 'key'} differs`)
}

function toText(row: RecordRow): string {
  return JSON.stringify(row.map(spell))
}

/** Bytes and texts never look the same. */
function spell(value: RecordValue): string | number | null | { readonly bytes: string } {
  return value instanceof Uint8Array ? { bytes: Buffer.from(value).toString('base64') } : value
}
