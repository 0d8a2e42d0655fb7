/** The files that a job made, with where each of them came from. */

import { ServiceError } from '../../../domain/errors.ts'
import type { RunRecord } from '../../../domain/jobs/run/run-record.ts'
import { placeOf } from '../../kit/guard-hooks.ts'
import { readInteger } from '../history-range.ts'
import { type Api, type OperationDeps, paramOf, queryOf, sendJson } from '../operation.ts'

const MAX_LIMIT = 500
const DEFAULT_LIMIT = 20

export function getJobAssets(api: Api, deps: OperationDeps): void {
  api.api('GET', '/jobs/:id/assets', async (request, reply) => {
    const query = queryOf(request)
    const limit = Math.min(MAX_LIMIT, readInteger(query, 'limit') ?? DEFAULT_LIMIT)
    if (limit < 1) throw new ServiceError('invalid_request', 'limit must be a positive integer')
    const offset = Math.max(0, readInteger(query, 'offset') ?? 0)
    const found = await deps.jobs.records.find(deps.accountOf(request), paramOf(request, 'id'))
    if (found === null) return sendJson(reply, { error: 'Job not found' }, 404)
    const { job, run } = found
    const { origin, mountPrefix } = placeOf(request)
    const places = placesOf(run)
    const assets = job.outputs.slice(offset, offset + limit).map((output) => {
      const named = new URLSearchParams({ filename: output.name, type: 'output' })
      return {
        id: output.assetId,
        name: output.name,
        hash: `blake3:${output.hash}`,
        size: output.sizeBytes,
        mime_type: output.contentType,
        preview_url: `${origin}${mountPrefix}/api/view?${named}`,
        created_at: (job.completedAt ?? job.startedAt ?? job.createdAt).toISOString(),
        node_id: output.nodeId,
        ...(places.get(`${output.nodeId}/${output.name}`) ?? { output_key: null, output_index: null }),
      }
    })
    const pagination = {
      offset,
      limit,
      total: job.outputs.length,
      has_more: offset + assets.length < job.outputs.length,
    }
    return sendJson(reply, { job_id: job.id, assets, pagination })
  })
}

function placesOf(run: RunRecord | null): ReadonlyMap<string, { output_key: string; output_index: number }> {
  const places = new Map<string, { output_key: string; output_index: number }>()
  for (const { displayNodeId, output } of run?.nodes ?? []) {
    for (const [key, items] of Object.entries(output)) {
      for (const [index, item] of items.entries()) {
        if (typeof item !== 'object' || item === null || !('filename' in item)) continue
        places.set(`${displayNodeId}/${String(item.filename)}`, { output_key: key, output_index: index })
      }
    }
  }
  return places
}
