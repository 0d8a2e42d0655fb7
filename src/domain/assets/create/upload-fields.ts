/** What is said of an upload, judged before its bytes come: everything that can be refused without reading the file is refused here. */
import type { Clock } from '../../../../lib/clock.ts'
import type { ModelPlacement } from '../weights/model-placement.ts'
import { readContentType, readExpiry, readTags } from './asset-fields.ts'
import { type ModelPath, readFilePath } from './file-path.ts'

export interface UploadFields {
  /** null: in no folder. */
  readonly filePath: string | null
  readonly contentType: string
  /** Plain lower-case hex. */
  readonly expectedHash: string | null
  readonly tags: readonly string[]
  readonly expiresInSeconds: number | null
}

export type AdmittedFields = Omit<UploadFields, 'filePath'> & {
  readonly filePath: { readonly path: string | null; readonly model: ModelPath | null }
}

/** Throws ServiceError. */
export type AdmitFields = (fields: UploadFields) => Promise<AdmittedFields>

interface AdmitFieldsDeps {
  readonly placement: Pick<ModelPlacement, 'admit'>
  readonly clock: Clock
}

const NOWHERE = { path: null, model: null }

export function createAdmitFields({ placement, clock }: AdmitFieldsDeps): AdmitFields {
  return async function admitFields(fields) {
    const filePath = fields.filePath === null ? NOWHERE : readFilePath(fields.filePath)
    const admitted = { ...fields, contentType: readContentType(fields.contentType), tags: readTags(fields.tags) }
    readExpiry(fields.expiresInSeconds, { now: clock.now(), defaultMs: null })
    if (filePath.model !== null) await placement.admit(filePath.model)
    return { ...admitted, filePath }
  }
}
