/**
 * Weights by folder: what the loaders of the engine's catalog list, and what the account has uploaded. Folders are logical
 * names; where a file lies on a disk is never told.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { Asset } from '../../../domain/assets/asset.ts'
import { GivenFileError, isDataUrl, readDataUrl } from '../../../domain/assets/given-files.ts'
import type { NamedFiles } from '../../../domain/assets/named-files.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { FOLDERS_WITHOUT_WEIGHTS, MODEL_FOLDERS } from '../../../domain/workflows/model-folders.ts'
import { collectBytes, MAX_PICTURE_BYTES } from '../files/file-names.ts'
import { type Api, type OperationDeps, paramOf, queryOf, sendJson } from '../legacy-operation.ts'

const MAX_FILES = 1000
const EXTENSIONS = ['.bin', '.ckpt', '.pkl', '.pt', '.pt2', '.pth', '.safetensors', '.sft']
const FOLDERS_WITHOUT_EXTENSIONS = ['datasets']

export function getModels(api: Api, { catalog, assets, accountOf }: OperationDeps): void {
  async function list(accountId: string, folder: string): Promise<readonly ModelFile[]> {
    if (!Object.hasOwn(MODEL_FOLDERS, folder)) throw new ServiceError('not_found', 'there is no such folder of models')
    const uploads = await assets.list(accountId, `models/${folder}`, MAX_FILES)
    const start = `models/${folder}/`.length
    const own = uploads.map(({ filePath, sizeBytes, createdAt }) => {
      const at = createdAt.getTime() / 1000
      return { name: filePath?.slice(start) ?? '', size: sizeBytes, created: at, modified: at }
    })
    const known = new Set(own.map(({ name }) => name))
    const installed = listedBy(catalog(), folder).filter((name) => !known.has(name))
    return [...own, ...installed.map((name) => ({ name, size: 0, created: 0, modified: 0 }))].sort((a, b) =>
      a.name < b.name ? -1 : 1,
    )
  }

  api.both('GET', '/models', 'assets:read', async (_request, reply) => sendJson(reply, Object.keys(MODEL_FOLDERS)))
  api.both('GET', '/models/:folder', 'assets:read', async (request, reply) => {
    const files = await list(accountOf(request), paramOf(request, 'folder'))
    return sendJson(
      reply,
      files.map(({ name }) => name),
    )
  })
  api.both('GET', '/experiment/models', 'assets:read', async (_request, reply) => {
    const folders = Object.keys(MODEL_FOLDERS).filter((name) => !FOLDERS_WITHOUT_WEIGHTS.includes(name))
    return sendJson(
      reply,
      folders.map((name) => ({
        name,
        folders: [`models/${name}`],
        extensions: FOLDERS_WITHOUT_EXTENSIONS.includes(name) ? [] : EXTENSIONS,
      })),
    )
  })
  api.both('GET', '/experiment/models/:folder', 'assets:read', async (request, reply) => {
    const files = await list(accountOf(request), paramOf(request, 'folder'))
    return sendJson(
      reply,
      files.map((file) => ({ ...file, pathIndex: 0 })),
    )
  })
  api.both('GET', '/embeddings', 'assets:read', async (request, reply) => {
    const files = await list(accountOf(request), 'embeddings')
    // Prompts name embeddings without their file ending.
    return sendJson(
      reply,
      files.map(({ name }) => name.replace(/\.[^./]+$/, '')),
    )
  })
}

interface ModelFile {
  readonly name: string
  readonly size: number
  readonly created: number
  readonly modified: number
}

/** The files that the engine lists: the choices of the loader that reads this folder. */
function listedBy(catalog: NodeCatalog, folder: string): readonly string[] {
  const loader = MODEL_FOLDERS[folder]
  if (loader === null || loader === undefined) return []
  const [classType, inputName] = loader
  const spec = catalog.find(classType)?.input.required?.[inputName]
  if (spec === undefined) return []
  const choices = Array.isArray(spec[0]) ? spec[0] : spec[1]?.['options']
  return Array.isArray(choices) ? choices.filter((choice) => typeof choice === 'string') : []
}

const LENGTH_BYTES = 8
const MAX_HEADER_BYTES = 32 * 1024 * 1024

/** The `__metadata__` of a safetensors file that the account has uploaded. */
export function getViewMetadata(api: Api, { assets, accountOf }: OperationDeps): void {
  api.both('GET', '/view_metadata/:folder', 'assets:read', async (request, reply) => {
    const name = queryOf(request).get('filename') ?? ''
    const path = `models/${paramOf(request, 'folder')}/${name}`
    const asset = name.endsWith('.safetensors') ? await assets.findUpload(accountOf(request), path) : null
    const metadata = asset === null ? null : await readMetadata(assets, asset)
    if (metadata === null) throw new ServiceError('not_found', 'there is no model of this name with metadata')
    return sendJson(reply, metadata)
  })
}

type Metadata = Readonly<Record<string, unknown>>

/** null: it is no safetensors file, or has none. */
async function readMetadata(assets: NamedFiles, asset: Asset): Promise<Metadata | null> {
  const read = async (start: number, length: number) =>
    collectBytes(await assets.open(asset, { start, end: start + length - 1 }), length)
  if (asset.sizeBytes < LENGTH_BYTES) return null
  const length = Number((await read(0, LENGTH_BYTES)).readBigUInt64LE())
  if (length === 0 || length > MAX_HEADER_BYTES || length + LENGTH_BYTES > asset.sizeBytes) return null
  try {
    const header = JSON.parse((await read(LENGTH_BYTES, length)).toString('utf8')) as {
      readonly __metadata__?: unknown
    }
    const { __metadata__: metadata } = header
    return typeof metadata === 'object' && metadata !== null ? (metadata as Metadata) : null
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

// Where makers of weights put a picture into the header of their file.
const THUMBNAILS = ['modelspec.thumbnail', 'thumbnail', 'image', 'icon'] as const
const PREVIEW = { format: 'webp', quality: 90 } as const

/** A picture of a model that the account has uploaded: the one that its owner chose, or the one in the file. */
export function getModelPreview(api: Api, { assets, library, pictures, accountOf }: OperationDeps): void {
  /** Clients put `.webp` in the place of the file's ending, or behind it. */
  async function findModel(accountId: string, folder: string, asked: string): Promise<Asset | null> {
    const base = asked.replace(/\.webp$/i, '')
    const name = base.endsWith('.safetensors') ? base : `${base}.safetensors`
    return assets.findUpload(accountId, `models/${folder}/${name}`)
  }

  async function readChosen(accountId: string, model: Asset): Promise<Uint8Array | null> {
    try {
      const { previewId } = await library.library.find(accountId, model.id)
      if (previewId === null) return null
      const { hash, sizeBytes } = await library.library.find(accountId, previewId)
      if (hash === null || sizeBytes === null) return null
      return await collectBytes(await assets.open({ hash, sizeBytes }), MAX_PICTURE_BYTES)
    } catch (error) {
      // Whatever it was, it is gone.
      if (error instanceof ServiceError && ['not_found', 'output_unavailable'].includes(error.refusal)) return null
      throw error
    }
  }

  async function readOwn(model: Asset): Promise<Uint8Array | null> {
    const metadata = await readMetadata(assets, model)
    const url = THUMBNAILS.map((name) => metadata?.[name]).find(
      (value) => typeof value === 'string' && isDataUrl(value),
    )
    if (typeof url !== 'string') return null
    try {
      return readDataUrl(url).bytes
    } catch (error) {
      if (error instanceof GivenFileError) return null
      throw error
    }
  }

  api.both('GET', '/experiment/models/preview/:folder/:index/:filename', 'assets:read', async (request, reply) => {
    const accountId = accountOf(request)
    const model =
      paramOf(request, 'index') === '0'
        ? await findModel(accountId, paramOf(request, 'folder'), paramOf(request, 'filename'))
        : null
    const bytes = model === null ? null : ((await readChosen(accountId, model)) ?? (await readOwn(model)))
    if (bytes === null) throw new ServiceError('not_found', 'there is no picture of this model')
    const picture = await pictures.preview(bytes, PREVIEW)
    return reply
      .header('content-type', picture.contentType)
      .header('cache-control', 'private, no-cache')
      .send(picture.bytes)
  })
}
