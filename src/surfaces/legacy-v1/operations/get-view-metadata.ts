/** The `__metadata__` of a safetensors file that the account has uploaded. */
import { ServiceError } from '../../../domain/errors.ts'
import { collectBytes } from '../files/picture-bytes.ts'
import { type Api, type OperationDeps, paramOf, queryOf, sendJson } from '../legacy-operation.ts'

const LENGTH_BYTES = 8
const MAX_HEADER_BYTES = 32 * 1024 * 1024

export function getViewMetadata(api: Api, { assets, accountOf }: OperationDeps): void {
  api.both('GET', '/view_metadata/:folder', async (request, reply) => {
    const name = queryOf(request).get('filename') ?? ''
    const path = `models/${paramOf(request, 'folder')}/${name}`
    const asset = name.endsWith('.safetensors') ? await assets.findUpload(accountOf(request), path) : null
    if (asset === null) throw missing()
    const read = async (start: number, length: number) =>
      collectBytes(await assets.open(asset, { start, end: start + length - 1 }), length)
    if (asset.sizeBytes < LENGTH_BYTES) throw missing()
    const length = Number((await read(0, LENGTH_BYTES)).readBigUInt64LE())
    if (length === 0 || length > MAX_HEADER_BYTES || length + LENGTH_BYTES > asset.sizeBytes) throw missing()
    return sendJson(reply, readMetadata((await read(LENGTH_BYTES, length)).toString('utf8')))
  })
}

function readMetadata(header: string): object {
  try {
    const { __metadata__: metadata } = JSON.parse(header) as { readonly __metadata__?: unknown }
    if (typeof metadata === 'object' && metadata !== null) return metadata
  } catch {
    // A file that is no safetensors file has no metadata either.
  }
  throw missing()
}

function missing(): ServiceError {
  return new ServiceError('not_found', 'there is no model of this name with metadata')
}
