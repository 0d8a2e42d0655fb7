/**
 * One thing for many jobs of any account, in the hands of an operator. That it was asked for has its line in the audit log, and so has
 * every cancel and every change that comes of it; a rerun is a job of its account, which pays for it.
 */
import type { FastifyInstance } from 'fastify'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import type { BulkAction } from '../../../domain/jobs/bulk/bulk-action.ts'
import type { BulkActions } from '../../../domain/jobs/bulk/manage-bulk.ts'
import { needs } from '../../kit/guards/routes.ts'
import {
  ITEM_PARAMETERS,
  readBulkWish,
  readItemQuery,
  toBulkItemView,
  toBulkView,
  toPreviewView,
} from '../../kit/jobs/bulk-view.ts'
import { idOf, sendJson } from '../../kit/request.ts'
import { ADMIN_PATH, type AdminKit, readParameters } from '../admin-operation.ts'

export interface BulkOperationDeps {
  readonly kit: AdminKit
  readonly bulk: BulkActions
}

const BULK = `${ADMIN_PATH}/bulk-actions`
const BULK_ACTION = `${BULK}/:id`

const asItIs = (code: string) => code
const toView = (action: BulkAction) => toBulkView(action, BULK, asItIs)

function createBulkAction(app: FastifyInstance, { kit, bulk }: BulkOperationDeps): void {
  app.post(BULK, needs('operator'), async (request, reply) => {
    const body = await kit.readBody<JsonObject>(request, 'BulkActionRequest')
    const account = (body['account'] ?? null) as string | null
    const wish = { ...readBulkWish(body), within: account }
    if (wish.isDry) return sendJson(reply, 200, toPreviewView(wish.kind, await bulk.preview(null, wish)))
    const { kind, asked } = wish
    const action = await bulk.create({ owner: null, keyId: null, actor: kit.actorOf(request) }, wish, {
      idempotencyKey: null,
      through: ({ id, total }) => {
        const details = { action: kind, account_id: account, ...asked, total }
        return kit.audited(request, { action: 'bulk.create', subject: id, details }).bulkActions
      },
    })
    return sendJson(reply, 201, toView(action))
  })
}

function listBulkActions(app: FastifyInstance, { bulk }: BulkOperationDeps): void {
  app.get(BULK, needs('operator'), async (request, reply) => {
    readParameters(request, [])
    return sendJson(reply, 200, { bulk_actions: (await bulk.list(null)).map(toView) })
  })
}

function getBulkAction(app: FastifyInstance, { bulk }: BulkOperationDeps): void {
  app.get(BULK_ACTION, needs('operator'), async (request, reply) =>
    sendJson(reply, 200, toView(await bulk.find(null, idOf(request)))),
  )
}

function stopBulkAction(app: FastifyInstance, { kit, bulk }: BulkOperationDeps): void {
  app.post(`${BULK_ACTION}/stop`, needs('operator'), async (request, reply) => {
    const id = idOf(request)
    const through = kit.audited(request, { action: 'bulk.stop', subject: id, details: {} })
    return sendJson(reply, 200, toView(await bulk.stop(null, id, through.bulkActions)))
  })
}

function listBulkActionJobs(app: FastifyInstance, { bulk }: BulkOperationDeps): void {
  app.get(`${BULK_ACTION}/jobs`, needs('operator'), async (request, reply) => {
    const query = readItemQuery(readParameters(request, ITEM_PARAMETERS))
    const { items, next } = await bulk.listItems(null, idOf(request), query)
    const jobs = items.map((item) => ({ ...toBulkItemView(item, asItIs), account_id: item.accountId }))
    return sendJson(reply, 200, { jobs, next })
  })
}

export const BULK_OPERATIONS = [
  ...[listBulkActions, createBulkAction, getBulkAction, stopBulkAction],
  ...[listBulkActionJobs],
]
