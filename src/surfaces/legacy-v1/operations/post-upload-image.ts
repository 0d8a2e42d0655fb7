/** Takes a file in under the caller's own name, or the next free one. The answer's `name` is what a graph has to say. */

import type { ReceivedFile } from '../../../domain/assets/named-files.ts'
import { type Api, type OperationDeps, sendJson } from '../operation.ts'
import { readUploadForm, type UploadForm } from '../upload-form.ts'
import { readUploadPlace, type UploadPlace } from '../upload-place.ts'

export function postUploadImage(api: Api, { assets, accountOf }: OperationDeps): void {
  api.both('POST', '/upload/image', async (request, reply) => {
    const accountId = accountOf(request)
    const { file, ...form } = await readUploadForm(request.raw, {
      take: (bytes) => assets.receive(bytes, { accountId }),
      drop: (taken) => taken.discard(),
    })
    const { nameOf, subfolder, ...place } = await readPlace(form, file)
    const asset = await file.place({ accountId, ...place })
    return sendJson(reply, { name: nameOf(asset), subfolder, type: place.folder })
  })
}

/** The fields may come behind the file, so a refusal may come when its bytes are there already. */
async function readPlace(form: Omit<UploadForm<unknown>, 'file'>, file: ReceivedFile): Promise<UploadPlace> {
  try {
    return readUploadPlace(form)
  } catch (error) {
    await file.discard()
    throw error
  }
}
