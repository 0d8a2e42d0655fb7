/** What happens to the account's jobs, as server-sent events. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { systemTicker } from '../../../../lib/waiting/uptime.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { needs } from '../../kit/guards/rights.ts'
import { readSession } from '../../kit/guards/session-cookie.ts'
import { toSummaryView } from '../../kit/jobs/summary-view.ts'
import { createSummaryFeed } from '../../kit/streams/summary-feed.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

export function getEvents(app: FastifyInstance, deps: ConsoleDeps): void {
  const { callerOf, console: parts, bus, clock, files, log, streams } = deps
  app.get(`${CONSOLE_API}/events`, { ...needs('jobs:read'), exposeHeadRoute: false }, async (request, reply) => {
    const caller = callerOf(request)
    const { accountId } = caller
    await streams.open(reply.raw, {
      ...toStreamTerms(request, deps),
      caller,
      key: `account ${accountId}`,
      make: () =>
        createSummaryFeed({
          ...{ scope: accountId, bus, log, ticker: systemTicker, toView: toSummaryView },
          summaries: parts.summaries,
          buildId: () => files.current()?.id ?? null,
          now: () => clock.now(),
        }),
    })
    // Only now: a refusal above must still be answered by the framework.
    return reply.hijack()
  })
}

/** The headers of a stream, and how long it may last for a browser session. */
export function toStreamTerms(request: FastifyRequest, { gate, console: parts }: ConsoleDeps) {
  const { authorization, 'x-api-key': key } = request.headers
  const isOwnCredential = authorization !== undefined || key !== undefined
  const text = isOwnCredential ? null : readSession(request.raw, serviceAddressOf(request), 'account')
  return {
    headers: gate.answerHeaders(request.headers.origin, request.id),
    ...(text !== null &&
      gate.hasCredentials && {
        session: { text, isGood: async () => (await parts.signIn.openAccount(text)) !== null },
      }),
  }
}
