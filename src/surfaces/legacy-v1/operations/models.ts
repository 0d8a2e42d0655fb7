/**
 * Weights by folder: what the loaders of the engine's catalog list, and what the account has uploaded. Folders are logical
 * names; where a file lies on a disk is never told.
 */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { FOLDERS_WITHOUT_WEIGHTS, MODEL_FOLDERS } from '../../../domain/workflows/model-folders.ts'
import { collectBytes } from '../files/file-names.ts'
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

/** The `__metadata__` of a safetensors file that the account has uploaded. */
const LENGTH_BYTES = 8
const MAX_HEADER_BYTES = 32 * 1024 * 1024

export function getViewMetadata(api: Api, { assets, accountOf }: OperationDeps): void {
  api.both('GET', '/view_metadata/:folder', 'assets:read', async (request, reply) => {
    const name = queryOf(request).get('filename') ?? ''
    const path = `models/${paramOf(request, 'folder')}/${name}`
    const asset = name.endsWith('.safetensors') ? await assets.findUpload(accountOf(request), path) : null
    if (asset === null) throw noMetadata()
    const read = async (start: number, length: number) =>
      collectBytes(await assets.open(asset, { start, end: start + length - 1 }), length)
    if (asset.sizeBytes < LENGTH_BYTES) throw noMetadata()
    const length = Number((await read(0, LENGTH_BYTES)).readBigUInt64LE())
    if (length === 0 || length > MAX_HEADER_BYTES || length + LENGTH_BYTES > asset.sizeBytes) throw noMetadata()
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
  throw noMetadata()
}

function noMetadata(): ServiceError {
  return new ServiceError('not_found', 'there is no model of this name with metadata')
}
