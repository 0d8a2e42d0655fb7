/** What happens in the service as a whole: as it happens, and over the last day. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { systemTicker } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { writeUsd } from '../../../../lib/text/usd.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { EventBus } from '../../../domain/events/event-bus.ts'
import {
  SERIES_NAMES,
  SERIES_STEP_MS,
  type SeriesName,
  type ServiceSeries,
} from '../../../domain/jobs/read/service-series.ts'
import type { SummaryStore } from '../../../domain/jobs/summaries/summary-store.ts'
import { needs } from '../../kit/guards/routes.ts'
import { readNumber, sendJson } from '../../kit/request.ts'
import type { SharedStreams, StreamSession } from '../../kit/streams/shared-streams.ts'
import { SummaryFeed } from '../../kit/streams/summary-feed.ts'
import { ADMIN_PATH, type AdminKit, readParameters } from '../admin-operation.ts'
import { toOwnedView } from './jobs.ts'

export interface WatchDeps {
  readonly kit: AdminKit
  readonly bus: Pick<EventBus<never>, 'hasOthers' | 'onChanged' | 'onDirectory' | 'onGap'>
  readonly summaries: Pick<SummaryStore, 'search' | 'findMany' | 'count'>
  readonly series: Pick<ServiceSeries, 'read'>
  readonly streams: SharedStreams
  /** The session that a request came with; left out: it came with a token. */
  readonly sessionOf: (request: FastifyRequest) => StreamSession | undefined
  /** name, value, name, value. */
  readonly headersOf: (request: FastifyRequest) => readonly string[]
  readonly log: Log
}

/** All operators count as one account here: their streams share one bound. */
const OPERATOR = { accountId: 'operator', scopes: null, endpoints: null, keyId: null }

export function getEvents(app: FastifyInstance, deps: WatchDeps): void {
  const { kit, bus, summaries, streams, sessionOf, headersOf, log } = deps
  app.get(`${ADMIN_PATH}/events`, { ...needs('operator'), exposeHeadRoute: false }, async (request, reply) => {
    const session = sessionOf(request)
    await streams.open(reply.raw, {
      caller: OPERATOR,
      headers: headersOf(request),
      ...(session !== undefined && { session }),
      key: 'service',
      make: () =>
        new SummaryFeed({
          ...{ scope: null, bus, summaries, log, ticker: systemTicker, toView: toOwnedView },
          buildId: () => null,
          now: () => kit.clock.now(),
        }),
    })
    // Only now: a refusal above must still be answered by the framework.
    return reply.hijack()
  })
}

const STEP_SECONDS = SERIES_STEP_MS / 1000
const MAX_STEP_SECONDS = 3600
const MAX_POINTS = 1000

/** At most a thousand points of each, the newest last. */
export function getSeries(app: FastifyInstance, { kit, series }: WatchDeps): void {
  app.get(`${ADMIN_PATH}/series`, needs('operator'), (request, reply) => {
    const parameters = readParameters(request, ['names', 'step', 'points'])
    const names = readNames(parameters.get('names'))
    const step = readNumber(parameters, 'step', { fallback: 60, max: MAX_STEP_SECONDS })
    if (step % STEP_SECONDS !== 0)
      throw new ServiceError('invalid_request', `step must be a multiple of ${STEP_SECONDS} seconds`)
    const points = readNumber(parameters, 'points', { fallback: 60, max: MAX_POINTS })
    const { from, values } = series.read({ names, stepMs: step * 1000, points })
    return sendJson(reply, 200, {
      from: from.toISOString(),
      now: kit.clock.now().toISOString(),
      step_seconds: step,
      series: names.map((name) => ({ name, values: (values[name] ?? []).map((value) => toValue(name, value)) })),
    })
  })
}

/** Money is text, as everywhere. */
function toValue(name: SeriesName, value: number | null): number | string | null {
  return name === 'spend' && value !== null ? writeUsd(value) : value
}

function readNames(text: string | undefined): readonly SeriesName[] {
  if (text === undefined) return SERIES_NAMES
  const asked = new Set(text.split(','))
  const known = SERIES_NAMES.filter((name) => asked.has(name))
  if (known.length === asked.size) return known
  throw new ServiceError('invalid_request', `names must be a comma list of ${SERIES_NAMES.join(', ')}`)
}
