/** A page of the catalogue, in the order of ids. */
import type { FastifyInstance } from 'fastify'
import type { Access } from '../../../domain/models/access/model-access.ts'
import { toEtag } from '../../kit/etag.ts'
import type { ListCursors } from '../list-cursor.ts'
import { readListQuery } from '../list-query.ts'
import { toModelEntry } from '../model-view.ts'
import type { OperationKit } from '../operation.ts'
import { MODELS_PATH } from '../paths.ts'
import { sendCached } from '../send-cached.ts'

export interface ListModelsDeps {
  readonly kit: OperationKit
  readonly access: Pick<Access, 'catalogFor'>
  readonly cursors: ListCursors
}

export function listModels(app: FastifyInstance, { kit, access, cursors }: ListModelsDeps): void {
  app.get(MODELS_PATH, (request, reply) => {
    const { caller } = kit.contextOf(request)
    const { catalog, isVisible } = access.catalogFor(caller)
    const { limit, cursor } = readListQuery(request.raw.url ?? '')
    const after = cursor === null ? null : cursors.read(cursor)
    const { models, hasMore } = catalog.page(after, limit, isVisible)
    const data = models.map(toModelEntry)
    // The tag is over what the page shows: a cursor is made anew for every answer.
    const page = { data, has_more: hasMore, limit }
    const last = models.at(-1)
    const next = hasMore && last !== undefined ? { next_cursor: cursors.encode(last.id) } : {}
    return sendCached(request, reply, JSON.stringify({ ...page, ...next }), toEtag(JSON.stringify(page)))
  })
}
