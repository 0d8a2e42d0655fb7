/** What is said of an upload, judged before its bytes come: everything that can be refused without reading the file is refused here. */
import type { Clock } from '../../../../lib/clock.ts'
import type { ModelPlacement } from '../weights/model-placement.ts'
import { readContentType, readExpiry, readTags } from './asset-fields.ts'
import { type FilePath, readFilePath } from './file-path.ts'

export interface UploadFields {
  readonly filePath: string
  readonly contentType: string
  /** Plain lower-case hex. */
  readonly expectedHash: string | null
  readonly tags: readonly string[]
  readonly expiresInSeconds: number | null
}

export type AdmittedFields = Omit<UploadFields, 'filePath'> & { readonly filePath: FilePath }

/** Throws ServiceError. */
export type AdmitFields = (fields: UploadFields) => Promise<AdmittedFields>

interface AdmitFieldsDeps {
  readonly placement: Pick<ModelPlacement, 'admit'>
  readonly clock: Clock
}

export function createAdmitFields({ placement, clock }: AdmitFieldsDeps): AdmitFields {
  return async function admitFields(fields) {
    const filePath = readFilePath(fields.filePath)
    const admitted = { ...fields, contentType: readContentType(fields.contentType), tags: readTags(fields.tags) }
    readExpiry(fields.expiresInSeconds, { now: clock.now(), defaultMs: null })
    if (filePath.model !== null) await placement.admit(filePath.model)
    return { ...admitted, filePath }
  }
}
