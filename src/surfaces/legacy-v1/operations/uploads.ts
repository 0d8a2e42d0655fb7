/** Files and masks that clients send. The answer's `name` is what a graph has to say. */
import type { ReceivedFile } from '../../../domain/assets/named-files.ts'
import { invalidField } from '../../../domain/errors.ts'
import { leavesFolder, readFolder, toBaseName, toSubfolder } from '../files/file-names.ts'
import { collectBytes, MAX_PICTURE_BYTES } from '../files/picture-bytes.ts'
import { readUploadForm, readUploadTarget, type UploadForm, type UploadTarget } from '../files/upload-form.ts'
import { type Api, type OperationDeps, sendJson } from '../legacy-operation.ts'

/** Takes a file in under the name that the caller gives it, or the next free one. */
export function postUploadImage(api: Api, { assets, accountOf }: OperationDeps): void {
  api.both('POST', '/upload/image', 'assets:write', async (request, reply) => {
    const accountId = accountOf(request)
    const { file, ...form } = await readUploadForm(request.raw, {
      take: (bytes) => assets.receive(bytes, { accountId }),
      drop: (taken) => taken.discard(),
    })
    const { nameOf, subfolder, ...target } = await readTarget(form, file)
    const asset = await file.place({ accountId, ...target })
    return sendJson(reply, { name: nameOf(asset), subfolder, type: target.folder })
  })
}

/** The fields may come after the file, so its bytes may have been received when one of them is refused. */
async function readTarget(form: Omit<UploadForm<unknown>, 'file'>, file: ReceivedFile): Promise<UploadTarget> {
  try {
    return readUploadTarget(form)
  } catch (error) {
    await file.discard()
    throw error
  }
}

/** Puts the alpha of an uploaded picture onto one that exists already, and keeps the result as a new file. */
export function postUploadMask(api: Api, { assets, pictures, accountOf }: OperationDeps): void {
  async function readOriginal(accountId: string, ref: string): Promise<Uint8Array> {
    const asset = await assets.find(accountId, readOriginalRef(ref))
    if (asset === null) throw invalidRef('names a file that does not exist')
    return collectBytes(await assets.open(asset), MAX_PICTURE_BYTES)
  }

  api.both('POST', '/upload/mask', 'assets:write', async (request, reply) => {
    const accountId = accountOf(request)
    const form = await readUploadForm(request.raw, {
      take: (bytes) => collectBytes(bytes, MAX_PICTURE_BYTES),
      drop: async () => {},
    })
    const { nameOf, subfolder, ...target } = readUploadTarget(form)
    // One client spells the field its own way.
    const ref = form.fields.get('original_ref') ?? form.fields.get('originalRef')
    if (ref === undefined) throw invalidRef('is missing')
    const { bytes, contentType } = await pictures.replaceAlpha(await readOriginal(accountId, ref), form.file)
    const received = await assets.receive([bytes], { accountId })
    const asset = await received.place({ accountId, ...target, contentType })
    return sendJson(reply, { name: nameOf(asset), subfolder, type: target.folder })
  })
}

function readOriginalRef(text: string) {
  const { filename, subfolder = '', type = 'output' } = parseObject(text)
  const folder = readFolder(String(type || 'output'))
  if (typeof filename !== 'string' || filename === '' || folder === null || typeof subfolder !== 'string') {
    throw invalidRef('must name a file: {"filename", "subfolder", "type"}')
  }
  if (leavesFolder(filename) || leavesFolder(subfolder)) throw invalidRef('must stay in its folder')
  return { folder, name: toBaseName(filename), subfolder: toSubfolder(subfolder) }
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // Refused below, like JSON that is not an object.
  }
  throw invalidRef('must be a JSON object')
}

function invalidRef(problem: string) {
  return invalidField('original_ref', problem)
}
