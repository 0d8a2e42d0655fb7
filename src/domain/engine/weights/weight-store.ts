/**
 * The folders of models of an engine whose disk this process can write. A file that is being uploaded is a draft: it lies aside,
 * is known by its id, outlives the process, and gets its name in one step. What may be put where is decided elsewhere.
 */

/** Checked: `name` leads nowhere out of its folder by itself. */
export interface WeightPath {
  readonly folder: string
  readonly name: string
}

export interface WeightDraft extends WeightPath {
  readonly id: string
  readonly sizeBytes: number
  /** What the whole file must hash to, as `blake3:` or `sha256:` and hex; null: nothing was said. */
  readonly hash: string | null
  /** These bytes have come and survive a power cut. */
  readonly offsetBytes: number
  /** When something last happened to it. */
  readonly touchedAt: Date
}

/** The bytes of a draft that have come so far, the unsynced ones included. */
export interface DraftBytes {
  readonly lengthBytes: number
  read(start: number, lengthBytes: number): Promise<Buffer>
}

export type HashAlgorithm = 'blake3' | 'sha256'

export interface WeightStore {
  /** Names of the folders. Throws invalid_field when the engine does not tell them. */
  folders(): Promise<readonly string[]>
  /** What the disk of this folder still takes. */
  freeBytes(folder: string): Promise<number>
  /** Throws invalid_field where the path leads out of its folder, or the folder is not on this machine. */
  isTaken(path: WeightPath): Promise<boolean>
  create(draft: WeightDraft): Promise<void>
  drafts(): Promise<readonly WeightDraft[]>
  /**
   * Writes behind what the draft has. `look` sees the bytes as they come; when it throws, or the source does, what came before is
   * kept. Throws payload_too_large when the disk is full: whoever puts weights there can make room.
   */
  append(
    draft: WeightDraft,
    source: AsyncIterable<Uint8Array>,
    look: (bytes: DraftBytes) => Promise<void>,
  ): Promise<WeightDraft>
  /** Of all bytes of the draft, with the algorithm's name in front. */
  hash(draft: WeightDraft, algorithm: HashAlgorithm): Promise<string>
  /** Gives the file its name and remembers its hash. `taken`: another file has it; then nothing has changed. */
  publish(draft: WeightDraft, hash: string): Promise<'placed' | 'taken'>
  discard(draft: WeightDraft): Promise<void>
  /** False: there is no such file. */
  remove(path: WeightPath): Promise<boolean>
  /** The files have changed: what the engine has is read anew. Resolves when that was tried. */
  refresh(): Promise<void>
}

/** An engine of this process with its folders of models. */
export interface WeightPlace {
  readonly engineId: string
  readonly store: WeightStore
}
