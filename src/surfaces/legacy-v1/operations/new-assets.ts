/** New files of the library: uploaded, made of bytes that the account has, or fetched from an address that the operator allows. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isUuid } from '../../../../lib/ids.ts'
import { type JsonObject, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { TAGS_MAX_COUNT } from '../../../domain/assets/create/asset-fields.ts'
import type { LibraryCreation, LibraryFields } from '../../../domain/assets/library/add-to-library.ts'
import type { SourceFailed } from '../../../domain/assets/library/import-files.ts'
import type { AssetImport } from '../../../domain/assets/library/import-store.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { type MultipartForm, readMultipart } from '../../kit/bodies/multipart.ts'
import {
  fileNameOf,
  metadataOf,
  previewOf,
  readAssetBody,
  readAssetForm,
  someTagsOf,
  tagsOf,
  textOf,
} from '../files/asset-body.ts'
import { createAssetView } from '../files/asset-view.ts'
import { toBaseName } from '../files/file-names.ts'
import { type Api, type OperationDeps, paramOf, queryOf, sendJson, sendJsonText } from '../legacy-operation.ts'
import { seededMessages } from '../ws/asset-news.ts'

const FORM = {
  fileField: 'file',
  repeatable: ['tags', 'tags[]'],
  maxFields: TAGS_MAX_COUNT + 32,
  maxFieldBytes: 32 * 1024,
}
const WIRE_HASH = /^(?:(blake3|sha256):)?([0-9a-f]{64})$/i

export function postAsset(api: Api, deps: OperationDeps): void {
  const { library, accountOf } = deps

  async function upload(request: FastifyRequest, form: MultipartForm): Promise<LibraryCreation> {
    const accountId = accountOf(request)
    try {
      const chosen = readChosenId(form)
      const assetId = chosen === null ? null : library.chooseId(accountId, chosen)
      const created = await library.add.upload({
        ...{ accountId, source: form.file, assetId },
        describe() {
          // Too late for it: the file has been read.
          if (form.fields.has('id') && chosen === null) throw invalidField('id', 'must come before the file')
          return toFields(readAssetForm(form.fields), form.fileName)
        },
      })
      await readRest(form.file, deps.limits.maxUploadBytes)
      return created
    } catch (error) {
      form.abandon()
      throw error
    }
  }

  api.apiOnly('POST', '/assets', 'assets:write', async (request, reply) => {
    const isForm = /^multipart\//i.test(request.headers['content-type'] ?? '')
    if (isForm) return sendCreated(request, reply, await upload(request, await readMultipart(request.raw, FORM)))
    const body = await readAssetBody(request)
    const taken = await library.imports.take({ accountId: accountOf(request), ...readSource(body, 'url') })
    return taken.outcome === 'taken' ? sendCreated(request, reply, taken) : sendSourceFailed(reply, taken)
  })

  api.apiOnly('POST', '/assets/from-hash', 'assets:write', async (request, reply) => {
    const body = await readAssetBody(request)
    const [, algorithm, hex] = WIRE_HASH.exec(textOf(body, 'hash')?.trim() ?? '') ?? []
    if (hex === undefined) throw invalidField('hash', 'must be blake3: followed by 64 hexadecimal digits')
    const { fileName, ...said } = toFields({ ...body, tags: [...someTagsOf(body)] }, 'file')
    // Files are known by their blake3 alone: no file is found by another hash.
    if (algorithm?.toLowerCase() === 'sha256')
      throw new ServiceError('blob_not_found', 'there is no content with this hash; send its blake3, or upload it')
    const named = fileNameOf(body, 'name') === undefined ? null : fileName
    const made = await library.add.fromHash({
      accountId: accountOf(request),
      hash: hex.toLowerCase(),
      ...said,
      fileName: named,
    })
    return sendCreated(request, reply, made)
  })

  // Without a body, whatever comes of it: a client asks before it uploads.
  api.apiOnly('HEAD', '/assets/hash/:hash', 'assets:read', async (request, reply) => {
    const [, algorithm, hex] = WIRE_HASH.exec(paramOf(request, 'hash')) ?? []
    if (hex === undefined || algorithm === undefined) return reply.code(400).send()
    const found = algorithm === 'blake3' ? await deps.assets.findByHash(accountOf(request), hex.toLowerCase()) : null
    return reply.code(found === null ? 404 : 200).send()
  })
}

/** What an address leads to, and fetches that go on by themselves. */
export function importAssets(api: Api, { library: { imports }, accountOf, refreshLists, tell }: OperationDeps): void {
  api.apiOnly('GET', '/assets/remote-metadata', 'assets:write', async (request, reply) => {
    const url = queryOf(request).get('url') ?? ''
    if (url === '') throw invalidField('url', 'is missing: name the address of a file')
    const seen = await imports.look(accountOf(request), url)
    if (seen.outcome === 'source_failed') return sendSourceFailed(reply, seen)
    const { sizeBytes, contentType, fileName, finalUrl, problems } = seen.file
    return sendJson(reply, {
      content_length: sizeBytes ?? -1,
      final_url: finalUrl,
      content_type: contentType,
      ...(fileName !== null && { filename: fileName, name: fileName.replace(/\.[^.]+$/, '') }),
      tags: [],
      validation: { is_valid: problems.length === 0, errors: problems, warnings: [] },
    })
  })

  api.apiOnly('POST', '/assets/download', 'assets:write', async (request, reply) => {
    const body = await readAssetBody(request)
    const begun = await imports.begin({ accountId: accountOf(request), ...readSource(body, 'source_url') })
    if (begun.outcome === 'source_failed') return sendSourceFailed(reply, begun)
    if (begun.outcome === 'there') return sendCreated(request, reply, { entry: begun.entry, isNew: false })
    const { id, status } = begun.task
    return sendJson(reply, { task_id: id, status, message: 'the file is being fetched' }, 202)
  })

  api.apiOnly('GET', '/tasks/:id', 'assets:read', async (request, reply) => {
    const task = await findTask(request)
    return sendJson(reply, toTaskView(task))
  })
  api.apiOnly('DELETE', '/tasks/:id', 'assets:write', async (request, reply) => {
    const { id } = await findTask(request)
    const outcome = await imports.cancel(accountOf(request), id)
    if (outcome === 'not_found') throw noTask()
    if (outcome === 'over')
      throw new ServiceError('weights_conflict', 'this task has ended, and can no longer be cancelled')
    return reply.code(204).send()
  })

  // The editor asks for this when it is to look again, and waits for the messages.
  api.apiOnly('POST', '/assets/seed', 'assets:read', async (request, reply) => {
    await readAssetBody(request)
    await refreshLists()
    for (const message of seededMessages()) tell(accountOf(request), message)
    return sendJson(reply, { status: 'completed' })
  })

  async function findTask(request: FastifyRequest): Promise<AssetImport> {
    const id = paramOf(request, 'id')
    const task = isUuid(id) ? await imports.find(accountOf(request), id) : null
    if (task === null) throw noTask()
    return task
  }
}

function noTask(): ServiceError {
  return new ServiceError('not_found', 'there is no task with this id')
}

/** An asset that was there already has left its file unread; its sender waits until all of it is taken. */
async function readRest(file: AsyncIterable<Uint8Array>, maxBytes: number): Promise<void> {
  let bytes = 0
  for await (const chunk of file) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new ServiceError('payload_too_large', `a file may have at most ${maxBytes} bytes`)
  }
}

/** It must stand before the file: what comes with the id of an asset that is there already is not kept. */
function readChosenId({ fields }: MultipartForm): string | null {
  const id = fields.get('id')?.[0] ?? null
  if (id === null || isUuid(id)) return id
  throw invalidField('id', 'must be a UUID in canonical lower-case form')
}

function toFields(body: JsonObject, fileName: string | null): LibraryFields {
  const own = fileName === null ? '' : toBaseName(fileName)
  const name = fileNameOf(body, 'name') ?? own
  if (name === '') throw invalidField('name', 'is missing: the file has no name of its own')
  return { ...readSaid(body), fileName: name }
}

function readSaid(body: JsonObject): Omit<LibraryFields, 'fileName'> {
  return {
    tags: tagsOf(body) ?? [],
    contentType: textOf(body, 'mime_type') ?? null,
    metadata: metadataOf(body) ?? null,
    previewId: previewOf(body) ?? null,
  }
}

function readSource(body: JsonObject, member: 'url' | 'source_url') {
  const url = textOf(body, member)
  if (url === undefined || url === '') throw invalidField(member, 'is missing: name the address of a file')
  return { ...readSaid(body), url, fileName: fileNameOf(body, 'name') ?? null }
}

function sendCreated(request: FastifyRequest, reply: FastifyReply, { entry, isNew }: LibraryCreation): FastifyReply {
  const view = { ...createAssetView(request)(entry), created_new: isNew }
  return sendJsonText(reply, stringifyLosslessJson(view), isNew ? 201 : 200)
}

const FAULTS: Readonly<Record<SourceFailed['fault'], readonly [status: number, code: string]>> = {
  fetch_forbidden: [400, 'UNSUPPORTED_SOURCE'],
  fetch_failed: [422, 'SOURCE_FAILED'],
  not_available: [422, 'SOURCE_FAILED'],
  file_too_large: [413, 'FILE_TOO_LARGE'],
  not_a_file: [415, 'FORMAT_NOT_ALLOWED'],
  unsupported_type: [415, 'FORMAT_NOT_ALLOWED'],
}

/** A source that wants credentials, or has no such file, says so itself. */
function sendSourceFailed(reply: FastifyReply, { fault, status, message }: SourceFailed): FastifyReply {
  const isLocked = status === 401 || status === 403
  const isMissing = status === 404 || status === 410
  const [answered, code] = isLocked
    ? ([403, 'SOURCE_NEEDS_CREDENTIALS'] as const)
    : isMissing
      ? ([404, 'SOURCE_NOT_FOUND'] as const)
      : FAULTS[fault]
  return sendJson(reply, { code, message, error: message }, answered)
}

function toTaskView(task: AssetImport): object {
  const { id, name, url, status, bytesDone, assetId, error, createdAt, changedAt } = task
  const isOver = status !== 'running'
  return {
    ...{
      id,
      task_name: 'task:download_file',
      idempotency_key: id,
      payload: { source_url: url, filename: name },
      status,
    },
    ...{
      create_time: createdAt.toISOString(),
      update_time: changedAt.toISOString(),
      started_at: createdAt.toISOString(),
    },
    ...(isOver && { completed_at: changedAt.toISOString() }),
    ...(error !== null && { error_message: error.message }),
    ...(isOver && {
      result: {
        ...{ success: status === 'completed', filename: name, bytes_downloaded: bytesDone },
        ...(assetId !== null && { asset_id: assetId }),
        ...(error !== null && { error: error.message }),
      },
    }),
  }
}
