import type { Asset } from '../asset.ts'

/** What the owner of a file says of it in the library. The file itself, and what the Jobs API shows of it, stay as they are. */
export interface AssetNote {
  /** null: the file's own name. */
  readonly name: string | null
  /** null: the file's own type. */
  readonly contentType: string | null
  /** In place of those that it was uploaded with; null: those. */
  readonly tags: readonly string[] | null
  /** A JSON object as text, so that its numbers keep their digits; null: none. */
  readonly metadata: string | null
  /** The asset that shows what this one looks like. */
  readonly previewId: string | null
  /** The library shows it no more; its job still has it. */
  readonly isHidden: boolean
  /** Of the latest change, in milliseconds. */
  readonly changedAt: number
}

export interface NotedAsset extends Asset {
  readonly note: AssetNote | null
}

/** `models`: uploads below `models/`. `uploads`: all others. `outputs`: what jobs made, their previews included. */
export type LibraryShelf = 'models' | 'uploads' | 'outputs'

interface ShelfQuery {
  readonly shelf: LibraryShelf
  readonly limit: number
  readonly now: Date
}

interface NoteReplacement {
  /** What the change was made from. */
  readonly from: AssetNote | null
  readonly to: AssetNote
  readonly now: Date
}

/** A record past its life is gone, as everywhere; one that is hidden is not. */
export interface LibraryStore {
  /** The newest records of a shelf, the newest first. */
  listNewest(accountId: string, query: ShelfQuery): Promise<NotedAsset[]>
  /** In no order. */
  findNoted(accountId: string, assetIds: readonly string[], now: Date): Promise<NotedAsset[]>
  /** False, and nothing is changed, when the note is not `from` any more, or the record is gone. */
  replaceNote(accountId: string, assetId: string, replacement: NoteReplacement): Promise<boolean>
}
