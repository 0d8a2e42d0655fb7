/** The query of the job list, in both spellings that are in use. Its refusals are ComfyUI's own sentences. */
import type { JobFilter } from '../../../domain/jobs/read/recorded-jobs.ts'
import { GROUP_WORDS, type GroupWord, statesOfGroup } from './status-words.ts'

type JobListQuery =
  | { readonly filter: JobFilter; readonly problem: null }
  | { readonly filter: null; readonly problem: string }

const SORTS: Readonly<Record<string, JobFilter['sortBy']>> = {
  created_at: 'created_at',
  create_time: 'created_at',
  execution_duration: 'execution_duration',
  execution_time: 'execution_duration',
}
const OUTPUT_TYPES = ['image', 'video', 'audio', '3d'] as const
// Also what counts when the query names no limit.
const MAX_LIMIT = 1000
const INTEGER = /^\s*[+-]?\d{1,9}\s*$/

class Problem extends Error {}

export function readJobListQuery(query: URLSearchParams): JobListQuery {
  try {
    const limit = readLimit(query)
    const filter: JobFilter = {
      statuses: readStatuses(query.get('status')),
      workflowId: query.get('workflow_id') || null,
      outputType: readOutputType(query.get('output_type')),
      sortBy: readSort(query.get('sort_by')),
      order: readOrder(query.get('sort_order')),
      limit: Math.min(limit ?? MAX_LIMIT, MAX_LIMIT),
      offset: Math.max(0, readInteger(query.get('offset'), 'offset') ?? 0),
    }
    return { filter, problem: null }
  } catch (error) {
    if (error instanceof Problem) return { filter: null, problem: error.message }
    throw error
  }
}

function readStatuses(text: string | null): JobFilter['statuses'] {
  if (text === null || text.trim() === '') return null
  const words = text
    .split(',')
    .map((word) => word.trim().toLowerCase())
    .filter((word) => word !== '')
  const unknown = words.filter((word) => !GROUP_WORDS.includes(word as GroupWord))
  if (unknown.length > 0) {
    const shown = unknown.slice(0, 10).join(', ').slice(0, 200)
    throw new Problem(`Invalid status value(s): ${shown}. Valid values: ${GROUP_WORDS.join(', ')}`)
  }
  return words.flatMap((word) => statesOfGroup(word as GroupWord))
}

function readSort(text: string | null): JobFilter['sortBy'] {
  const key = text?.trim().toLowerCase() || 'created_at'
  if (!Object.hasOwn(SORTS, key)) throw new Problem("sort_by must be 'created_at' or 'execution_duration'")
  return SORTS[key]
}

function readOrder(text: string | null): JobFilter['order'] {
  const order = text?.trim().toLowerCase() || 'desc'
  if (order !== 'asc' && order !== 'desc') throw new Problem("sort_order must be 'asc' or 'desc'")
  return order
}

function readOutputType(text: string | null): JobFilter['outputType'] {
  if (text === null || text === '') return null
  const type = OUTPUT_TYPES.find((one) => one === text)
  if (type === undefined) throw new Problem(`output_type must be one of ${OUTPUT_TYPES.join(', ')}`)
  return type
}

function readLimit(query: URLSearchParams): number | null {
  const limit = readInteger(query.get('limit'), 'limit')
  if (limit !== null && limit <= 0) throw new Problem('limit must be a positive integer')
  return limit
}

function readInteger(text: string | null, name: string): number | null {
  if (text === null || text === '') return null
  if (!INTEGER.test(text)) throw new Problem(`${name} must be an integer`)
  return Number(text)
}
