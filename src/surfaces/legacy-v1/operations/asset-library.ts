/** The account's files as a library, in the routes of the hosted v1: listed, counted by tag, shown, described, tagged, removed. */
import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type JsonValue, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { hasAtMost } from '../../../../lib/text/cut-text.ts'
import { mustRead } from '../../../domain/assets/asset-content.ts'
import type { LibraryChange } from '../../../domain/assets/library/library.ts'
import {
  type LibraryFilter,
  type LibraryPosition,
  SORTS,
  type TagCount,
} from '../../../domain/assets/library/library-query.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { createCursorSeal } from '../../kit/cursor.ts'
import { metadataOf, previewOf, queryTags, readAssetBody, someTagsOf, tagsOf, textOf } from '../files/asset-body.ts'
import { createAssetView } from '../files/asset-view.ts'
import { createSendFile, readPictureChange } from '../files/send-file.ts'
import {
  type Api,
  type OperationDeps,
  paramOf,
  queryOf,
  readInteger,
  sendJson,
  sendJsonText,
} from '../legacy-operation.ts'

const PAGE = { fallback: 20, max: 500 }
const TAG_PAGE = { fallback: 100, max: 1000 }
// A position is a name of up to 255 characters, and an id.
const MAX_CURSOR = 4096
const MAX_TEXT = 255

export function listAssets(
  api: Api,
  { library: { library }, accountOf, console: { cursorSecret } }: OperationDeps,
): void {
  const { seal, open } = createCursorSeal(cursorSecret, MAX_CURSOR)

  /** Where the page before ended, in a list by the same query. */
  function readCursor(text: string | null, boundTo: string): LibraryPosition | null {
    if (text === null || text === '') return null
    const [bound, key, id] = JSON.parse(open(text) ?? '[]') as [string?, (string | number)?, string?]
    if (bound === boundTo && key !== undefined && id !== undefined) return { key, id }
    throw new ServiceError('invalid_cursor', 'after is not a cursor of this list; begin anew, or repeat its query')
  }

  api.apiOnly('GET', '/assets', 'assets:read', async (request, reply) => {
    const query = queryOf(request)
    const filter = readFilter(query)
    const order = { sort: readSort(query), isRising: readWord(query, 'order', ['desc', 'asc']) === 'asc' }
    const boundTo = createHash('sha256')
      .update(JSON.stringify([filter, order]))
      .digest('base64url')
      .slice(0, 12)
    const page = await library.list(accountOf(request), filter, {
      ...order,
      limit: readLimit(query, PAGE),
      offset: readOffset(query),
      after: readCursor(query.get('after'), boundTo),
    })
    const { next, total } = page
    const toView = createAssetView(request)
    return sendLossless(reply, {
      assets: page.entries.map(toView),
      total,
      has_more: next !== null,
      ...(next !== null && { next_cursor: seal(JSON.stringify([boundTo, next.key, next.id])) }),
    })
  })
}

/** All tags of the account's files, and those of the files that a query finds. */
export function countAssetTags(api: Api, { library: { library }, accountOf }: OperationDeps): void {
  api.apiOnly('GET', '/tags', 'assets:read', async (request, reply) => {
    const query = queryOf(request)
    const order = readWord(query, 'order', ['count_desc', 'name_asc'])
    const prefix = readText(query, 'prefix').toLowerCase()
    const [limit, offset] = [readLimit(query, TAG_PAGE), readOffset(query)]
    const all = await library.countTags(accountOf(request), EVERYTHING)
    const found = all
      .filter(({ name }) => name.toLowerCase().startsWith(prefix))
      .sort(order === 'name_asc' ? byName : byCount)
    const tags = found.slice(offset, offset + limit)
    return sendJson(reply, { tags, total: found.length, has_more: offset + tags.length < found.length })
  })

  api.apiOnly('GET', '/assets/tags/refine', 'assets:read', async (request, reply) => {
    const query = queryOf(request)
    const limit = readLimit(query, TAG_PAGE)
    const found = [...(await library.countTags(accountOf(request), readFilter(query)))].sort(byCount).slice(0, limit)
    return sendJson(reply, { tag_counts: Object.fromEntries(found.map(({ name, count }) => [name, count])) })
  })
}

const byName = (one: TagCount, other: TagCount) => (one.name < other.name ? -1 : 1)
const byCount = (one: TagCount, other: TagCount) => other.count - one.count || byName(one, other)

export function assetById(api: Api, { library: { library }, accountOf }: OperationDeps): void {
  const idOf = (request: FastifyRequest) => [accountOf(request), paramOf(request, 'id')] as const

  api.apiOnly('GET', '/assets/:id', 'assets:read', async (request, reply) =>
    sendLossless(reply, createAssetView(request)(await library.find(...idOf(request)))),
  )
  // The editor reads a whole asset where the hosted service answers with a part of it.
  api.apiOnly('PUT', '/assets/:id', 'assets:write', async (request, reply) => {
    const change = await readChange(request)
    return sendLossless(reply, createAssetView(request)(await library.change(...idOf(request), change)))
  })
  api.apiOnly('DELETE', '/assets/:id', 'assets:write', async (request, reply) => {
    await library.remove(...idOf(request))
    return reply.code(204).send()
  })
  api.apiOnly('POST', '/assets/:id/tags', 'assets:write', async (request, reply) => {
    const tags = someTagsOf(await readAssetBody(request))
    const { entry, added, present } = await library.addTags(...idOf(request), tags)
    return sendJson(reply, { total_tags: entry.tags, added, already_present: present })
  })
  api.apiOnly('DELETE', '/assets/:id/tags', 'assets:write', async (request, reply) => {
    const tags = someTagsOf(await readAssetBody(request))
    const { entry, removed, absent } = await library.removeTags(...idOf(request), tags)
    return sendJson(reply, { total_tags: entry.tags, removed, not_present: absent })
  })
}

/** The bytes, as `/view` sends them: whoever may read jobs may read what they made. */
export function assetContent(api: Api, deps: OperationDeps): void {
  const { library, callerOf } = deps
  const sendFile = createSendFile(deps)
  api.apiOnly('GET', '/assets/:id/content', 'asset', async (request, reply) => {
    const caller = callerOf(request)
    const find = () => library.library.find(caller.accountId, paramOf(request, 'id'))
    await mustRead(caller, find)
    const { hash, sizeBytes, ...entry } = await find()
    if (hash === null || sizeBytes === null)
      throw new ServiceError('output_unavailable', 'only an engine has these weights; they cannot be had from here')
    const query = queryOf(request)
    const isDownload = query.get('disposition') === 'attachment'
    const asset = { ...entry, hash, sizeBytes }
    const { accountId } = caller
    return sendFile(request, reply, {
      accountId,
      asset,
      name: entry.name,
      change: readPictureChange(query),
      isDownload,
    })
  })
}

async function readChange(request: FastifyRequest): Promise<LibraryChange> {
  const body = await readAssetBody(request)
  const [name, contentType, tags] = [textOf(body, 'name'), textOf(body, 'mime_type'), tagsOf(body)]
  const [metadata, previewId] = [metadataOf(body), previewOf(body)]
  const change: LibraryChange = {
    ...(name !== undefined && { name }),
    ...(contentType !== undefined && { contentType }),
    ...(tags !== undefined && { tags }),
    ...(metadata !== undefined && { metadata }),
    ...(previewId !== undefined && { previewId }),
  }
  if (Object.keys(change).length > 0) return change
  throw new ServiceError(
    'invalid_request',
    'nothing to change: send name, tags, mime_type, user_metadata or preview_id',
  )
}

const EVERYTHING: LibraryFilter = {
  ...{ allTags: [], anyTags: [], noTags: [], nameContains: '', metadata: {}, named: null },
}

/** `include_public` changes nothing: no file is public here. */
function readFilter(query: URLSearchParams): LibraryFilter {
  const named = readText(query, 'hash')
  return {
    allTags: queryTags(query, 'include_tags'),
    anyTags: queryTags(query, 'tags_any'),
    noTags: [...queryTags(query, 'exclude_tags'), ...queryTags(query, 'tags_none')],
    nameContains: readText(query, 'name_contains'),
    metadata: readMetadataFilter(query.get('metadata_filter') ?? ''),
    named: named === '' ? null : named,
  }
}

function readMetadataFilter(text: string): LibraryFilter['metadata'] {
  if (text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // Refused below, like JSON that is not an object.
  }
  throw new ServiceError('invalid_metadata_filter', 'metadata_filter must be a JSON object')
}

function readText(query: URLSearchParams, name: string): string {
  const text = query.get(name) ?? ''
  if (hasAtMost(text, MAX_TEXT)) return text
  throw new ServiceError('invalid_request', `${name} must have at most ${MAX_TEXT} characters`)
}

function readSort(query: URLSearchParams): (typeof SORTS)[number] {
  return readWord(query, 'sort', ['created_at', ...SORTS.filter((sort) => sort !== 'created_at')])
}

/** The first word counts when the query has none. */
function readWord<const Word extends string>(
  query: URLSearchParams,
  name: string,
  words: readonly [Word, ...Word[]] | readonly Word[],
): Word {
  const text = query.get(name) || words[0]
  const word = words.find((each) => each === text)
  if (word === undefined) throw new ServiceError('invalid_request', `${name} must be one of ${words.join(', ')}`)
  return word
}

function readLimit(
  query: URLSearchParams,
  { fallback, max }: { readonly fallback: number; readonly max: number },
): number {
  const limit = readInteger(query, 'limit') ?? fallback
  if (limit >= 1 && limit <= max) return limit
  throw new ServiceError('invalid_request', `limit must be a whole number from 1 to ${max}`)
}

function readOffset(query: URLSearchParams): number {
  const offset = readInteger(query, 'offset') ?? 0
  if (offset >= 0) return offset
  throw new ServiceError('invalid_request', 'offset must not be negative')
}

function sendLossless(reply: FastifyReply, value: JsonValue, status = 200): FastifyReply {
  return sendJsonText(reply, stringifyLosslessJson(value), status)
}
