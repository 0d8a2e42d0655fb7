/** What helps to find jobs: words that go on with what is typed, and filters that were saved under a name. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isJsonObject } from '../../../../lib/json/lossless-json.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { isMetadataKey } from '../../../domain/jobs/submit/job-labels.ts'
import { type JobSummary, NO_FILTER, type SummaryFilter } from '../../../domain/jobs/summaries/summary-store.ts'
import { JOB_STATUSES } from '../../../domain/jobs/transitions.ts'
import { readJsonBody } from '../../kit/bodies/json-body.ts'
import { needs } from '../../kit/guards/routes.ts'
import { readParameters, sendJson } from '../../kit/request.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

const MAX_TEXT = 200
const MOST = 12
const TIMES = ['1h', '24h', '7d', 'today']
const WORDS = ['status', 'code', 'class', 'weights', 'engine', 'pool', 'since', 'until']
const LOOKED_AT = 200

/** What the newest jobs have, each once. */
const RECENT: Readonly<
  Record<string, { readonly of: (job: JobSummary) => string | null; readonly filter: Partial<SummaryFilter> }>
> = {
  code: { of: ({ error }) => error?.code ?? null, filter: { statuses: ['failed'] } },
  engine: { of: ({ engineId }) => engineId, filter: {} },
  pool: { of: ({ pool }) => pool, filter: {} },
}

/** Whole words, such as `scene=` or `scene=4321`, that begin with the last one of the text. */
export function getSuggestions(app: FastifyInstance, deps: ConsoleDeps): void {
  const { callerOf, console: parts } = deps
  app.get(`${CONSOLE_API}/suggestions`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const typed = readParameters(request.raw.url ?? '', ['text']).get('text') ?? ''
    if (typed.length > MAX_TEXT || typed.includes('\0'))
      throw invalidField('text', `must have at most ${MAX_TEXT} characters`)
    const at = typed.indexOf('=')
    if (at === -1) {
      const own = await parts.summaries.suggest(accountId, { of: 'keys', text: typed }, MOST)
      const words = [...WORDS.filter((word) => word.startsWith(typed)), ...own.filter(isMetadataKey)]
      return sendJson(reply, 200, { suggestions: words.slice(0, MOST).map((word) => `${word}=`) })
    }
    const [key, text] = [typed.slice(0, at), typed.slice(at + 1)]
    // What has spaces is no single word of a search.
    const values = (await suggestValues(deps, accountId, key, text)).filter((value) => !/\s/.test(value))
    return sendJson(reply, 200, { suggestions: values.slice(0, MOST).map((value) => `${key}=${value}`) })
  })
}

async function suggestValues(
  { console: { summaries }, clock }: ConsoleDeps,
  accountId: string,
  key: string,
  text: string,
): Promise<readonly string[]> {
  const fixed = key === 'status' ? JOB_STATUSES : key === 'since' || key === 'until' ? TIMES : null
  if (fixed !== null) return fixed.filter((value) => value.startsWith(text))
  if (key === 'class') return summaries.suggest(accountId, { of: 'classes', text }, MOST)
  if (key === 'weights') return summaries.suggest(accountId, { of: 'weights', text }, MOST)
  const recent = Object.hasOwn(RECENT, key) ? RECENT[key] : undefined
  if (recent === undefined)
    return isMetadataKey(key) ? summaries.suggest(accountId, { of: 'values', key, text }, MOST) : []
  const { summaries: jobs } = await summaries.search(accountId, {
    ...{ filter: { ...NO_FILTER, ...recent.filter }, order: 'newest', limit: LOOKED_AT, after: null, now: clock.now() },
  })
  return [...new Set(jobs.flatMap((job) => recent.of(job) ?? []))].filter((value) => value.startsWith(text))
}

// Filters that were saved. Each is a small file among the account's own, so that tabs that save at the same time lose nothing.

const FOLDER = 'console/views/'
const ENDING = '.json'
const MAX_VIEWS = 50
const MAX_QUERY = 2000
const MAX_BODY_BYTES = 16_384
const NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._()-]{0,79}$/u

function pathOf(request: FastifyRequest): string {
  const { name } = request.params as { readonly name: string }
  if (!NAME.test(name) || name.includes('..'))
    throw new ServiceError(
      'invalid_request',
      'a view is named by letters, digits, spaces and . _ ( ) -, at most 80 of them',
    )
  return `${FOLDER}${name}${ENDING}`
}

async function listPaths({ userFiles }: ConsoleDeps, accountId: string): Promise<readonly string[]> {
  const files = await userFiles.list(accountId)
  return files.map(({ path }) => path).filter((path) => path.startsWith(FOLDER) && path.endsWith(ENDING))
}

export function listViews(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/views`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = deps.callerOf(request)
    const paths = (await listPaths(deps, accountId)).slice(0, MAX_VIEWS)
    const views = await Promise.all(
      paths.map(async (path) => {
        const bytes = await deps.userFiles.read(accountId, path)
        const query = bytes === null ? null : readQuery(Buffer.from(bytes).toString())
        return query === null ? [] : [{ name: path.slice(FOLDER.length, -ENDING.length), query }]
      }),
    )
    return sendJson(reply, 200, { views: views.flat() })
  })
}

/** Other clients may have put anything there. */
function readQuery(text: string): string | null {
  try {
    const { query } = JSON.parse(text) as { readonly query?: unknown }
    return typeof query === 'string' && query.length <= MAX_QUERY ? query : null
  } catch {
    return null
  }
}

export function putView(app: FastifyInstance, deps: ConsoleDeps): void {
  app.put(`${CONSOLE_API}/views/:name`, needs('jobs:write'), async (request, reply) => {
    const { accountId } = deps.callerOf(request)
    const path = pathOf(request)
    const body = await readJsonBody(request, { maxBytes: MAX_BODY_BYTES })
    const query = isJsonObject(body) ? body['query'] : null
    if (typeof query !== 'string' || query.length > MAX_QUERY)
      throw invalidField('query', `must be the query of a list of jobs, of at most ${MAX_QUERY} characters`)
    const known = await listPaths(deps, accountId)
    if (!known.includes(path) && known.length >= MAX_VIEWS)
      throw invalidField('name', `cannot be added: an account has at most ${MAX_VIEWS} views; remove one first`)
    const bytes = Buffer.from(JSON.stringify({ query }))
    const put = await deps.userFiles.put(accountId, path, { bytes, overwrite: true })
    if (put.outcome !== 'stored') throw new ServiceError('storage_full', 'there is no room for another view')
    return reply.code(204).send()
  })
}

export function deleteView(app: FastifyInstance, { callerOf, userFiles }: ConsoleDeps): void {
  app.delete(`${CONSOLE_API}/views/:name`, needs('jobs:write'), async (request, reply) => {
    if (!(await userFiles.remove(callerOf(request).accountId, pathOf(request))))
      throw new ServiceError('not_found', 'there is no view of this name')
    return reply.code(204).send()
  })
}
