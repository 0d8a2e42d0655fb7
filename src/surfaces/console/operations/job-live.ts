/** One job as it happens. */
import type { FastifyInstance } from 'fastify'
import { systemTicker } from '../../../../lib/waiting/uptime.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { needs } from '../../kit/guards/rights.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'
import { createJobFeed } from '../streams/job-feed.ts'
import { toStreamTerms } from './events.ts'
import { jobIdOf } from './job.ts'

export function getJobLive(app: FastifyInstance, deps: ConsoleDeps): void {
  const { callerOf, console: parts, log, streams } = deps
  app.get(`${CONSOLE_API}/jobs/:id/live`, { ...needs('jobs:read'), exposeHeadRoute: false }, async (request, reply) => {
    const caller = callerOf(request)
    const { accountId } = caller
    const jobId = jobIdOf(request)
    const { mountPrefix } = serviceAddressOf(request)
    await streams.open(reply.raw, {
      ...toStreamTerms(request, deps),
      caller,
      key: `job ${accountId} ${jobId} ${mountPrefix}`,
      make: () =>
        createJobFeed({
          ...{ accountId, jobId, mountPrefix, log, ticker: systemTicker },
          watchJob: parts.watchJob,
          liveRuns: parts.liveRuns,
        }),
    })
    return reply.hijack()
  })
}
