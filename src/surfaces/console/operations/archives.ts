/** What jobs made as one archive. */
import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../../../lib/ids.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJobArchive, sendJobsArchive } from '../../kit/jobs/outputs-archive.ts'
import { readParameters } from '../../kit/request-url.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'
import { jobIdOf } from './job.ts'

const MAX_JOBS = 100

export function getJobOutputsZip(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/jobs/:id/outputs.zip`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = deps.callerOf(request)
    const job = await deps.jobs.reader.find(accountId, jobIdOf(request))
    return sendJobArchive(reply, job, deps.console.openContent)
  })
}

export function getOutputsZip(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/outputs.zip`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = deps.callerOf(request)
    const ids = readIds(readParameters(request.raw.url ?? '', ['jobs']).get('jobs') ?? '')
    const jobs: Job[] = []
    for (const id of ids) jobs.push(await deps.jobs.reader.find(accountId, id))
    return sendJobsArchive(reply, { jobs, name: `${jobs.length}-jobs` }, deps.console.openContent)
  })
}

function readIds(text: string): readonly string[] {
  const ids = [...new Set(text.split(','))]
  if (ids.length > MAX_JOBS || !ids.every(isUuid))
    throw new ServiceError('invalid_request', `jobs must be a comma list of at most ${MAX_JOBS} ids of jobs`)
  return ids
}
