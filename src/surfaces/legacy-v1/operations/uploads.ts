/** Puts the alpha of an uploaded picture onto one that is there already, and keeps the result as a new file. */
import { ServiceError } from '../../../domain/errors.ts'
import { leavesFolder, readFolder, toBaseName, toSubfolder } from '../files/file-names.ts'
import { collectBytes } from '../files/picture-bytes.ts'
import { readUploadForm } from '../files/upload-form.ts'
import { type Api, type OperationDeps, sendJson } from '../legacy-operation.ts'
import { readUploadPlace } from '../upload-place.ts'

/** Pictures are decoded whole, in memory. */
const MAX_PICTURE_BYTES = 64 * 1024 * 1024

export function postUploadMask(api: Api, { assets, pictures, accountOf }: OperationDeps): void {
  async function readOriginal(accountId: string, ref: string): Promise<Uint8Array> {
    const asset = await assets.find(accountId, readOriginalRef(ref))
    if (asset === null) throw invalid('original_ref names a file that does not exist')
    return collectBytes(await assets.open(asset), MAX_PICTURE_BYTES)
  }

  api.both('POST', '/upload/mask', async (request, reply) => {
    const accountId = accountOf(request)
    const form = await readUploadForm(request.raw, {
      take: (bytes) => collectBytes(bytes, MAX_PICTURE_BYTES),
      drop: async () => {},
    })
    const { nameOf, subfolder, ...place } = readUploadPlace(form)
    // One client spells the field its own way.
    const ref = form.fields.get('original_ref') ?? form.fields.get('originalRef')
    if (ref === undefined) throw invalid('original_ref is missing')
    const { bytes, contentType } = await pictures.replaceAlpha(await readOriginal(accountId, ref), form.file)
    const received = await assets.receive([bytes], { accountId })
    const asset = await received.place({ accountId, ...place, contentType })
    return sendJson(reply, { name: nameOf(asset), subfolder, type: place.folder })
  })
}

function readOriginalRef(text: string) {
  const { filename, subfolder = '', type = 'output' } = parse(text)
  const folder = readFolder(String(type || 'output'))
  if (typeof filename !== 'string' || filename === '' || folder === null || typeof subfolder !== 'string') {
    throw invalid('original_ref must name a file: {"filename", "subfolder", "type"}')
  }
  if (leavesFolder(filename) || leavesFolder(subfolder)) throw invalid('original_ref must stay in its folder')
  return { folder, name: toBaseName(filename), subfolder: toSubfolder(subfolder) }
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // Told below, like any other text that is no object.
  }
  throw invalid('original_ref must be a JSON object')
}

function invalid(message: string): ServiceError {
  return new ServiceError('invalid_field', message, { details: { field: 'original_ref' } })
}
