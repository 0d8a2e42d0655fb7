/**
 * Weights by folder: what the loaders of the engine's catalog list, and what the account has uploaded. Folders are logical
 * names; where anything lies on a disk is never told.
 */

import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { type Api, type OperationDeps, paramOf, sendJson } from '../legacy-operation.ts'
import { MODEL_FOLDERS } from '../model-folders.ts'

const MAX_FILES = 1000
const EXTENSIONS = ['.bin', '.ckpt', '.pkl', '.pt', '.pt2', '.pth', '.safetensors', '.sft']
// Folders that no model browser shows.
const OTHER_FOLDERS = ['configs', 'custom_nodes']
const NO_EXTENSIONS = ['datasets']

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

  api.both('GET', '/models', async (_request, reply) => sendJson(reply, Object.keys(MODEL_FOLDERS)))
  api.both('GET', '/models/:folder', async (request, reply) => {
    const files = await list(accountOf(request), paramOf(request, 'folder'))
    return sendJson(
      reply,
      files.map(({ name }) => name),
    )
  })
  api.both('GET', '/experiment/models', async (_request, reply) => {
    const folders = Object.keys(MODEL_FOLDERS).filter((name) => !OTHER_FOLDERS.includes(name))
    return sendJson(
      reply,
      folders.map((name) => ({
        name,
        folders: [`models/${name}`],
        extensions: NO_EXTENSIONS.includes(name) ? [] : EXTENSIONS,
      })),
    )
  })
  api.both('GET', '/experiment/models/:folder', async (request, reply) => {
    const files = await list(accountOf(request), paramOf(request, 'folder'))
    return sendJson(
      reply,
      files.map((file) => ({ ...file, pathIndex: 0 })),
    )
  })
  api.both('GET', '/embeddings', async (request, reply) => {
    const files = await list(accountOf(request), 'embeddings')
    // Prompts name them without their ending.
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

/** The choices of the loader that reads this folder. */
function listedBy(catalog: NodeCatalog, folder: string): readonly string[] {
  const loader = MODEL_FOLDERS[folder]
  if (loader === null || loader === undefined) return []
  const [classType, inputName] = loader
  const spec = catalog.find(classType)?.input.required?.[inputName]
  if (spec === undefined) return []
  const choices = Array.isArray(spec[0]) ? spec[0] : spec[1]?.['options']
  return Array.isArray(choices) ? choices.filter((choice) => typeof choice === 'string') : []
}
