/** The sockets with the parts of the service that they need, and their figures for the operator. */
import { systemTicker } from '../../../../lib/waiting/uptime.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { SurfaceParts } from '../../kit/parts/surface-parts.ts'
import type { Surface, SurfaceGauge } from '../../kit/surface.ts'
import { deprecationHeaders } from '../deprecation.ts'
import type { JobClients } from '../prompts/job-clients.ts'
import { createSockets, type Sockets, type SocketsOptions } from './sockets.ts'

interface OpenSocketsOptions extends Pick<SocketsOptions, 'answerError' | 'features' | 'logReaders'> {
  readonly jobClients: JobClients
}

/** The members of a surface that the sockets provide. */
type SocketPart = Required<Pick<Surface, 'upgrades' | 'gauges' | 'drain'>>

export function openSockets(
  parts: SurfaceParts,
  { answerError, features, jobClients, logReaders }: OpenSocketsOptions,
): SocketPart {
  const { gate, jobs, bus, clock, log } = parts
  const deprecation = deprecationHeaders('/ws', gate.mountPrefix)
  const sockets = createSockets({
    gate,
    answerError: (error, requestId) => {
      const answer = answerError(error, requestId)
      return { ...answer, headers: { ...answer.headers, ...deprecation } }
    },
    bus,
    clock,
    ticker: systemTicker,
    log,
    countJobs: jobs.countJobs,
    findJob: jobs.reader.find,
    listRunning: (accountId) => listRunning(jobs, accountId),
    listNewest: (accountId) => listNewest(jobs, accountId),
    jobClients,
    // ComfyUI sends the events of a run only to the client that submitted it.
    isPerClient: parts.isOneAccountForAll || parts.isForEditor,
    isOneAtATime: parts.isForEditor,
    logReaders,
    features,
    answerHeaders: Object.entries(deprecation).flat(),
    accountConnections: parts.accountConnections,
  })
  return { upgrades: sockets.upgrades, gauges: gaugesOf(sockets), drain: sockets.close }
}

// As many as one look reads. An account with more has news of the others soon.
const MAX_RUNNING = 320

async function listRunning({ list }: SurfaceParts['jobs'], accountId: string): Promise<readonly string[]> {
  const statuses = ['running', 'canceling'] as const
  const { jobs } = await list(accountId, { statuses, metadata: {}, limit: MAX_RUNNING, cursor: null })
  return jobs.map(({ id }) => id)
}

async function listNewest({ list }: SurfaceParts['jobs'], accountId: string): Promise<readonly Job[]> {
  return (await list(accountId, { statuses: null, metadata: {}, limit: MAX_RUNNING, cursor: null })).jobs
}

function gaugesOf(sockets: Pick<Sockets, 'stats'>): readonly SurfaceGauge[] {
  return [
    { name: 'atelier_sockets', help: 'Open sockets of the Legacy v1 API.', read: () => sockets.stats().open },
    {
      name: 'atelier_socket_previews_dropped',
      help: 'Previews left out for slow readers since the start.',
      read: () => sockets.stats().previewsDropped,
    },
    {
      name: 'atelier_socket_readers_closed',
      help: 'Sockets closed since the start because their reader was too slow or silent.',
      read: () => sockets.stats().readersGivenUp,
    },
  ]
}
