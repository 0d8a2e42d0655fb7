/** The weights of all engines, a page at a time, answered from what this process knows; and, for the operator, their uploads. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AuditEntry } from '../../../domain/accounts/audit.ts'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import type { WeightManager, WeightUpload } from '../../../domain/engine/weights/manage-weights.ts'
import { compareWeights, type ListedWeight } from '../../../domain/engine/weights/weight-files.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readJsonObject } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { createCursorSeal } from '../../kit/cursor.ts'
import { needs } from '../../kit/guards/routes.ts'
import { idOf, readNumber, readParameters, sendJson } from '../../kit/request.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { API_PATH } from '../views/job-view.ts'

interface ListWeightsDeps {
  readonly contextOf: ContextOf
  /** In order; of the engines that may run jobs of this pool. */
  readonly weightsOf: (pool: string) => readonly ListedWeight[]
  readonly cursorSecret: Uint8Array
}

const WEIGHTS_PATH = `${API_PATH}/weights`
// With the longest name of each.
const FILTERS = { engine: 512, folder: 255, name: 1024 } as const
const LIMIT = { fallback: 200, max: 1000 }
// A name has up to 1024 characters of up to four bytes each.
const MAX_CURSOR = 8192

type Position = Pick<ListedWeight, 'engineId' | 'folder' | 'name'>

export function listWeights(app: FastifyInstance, { contextOf, weightsOf, cursorSecret }: ListWeightsDeps): void {
  const { seal, open } = createCursorSeal(cursorSecret, MAX_CURSOR)

  function readCursor(text: string, filters: string): Position {
    const [boundTo, ...position] = JSON.parse(open(text) ?? '[]') as (string | null)[]
    if (boundTo !== filters)
      throw new ServiceError('invalid_cursor', 'cursor is not one of this list; repeat the filters of its page')
    const [engineId, folder, name] = position
    return { engineId: engineId ?? '', folder: folder ?? null, name: name ?? '' }
  }

  app.get(WEIGHTS_PATH, needs('jobs:read'), (request, reply) => {
    const parameters = readParameters(request.raw.url ?? '', [...Object.keys(FILTERS), 'limit', 'cursor'])
    const limit = readNumber(parameters, 'limit', LIMIT)
    const pool = contextOf(request).pool ?? DEFAULT_POOL
    const [engine, folder, name] = Object.entries(FILTERS).map(([filter, max]) => {
      const value = parameters.get(filter)
      if (value === undefined || [...value].length <= max) return value
      throw new ServiceError('invalid_request', `${filter} must have at most ${max} characters`)
    })
    const filters = JSON.stringify([pool, engine, folder, name])
    const cursor = parameters.get('cursor')
    const after = cursor === undefined ? null : readCursor(cursor, filters)
    const found = weightsOf(pool).filter(
      (weight) =>
        (engine === undefined || weight.engineId === engine) &&
        (folder === undefined || weight.folder === folder) &&
        (name === undefined || weight.name === name) &&
        (after === null || compareWeights(weight, after) > 0),
    )
    const page = found.slice(0, limit)
    const last = page.at(-1)
    const next = last === undefined || found.length === page.length ? null : toPosition(last)
    return sendJson(reply, 200, {
      weights: page.map(toWeightView),
      next_cursor: next === null ? null : seal(JSON.stringify([filters, ...next])),
    })
  })
}

function toPosition({ engineId, folder, name }: Position) {
  return [engineId, folder, name] as const
}

function toWeightView({ engineId, folder, name, sizeBytes, hash, isLoaded }: ListedWeight) {
  return { engine: engineId, folder, name, size_bytes: sizeBytes, hash, loaded: isLoaded }
}

/**
 * How an operator puts files of weights on engines that this process launched, in parts that may be gone on with after any
 * interruption, and removes them. What is changed stands in the audit.
 */
export interface WeightUploadDeps {
  readonly weights: WeightManager
  readonly check: ContractCheck
  readonly note: (request: FastifyRequest, line: Pick<AuditEntry, 'action' | 'subject' | 'details'>) => Promise<void>
}

const UPLOADS_PATH = `${API_PATH}/weights/uploads`
const UPLOAD_ROUTE = `${UPLOADS_PATH}/:id`
const MAX_BODY_BYTES = 65_536
// A disk may take minutes to take the last bytes of a large file in and to read all of them for their hash.
const HOLD_MS = 3_600_000

function beginWeightUpload(app: FastifyInstance, { weights, check, note }: WeightUploadDeps): void {
  app.post(WEIGHTS_PATH, needs('operator'), async (request, reply) => {
    const body = await readJsonObject(request, { maxBytes: MAX_BODY_BYTES })
    const problem = check('WeightUploadRequest', body, 'body')
    if (problem !== null) throw toInvalid(problem)
    const upload = await weights.begin({
      engineId: (body['engine'] as string | undefined) ?? null,
      folder: body['folder'] as string,
      name: body['name'] as string,
      sizeBytes: body['size_bytes'] as number,
      hash: (body['hash'] as string | undefined) ?? null,
    })
    await note(request, {
      action: 'weights.upload',
      subject: subjectOf(upload),
      details: { size_bytes: upload.sizeBytes },
    })
    return sendUpload(reply, 201, upload)
  })
}

/** `body.name must be …` is about `name`; what is wrong with the body as a whole has no field. */
function toInvalid(problem: string): ServiceError {
  const [, field, rest] = /^body\.(\w+) (.*)$/s.exec(problem) ?? []
  return field === undefined || rest === undefined
    ? new ServiceError('invalid_request', problem)
    : invalidField(field, rest)
}

function listWeightUploads(app: FastifyInstance, { weights }: WeightUploadDeps): void {
  app.get(UPLOADS_PATH, needs('operator'), async (request, reply) => {
    readParameters(request.raw.url ?? '', [])
    return sendJson(reply, 200, { uploads: (await weights.list()).map(toUploadView) })
  })
}

function getWeightUpload(app: FastifyInstance, { weights }: WeightUploadDeps): void {
  app.get(UPLOAD_ROUTE, needs('operator'), async (request, reply) =>
    sendUpload(reply, 200, await weights.find(idOf(request))),
  )
}

function sendWeightPart(app: FastifyInstance, { weights, note }: WeightUploadDeps): void {
  app.patch(UPLOAD_ROUTE, needs('operator'), async (request, reply) => {
    const offset = request.headers['upload-offset']
    if (typeof offset !== 'string' || !/^\d{1,16}$/.test(offset))
      throw new ServiceError('invalid_request', 'the header Upload-Offset must say where these bytes begin, such as 0')
    request.raw.socket.setTimeout(HOLD_MS)
    const upload = await weights.append(idOf(request), { offsetBytes: Number(offset), source: bodyOf(request) })
    if (upload.expiresAt === null)
      await note(request, { action: 'weights.add', subject: subjectOf(upload), details: { hash: upload.hash } })
    return sendUpload(reply, 200, upload)
  })
}

/** A refusal in the middle must reach a sender that is still sending, so the connection stays. */
async function* bodyOf({ raw }: FastifyRequest): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of raw.iterator({ destroyOnReturn: false })) yield chunk as Buffer
  } catch (error) {
    const message = 'the body broke off; ask how far the upload is, and go on from there'
    throw new ServiceError('invalid_request', message, { cause: error })
  }
}

function abandonWeightUpload(app: FastifyInstance, { weights }: WeightUploadDeps): void {
  app.delete(UPLOAD_ROUTE, needs('operator'), async (request, reply) => {
    await weights.abandon(idOf(request))
    return reply.code(204).send()
  })
}

const NAMED = ['engine', 'folder', 'name'] as const

function deleteWeight(app: FastifyInstance, { weights, note }: WeightUploadDeps): void {
  app.delete(WEIGHTS_PATH, needs('operator'), async (request, reply) => {
    const parameters = readParameters(request.raw.url ?? '', [...NAMED, 'force'])
    const [engineId, folder, name] = NAMED.map((parameter) => {
      const value = parameters.get(parameter) ?? ''
      if (value !== '') return value
      throw new ServiceError('invalid_request', `${parameter} must be given`)
    }) as [string, string, string]
    const force = parameters.get('force') ?? 'false'
    if (force !== 'true' && force !== 'false') throw new ServiceError('invalid_request', 'force must be true or false')
    await weights.remove(engineId, { folder, name }, { isForced: force === 'true' })
    await note(request, { action: 'weights.remove', subject: subjectOf({ engineId, folder, name }), details: {} })
    return reply.code(204).send()
  })
}

export const WEIGHT_UPLOADS = [
  ...[beginWeightUpload, listWeightUploads, getWeightUpload],
  ...[sendWeightPart, abandonWeightUpload, deleteWeight],
]

function subjectOf({ engineId, folder, name }: Pick<WeightUpload, 'engineId' | 'folder' | 'name'>): string {
  return `${engineId}: ${folder}/${name}`
}

function sendUpload(reply: FastifyReply, status: number, upload: WeightUpload): FastifyReply {
  reply.header('Upload-Offset', String(upload.offsetBytes))
  return sendJson(reply, status, toUploadView(upload))
}

function toUploadView(upload: WeightUpload) {
  return {
    id: upload.id,
    engine: upload.engineId,
    folder: upload.folder,
    name: upload.name,
    size_bytes: upload.sizeBytes,
    offset_bytes: upload.offsetBytes,
    hash: upload.hash,
    status: upload.expiresAt === null ? 'complete' : 'open',
    expires_at: upload.expiresAt?.toISOString() ?? null,
  }
}
