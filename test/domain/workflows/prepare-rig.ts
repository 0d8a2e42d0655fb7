/** Assets of one account, and graphs that load them, to be prepared against the recorded catalog. */
import assert from 'node:assert/strict'
import type { FieldError } from '../../../engine/graph/graph.ts'
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import type { Asset } from '../../../src/domain/assets/asset.ts'
import type { FolderQuery, PathQuery } from '../../../src/domain/assets/asset-store.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createPrepareWorkflow } from '../../../src/domain/workflows/prepare.ts'
import { recordedCatalog } from '../../support/engines/recorded-catalog.ts'

export const catalog = recordedCatalog()
export const MINE = 'mine'
export const NOW = new Date('2026-01-02T00:00:00.000Z')

export const idOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
export const hashOf = (digit: string) => digit.repeat(64)

export function asset(number: number, fields: Partial<Asset> = {}): Asset {
  return {
    id: idOf(number),
    accountId: MINE,
    hash: hashOf(String(number % 10)),
    sizeBytes: 100 + number,
    contentType: 'image/png',
    filePath: null,
    tags: [],
    createdAt: new Date(NOW.getTime() + number),
    expiresAt: null,
    jobId: null,
    ...fields,
  }
}

/** A store of these assets that counts its look-ups. */
export function storeOf(...assets: Asset[]) {
  const calls: string[] = []
  const own = (accountId: string) => assets.filter((held) => held.accountId === accountId)
  const newestFirst = (list: Asset[]) => list.toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime())
  const newestBy = (list: Asset[], key: (held: Asset) => string | null, wanted: readonly string[]) =>
    wanted.flatMap((value) => newestFirst(list).find((held) => key(held) === value) ?? [])
  return {
    calls,
    findMany: async (accountId: string, ids: readonly string[]) => {
      calls.push('ids')
      return own(accountId).filter((held) => ids.includes(held.id))
    },
    findNewestByPath: async (accountId: string, { filePaths, origin }: PathQuery) => {
      calls.push(origin)
      const held = own(accountId).filter(({ jobId }) => (jobId === null ? 'upload' : 'output') === origin)
      return newestFirst(newestBy(held, ({ filePath }) => filePath, filePaths))
    },
    findInFolders: async (accountId: string, { folders, limit }: FolderQuery) => {
      calls.push('folders')
      const isInside = ({ filePath }: Asset) =>
        folders.some((folder) => filePath?.startsWith(`${folder}/`) && !filePath.includes('/', folder.length + 1))
      return newestFirst(own(accountId).filter(isInside)).slice(0, limit)
    },
    findNewestByHash: async (accountId: string, hashes: readonly string[]) => {
      calls.push('hashes')
      return newestBy(own(accountId), (held) => held.hash, hashes)
    },
  }
}

export function prepareWith(...assets: Asset[]) {
  const store = storeOf(...assets)
  const prepare = createPrepareWorkflow({ catalog: () => catalog, assets: store, clock: { now: () => NOW } })
  return { store, prepare: (workflow: JsonValue | undefined) => prepare(MINE, workflow, { pool: 'default' }) }
}

export function loads(...images: JsonValue[]): JsonObject {
  const graph: JsonObject = {}
  images.forEach((image, index) => {
    graph[`load${index}`] = { class_type: 'LoadImage', inputs: { image } }
    graph[`show${index}`] = { class_type: 'PreviewImage', inputs: { images: [`load${index}`, 0] } }
  })
  return graph
}

export function reference(info: JsonValue): JsonObject {
  return { __type: 'core/ASSET', info }
}

export async function refusalOf(work: Promise<unknown>): Promise<ServiceError> {
  const error = await work.then(
    () => assert.fail('was not refused'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof ServiceError)
  return error
}

export function nodeErrors(error: ServiceError): Record<string, FieldError[]> {
  return error.details?.node_errors as Record<string, FieldError[]>
}
