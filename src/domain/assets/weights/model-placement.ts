/**
 * Weights that a caller uploads to `models/<root>/…` are also put into the models folder of this machine, where loaders find
 * them. That needs an operator who has named the folder; nothing is ever overwritten, and only safetensors files are taken.
 */

import { invalidField, type ServiceError } from '../../errors.ts'
import type { BlobStore } from '../blob-store.ts'
import type { ModelPath } from '../create/file-path.ts'
import { checkSafetensorsStart } from './safetensors-header.ts'

/** `same`: the file is already there with these very bytes. `taken`: something else is. */
export type PlaceState = 'free' | 'same' | 'taken'

export interface StoredBytes {
  readonly hash: string
  readonly sizeBytes: number
}

export interface ModelFiles {
  /** Throws `invalid_field` when the path leads out of the models folder. */
  inspect(model: ModelPath, bytes: StoredBytes | null): Promise<PlaceState>
  /** Appears whole and durable, or not at all. Never replaces a file. */
  place(model: ModelPath, bytes: StoredBytes): Promise<'placed' | 'same' | 'taken'>
  /** Takes back what `place` has just put there. */
  takeBack(model: ModelPath): Promise<void>
}

export interface ModelPlacement {
  /** Before any byte has come: throws when no file can be put under this path at all. */
  admit(model: ModelPath): Promise<void>
  /** The bytes are known but not yet stored: refuses when another file has this path. */
  reserve(model: ModelPath, bytes: StoredBytes): Promise<void>
  /** The bytes are stored. Gives back how to undo it, should the record be refused. */
  place(model: ModelPath, bytes: StoredBytes): Promise<() => Promise<void>>
  /** For bytes that were stored as something else before. */
  checkStored(bytes: StoredBytes): Promise<void>
}

interface ModelPlacementDeps {
  /** null: the operator has named no models folder. */
  readonly modelFiles: ModelFiles | null
  readonly blobs: BlobStore
}

const UNDO_NOTHING = async () => {}

export function createModelPlacement({ modelFiles, blobs }: ModelPlacementDeps): ModelPlacement {
  function configured(): ModelFiles {
    if (modelFiles !== null) return modelFiles
    throw invalidField('file_path', 'cannot be a models/ path here: this server has no models folder configured')
  }

  return {
    async admit(model) {
      await configured().inspect(model, null)
    },
    async reserve(model, bytes) {
      if ((await configured().inspect(model, bytes)) === 'taken') throw taken()
    },
    async place(model, bytes) {
      const files = configured()
      const outcome = await files.place(model, bytes)
      if (outcome === 'taken') throw taken()
      return outcome === 'placed' ? () => files.takeBack(model) : UNDO_NOTHING
    },
    async checkStored({ hash }) {
      await checkSafetensorsStart(await blobs.open(hash))
    },
  }
}

function taken(): ServiceError {
  return invalidField('file_path', 'names a model that exists already with other content; choose another name')
}
