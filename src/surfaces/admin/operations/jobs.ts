import type { FastifyInstance } from 'fastify'
import { ServiceError } from '../../../domain/errors.ts'
import type { CancelJob } from '../../../domain/jobs/end/cancel-job.ts'
import type { JobStore } from '../../../domain/jobs/job-store.ts'
import { sendJson } from '../../kit/send-json.ts'
import { ADMIN_PATH, type AdminKit, idOf } from '../admin-operation.ts'

interface CancelJobDeps {
  readonly kit: AdminKit
  readonly jobs: Pick<JobStore, 'findOwner'>
  readonly cancel: CancelJob
}

/** Cancels a job of any account, as its owner could. Only a running service has it, because its workers must be told. */
export function cancelJob(app: FastifyInstance, { kit, jobs, cancel }: CancelJobDeps): void {
  app.post(`${ADMIN_PATH}/jobs/:id/cancel`, async (request, reply) => {
    const id = idOf(request)
    const accountId = await jobs.findOwner(id)
    if (accountId === null) throw new ServiceError('not_found', 'there is no job with this id')
    const through = kit.audited(request, { action: 'job.cancel', subject: id, details: { account_id: accountId } })
    const { status } = await cancel(accountId, id, { through: through.cancels })
    return sendJson(reply, 200, { id, account_id: accountId, status })
  })
}
