/** What a release says exactly: everything that an engine of it runs, each part by its content. Made once, by the builder; never changed. */
export interface ReleaseLock {
  readonly comfyui: LockedSource
  /** Such as `3.12`. */
  readonly python: string
  /** Such as `cpu` or `cu130`, with the version where it is known before the packages are. */
  readonly torch: { readonly variant: string; readonly version: string | null }
  readonly packs: readonly LockedPack[]
  /** Lines of a requirements file, every package with its hashes. */
  readonly wheels: string
  readonly models: readonly LockedModel[]
}

export interface LockedSource {
  /** As the definition says it. */
  readonly wanted: string
  /** Of git; null: it is known by its content alone. */
  readonly commit: string | null
  /** Of the archive or of the files of a folder, in their order. */
  readonly sha256: string
}

export interface LockedPack extends LockedSource {
  readonly name: string
  readonly from: 'blob' | 'registry' | 'git' | 'folder'
}

export interface LockedModel {
  readonly type: string
  readonly filename: string
  readonly sha256: string
  readonly sizeBytes: number
  readonly from: 'blob' | 'address' | 'fleet'
}
