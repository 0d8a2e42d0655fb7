/** Where an upload wants to stand, out of its form's fields. */

import { typeFromName } from '../../../lib/mime.ts'
import type { Asset } from '../../domain/assets/asset.ts'
import type { NamedUpload } from '../../domain/assets/named-files.ts'
import { leavesFolder, readFolder, refuseName, toBaseName } from './shelf-names.ts'
import type { UploadForm } from './upload-form.ts'

export interface UploadPlace extends Omit<NamedUpload, 'accountId'> {
  /** Echoed, and otherwise of no meaning: names are flat. */
  readonly subfolder: string
  nameOf(asset: Asset): string
}

const OVERWRITES = ['true', '1']

/** Throws `invalid_field`. */
export function readUploadPlace({ fileName, fields }: Pick<UploadForm<unknown>, 'fileName' | 'fields'>): UploadPlace {
  const folder = readFolder(fields.get('type') || 'input')
  if (folder === null) throw refuseName('type must be input, output or temp')
  const subfolder = fields.get('subfolder') ?? ''
  if (leavesFolder(subfolder === '' ? fileName : `${subfolder}/${fileName}`)) {
    throw refuseName('the file must stay in its folder')
  }
  const name = toBaseName(fileName)
  if (name === '') throw refuseName('the file needs a name')
  return {
    folder,
    subfolder,
    name,
    contentType: typeFromName(name) ?? 'application/octet-stream',
    overwrite: OVERWRITES.includes(fields.get('overwrite') ?? ''),
    nameOf: ({ filePath }) => toBaseName(filePath ?? name),
  }
}
