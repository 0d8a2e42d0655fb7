/** Where usage events are sent. */
import type { FastifyInstance } from 'fastify'
import { toSecretText } from '../../../../lib/standard-webhooks.ts'
import type { UsageExport, UsageExportState } from '../../../domain/credits/export-usage.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { needs } from '../../kit/guards/routes.ts'
import { sendJson } from '../../kit/request.ts'
import { ADMIN_PATH, type AdminKit } from '../admin-operation.ts'

interface UsageExportDeps {
  readonly kit: AdminKit
  readonly usageExport: UsageExport
}

const PATH = `${ADMIN_PATH}/usage-export`

export function getUsageExport(app: FastifyInstance, { usageExport }: UsageExportDeps): void {
  app.get(PATH, needs('operator'), async (_request, reply) => {
    const state = await usageExport.find()
    if (state === null) throw new ServiceError('not_found', 'usage events are not sent anywhere')
    return sendJson(reply, 200, toView(state))
  })
}

interface NewUsageExport {
  readonly url: string
  readonly from?: 'beginning' | 'now'
}

export function putUsageExport(app: FastifyInstance, { kit, usageExport }: UsageExportDeps): void {
  app.put(PATH, needs('operator'), async (request, reply) => {
    const { url, from = null } = await kit.readBody<NewUsageExport>(request, 'NewUsageExport')
    const { state, secret } = await usageExport.put(url, from)
    await kit.note(request, { action: 'usage_export.put', subject: 'usage-export', details: { url, from } })
    return sendJson(reply, 200, { ...toView(state), secret: toSecretText(secret) })
  })
}

export function deleteUsageExport(app: FastifyInstance, { kit, usageExport }: UsageExportDeps): void {
  app.delete(PATH, needs('operator'), async (request, reply) => {
    await usageExport.remove()
    await kit.note(request, { action: 'usage_export.remove', subject: 'usage-export', details: {} })
    return reply.code(204).send()
  })
}

function toView({ url, after, since, sentAt, failure }: UsageExportState) {
  return { url, sent_up_to: after, since, sent_at: sentAt, failure }
}
