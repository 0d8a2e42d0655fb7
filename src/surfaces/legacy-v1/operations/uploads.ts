/** Files and masks that clients send. The answer's `name` is what a graph has to say. */

import type { IncomingMessage } from 'node:http'
import type { Asset } from '../../../domain/assets/asset.ts'
import { contentTypeOf } from '../../../domain/assets/create/asset-fields.ts'
import type { NamedUpload, ReceivedFile } from '../../../domain/assets/named-files.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { FormReader } from '../../kit/bodies/form-reader.ts'
import {
  FORM_AROUND_MAX_BYTES,
  openFormChunks,
  PART_HEAD_MAX_BYTES,
  readBoundary,
  readPartHead,
  toFormRefusal,
} from '../../kit/bodies/multipart.ts'
import {
  collectBytes,
  leavesFolder,
  MAX_PICTURE_BYTES,
  readAnnotated,
  readFolder,
  toBaseName,
  toSubfolder,
} from '../files/file-names.ts'
import { type Api, type OperationDeps, queryOf, sendJson } from '../legacy-operation.ts'

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

// What the mask editor saves, all with the time of the save in their names.
const LAYER = /^clipspace-(mask|paint|painted|painted-masked)-(\d{1,20})\.png$/
const LAYERS = ['mask', 'paint', 'painted', 'painted-masked'] as const

/** The pictures that the mask editor saved together with this one. */
export function getMaskLayers(api: Api, { assets, accountOf }: OperationDeps): void {
  api.apiOnly('GET', '/files/mask-layers', 'assets:read', async (request, reply) => {
    const accountId = accountOf(request)
    const given = queryOf(request).get('filename') ?? ''
    if (given === '') throw invalidField('filename', 'is missing')
    const { name } = readAnnotated(given)
    const time = LAYER.exec(toBaseName(name))?.[2]
    const find = async (layer: (typeof LAYERS)[number]) => {
      const filename = `clipspace-${layer}-${time}.png`
      const asset = await assets.find(accountId, { folder: 'input', name: filename, subfolder: '' })
      return asset === null ? null : filename
    }
    const [mask, paint, painted, masked] = time === undefined ? [] : await Promise.all(LAYERS.map(find))
    if ([mask, paint, painted, masked].every((layer) => layer == null))
      throw new ServiceError('not_found', 'there are no layers of a mask with this name')
    return sendJson(reply, { mask, paint, painted, painted_masked: masked })
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

/**
 * An upload form as clients of this surface send it: one file named `image` and a few short fields, in any order. The file
 * streams to its receiver; everything around it is bounded. How large a file may be, what it may be called and how long it is
 * kept are rules of the domain, which hold for the uploads of every surface.
 */
interface UploadForm<Taken> {
  readonly fileName: string
  readonly file: Taken
  readonly fields: ReadonlyMap<string, string>
}

interface FormOptions<Taken> {
  /** Must read the file to its end. */
  take(bytes: AsyncIterable<Uint8Array>): Promise<Taken>
  /** Called with what was taken when the rest of the form is refused. */
  drop(taken: Taken): Promise<void>
}

const FILE_FIELD = 'image'
const MAX_PARTS = 32
const MAX_FIELD_BYTES = 64 * 1024

/** Throws `invalid_field`, `invalid_request` or `payload_too_large`. */
async function readUploadForm<Taken>(
  request: IncomingMessage,
  options: FormOptions<Taken>,
): Promise<UploadForm<Taken>> {
  const reader = new FormReader(openFormChunks(request), readBoundary(request.headers['content-type'] ?? ''))
  let taken: { readonly fileName: string; readonly file: Taken } | null = null
  try {
    const fields = new Map<string, string>()
    await reader.skipPreamble(FORM_AROUND_MAX_BYTES)
    for (let count = 0; ; count++) {
      const head = await reader.nextHead(PART_HEAD_MAX_BYTES)
      if (head === null) break
      if (count >= MAX_PARTS) throw invalidFile('the form has too many parts')
      const { name, fileName } = readPartHead(head)
      if (name === FILE_FIELD && fileName !== null && taken === null) {
        taken = { fileName, file: await options.take(reader.streamBody()) }
      } else if (fileName !== null) throw invalidFile(`only one file is expected, named ${FILE_FIELD}`)
      else fields.set(name, (await reader.readBody(MAX_FIELD_BYTES)).toString('utf8'))
    }
    await reader.skipEpilogue(FORM_AROUND_MAX_BYTES)
    if (taken === null) throw invalidFile(`the file ${FILE_FIELD} is missing`)
    return { ...taken, fields }
  } catch (error) {
    reader.close()
    if (taken !== null) await options.drop(taken.file)
    throw toFormRefusal(error)
  }
}

function invalidFile(message: string): ServiceError {
  return new ServiceError('invalid_field', message, { details: { field: FILE_FIELD } })
}

/** Where an upload is to be stored, out of the fields of its form. */
interface UploadTarget extends Omit<NamedUpload, 'accountId'> {
  /** Only echoed: the names of uploads are flat. */
  readonly subfolder: string
  /** The name that the upload got in the end. */
  nameOf(asset: Asset): string
}

const TRUE_WORDS = ['true', '1']

/** Throws `invalid_field`. */
function readUploadTarget({ fileName, fields }: Omit<UploadForm<unknown>, 'file'>): UploadTarget {
  const folder = readFolder(fields.get('type') || 'input')
  if (folder === null) throw invalidField('type', 'must be input, output or temp')
  const subfolder = fields.get('subfolder') ?? ''
  if (leavesFolder(subfolder === '' ? fileName : `${subfolder}/${fileName}`)) {
    throw invalidFile('the file must stay in its folder')
  }
  const name = toBaseName(fileName)
  if (name === '') throw invalidFile('the file needs a name')
  return {
    folder,
    subfolder,
    name,
    contentType: contentTypeOf(name),
    overwrite: TRUE_WORDS.includes(fields.get('overwrite') ?? ''),
    nameOf: ({ filePath }) => toBaseName(filePath ?? name),
  }
}
