/** The weights of all engines, a page at a time. Answered from what this process knows; no engine is asked. */
import type { FastifyInstance } from 'fastify'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import { compareWeights, type ListedWeight } from '../../../domain/engine/weights/weight-files.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { createCursorSeal } from '../../kit/cursor.ts'
import { needs } from '../../kit/guards/rights.ts'
import { readNumber, readParameters } from '../../kit/request-url.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { API_PATH } from '../views/links.ts'

interface ListWeightsDeps {
  readonly contextOf: ContextOf
  /** In order; of the engines that may run jobs of this pool. */
  readonly weightsOf: (pool: string) => readonly ListedWeight[]
  readonly cursorSecret: Uint8Array
}

export const WEIGHTS_PATH = `${API_PATH}/weights`
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
