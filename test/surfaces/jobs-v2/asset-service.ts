/** The asset operations over the real store and the real blob files, on a socket: what the tests of them talk to. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fastify } from 'fastify'
import { openBlake3 } from '../../../lib/files/blake3.ts'
import { newUuidV4 } from '../../../lib/ids.ts'
import { silentLog } from '../../../lib/log.ts'
import { openFsBlobs } from '../../../src/adapters/blobs/fs/fs-blobs.ts'
import { openModelFiles } from '../../../src/adapters/blobs/fs/model-files.ts'
import { openSqliteStore } from '../../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { createFindAsset, createOpenContent, createRemoveAsset } from '../../../src/domain/assets/asset-content.ts'
import { createAssetFromHash, createHasBlob } from '../../../src/domain/assets/create/asset-from-hash.ts'
import { createUploadAsset } from '../../../src/domain/assets/create/upload-asset.ts'
import { createUploadPolicy } from '../../../src/domain/assets/create/upload-policy.ts'
import { createStorageQuota } from '../../../src/domain/assets/storage-quota.ts'
import { createModelPlacement } from '../../../src/domain/assets/weights/model-placement.ts'
import { createAnswerError } from '../../../src/surfaces/jobs-v2/jobs-errors.ts'
import type { ContextOf } from '../../../src/surfaces/jobs-v2/jobs-operation.ts'
import {
  ASSETS_BY_ID,
  assetFromHash,
  headAssetByHash,
  postAssets,
} from '../../../src/surfaces/jobs-v2/operations/assets.ts'
import { createDirectLinks } from '../../../src/surfaces/jobs-v2/views/job-view.ts'
import { dropRestOf } from '../../../src/surfaces/kit/bodies/gather-body.ts'
import type { WireAsset } from '../../support/clients/checked-client.ts'

export interface AssetServiceOptions {
  readonly maxUploadBytes?: number
  readonly withModels?: boolean
}

/** The account is chosen by a header, so that tests can be two callers. */
const ACCOUNT_HEADER = 'x-test-account'
export const asAccount = (accountId: string) => ({ [ACCOUNT_HEADER]: accountId })

export async function openAssetService({ maxUploadBytes = 50_000_000, withModels = false }: AssetServiceOptions = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-assets-'))
  const modelsDirectory = await mkdtemp(join(tmpdir(), 'atelier-models-'))
  const store = await openSqliteStore({ directory })
  const blake3 = await openBlake3()
  const blobs = await openFsBlobs({ directory: join(directory, 'blobs'), blake3, log: silentLog })
  const clock = { now: () => new Date(Date.now() + service.aheadMs) }
  for (const id of ['local', 'other']) await store.accounts.put({ id, maxRunning: 1, maxQueued: 10 })
  const modelFiles = withModels ? await openModelFiles({ modelsDirectory, blobs, blake3 }) : null
  const placement = createModelPlacement({ modelFiles, blobs })
  const shared = { assets: store.assets, blobs, clock, newId: newUuidV4, placement, retentionMs: null }

  const app = fastify()
  const contextOf: ContextOf = (request) => ({
    accountId: String(request.headers[ACCOUNT_HEADER] ?? 'local'),
    scopes: null,
    endpoints: null,
    keyId: null,
    pool: null,
    requestId: 'test',
    origin: 'http://atelier.test',
    mountPrefix: '/mounted',
  })
  const defects: unknown[] = []
  const answerError = createAnswerError({ ...silentLog, error: (fields) => void defects.push(fields) })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  app.addHook('onResponse', async (request) => dropRestOf(request.raw))
  app.setErrorHandler((error, _request, reply) => {
    const answer = answerError(error, 'test')
    return reply.code(answer.status).headers(answer.headers).send(answer.body)
  })
  const contentLinks = createDirectLinks(clock)
  const quota = createStorageQuota({ ...shared, uploads: { openBytes: async () => 0 }, limitOf: () => null })
  const uploads = createUploadPolicy({ ...shared, quota, maxBytes: maxUploadBytes })
  postAssets(app, {
    contextOf,
    uploadAsset: createUploadAsset({ ...shared, keys: store.keys, uploads }),
    maxUploadBytes,
    contentLinks,
  })
  assetFromHash(app, { contextOf, contentLinks, assetFromHash: createAssetFromHash(shared) })
  headAssetByHash(app, { contextOf, hasBlob: createHasBlob(shared) })
  const byId = {
    contextOf,
    contentLinks,
    findAsset: createFindAsset(shared),
    removeAsset: createRemoveAsset(shared),
    openContent: createOpenContent(shared),
  }
  for (const register of ASSETS_BY_ID) register(app, byId)
  const service = {
    aheadMs: 0,
    origin: '',
    port: 0,
    directory,
    modelsDirectory,
    store,
    blobs,
    blake3,
    defects,
    /** Every file of the blob store, unfinished ones included. */
    async storedFiles(): Promise<string[]> {
      const entries = await readdir(join(directory, 'blobs'), { recursive: true, withFileTypes: true })
      return entries.filter((entry) => entry.isFile()).map((entry) => entry.name)
    },
    async [Symbol.asyncDispose]() {
      await app.close()
      await store[Symbol.asyncDispose]()
      await rm(directory, { recursive: true })
      await rm(modelsDirectory, { recursive: true })
    },
  }
  service.origin = await app.listen({ host: '127.0.0.1', port: 0 })
  service.port = Number(new URL(service.origin).port)
  return service
}

export type AssetService = Awaited<ReturnType<typeof openAssetService>>

export interface UploadFields {
  readonly fields?: Readonly<Record<string, string | readonly string[]>>
  readonly bytes?: Uint8Array
  readonly fileName?: string
  readonly fileFirst?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

export const FIELDS = { content_type: 'image/png', file_path: 'photo.png' }

/** Sends a form as the official client does: fields first, then the file. */
export function upload(
  service: AssetService,
  { fields = FIELDS, bytes = Buffer.from('bytes'), ...more }: UploadFields = {},
) {
  const form = new FormData()
  const file = new Blob([new Uint8Array(bytes)])
  if (more.fileFirst === true) form.append('file', file, more.fileName ?? 'photo.png')
  for (const [name, value] of Object.entries(fields)) {
    for (const one of [value].flat()) form.append(name, one)
  }
  if (more.fileFirst !== true) form.append('file', file, more.fileName ?? 'photo.png')
  return fetch(`${service.origin}/api/v2/assets`, { method: 'POST', body: form, headers: more.headers })
}

export async function uploaded(service: AssetService, options: UploadFields = {}): Promise<WireAsset> {
  const response = await upload(service, options)
  if (!response.ok) throw new Error(`upload refused: ${response.status} ${await response.text()}`)
  return (await response.json()) as WireAsset
}

export async function errorOf(response: Response) {
  const { error } = (await response.json()) as {
    error: { code: string; message: string; details: Record<string, unknown> | null }
  }
  return { status: response.status, ...error }
}
