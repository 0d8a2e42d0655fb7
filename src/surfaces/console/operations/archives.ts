/**
 * What jobs made as one archive. It is read file by file while it is sent. Bytes that are gone break the answer off: an archive must
 * not be whole without them.
 */
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { type ZipFile, zipStream } from '../../../../lib/files/zip-stream.ts'
import { isUuid } from '../../../../lib/ids.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { readParameters } from '../../kit/request-url.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'
import { toArchiveNames } from '../views/archive-names.ts'
import { jobIdOf } from './job.ts'

const MAX_JOBS = 100
const MAX_FILES = 10_000

export function getJobOutputsZip(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/jobs/:id/outputs.zip`, async (request, reply) => {
    const { accountId } = deps.callerOf(request)
    const job = await deps.jobs.reader.find(accountId, jobIdOf(request))
    if (job.outputs.length === 0) throw new ServiceError('not_found', 'this job has no outputs')
    return sendArchive(reply, `job-${job.id}`, toFiles(deps, accountId, job, ''))
  })
}

/** A folder for each job, named by its number and its id's beginning, so that the order of the list is that of the folders. */
export function getOutputsZip(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get(`${CONSOLE_API}/outputs.zip`, async (request, reply) => {
    const { accountId } = deps.callerOf(request)
    const ids = readIds(readParameters(request.raw.url ?? '', ['jobs']).get('jobs') ?? '')
    const jobs: Job[] = []
    for (const id of ids) jobs.push(await deps.jobs.reader.find(accountId, id))
    const width = String(jobs.length).length
    const files = jobs.flatMap((job, index) =>
      toFiles(deps, accountId, job, `${String(index + 1).padStart(width, '0')}-${job.id.slice(0, 8)}/`),
    )
    if (files.length === 0) throw new ServiceError('not_found', 'these jobs have no outputs')
    if (files.length > MAX_FILES) throw new ServiceError('invalid_request', `an archive has at most ${MAX_FILES} files`)
    return sendArchive(reply, `${jobs.length}-jobs`, files)
  })
}

function readIds(text: string): readonly string[] {
  const ids = [...new Set(text.split(','))]
  if (ids.length > MAX_JOBS || !ids.every(isUuid))
    throw new ServiceError('invalid_request', `jobs must be a comma list of at most ${MAX_JOBS} ids of jobs`)
  return ids
}

function toFiles({ console: parts }: ConsoleDeps, accountId: string, job: Job, folder: string): readonly ZipFile[] {
  const names = toArchiveNames(job.outputs.map(({ name }) => name))
  return job.outputs.map(({ assetId, sizeBytes }, index) => ({
    ...{ name: folder + (names[index] ?? assetId), sizeBytes, modifiedAt: job.completedAt ?? job.createdAt },
    open: async () => (await parts.openContent(accountId, assetId)).open(),
  }))
}

function sendArchive(reply: FastifyReply, name: string, files: readonly ZipFile[]): FastifyReply {
  reply.headers({
    'content-type': 'application/zip',
    'content-disposition': `attachment; filename="${name}.zip"`,
    'cache-control': 'no-store',
  })
  return reply.send(Readable.from(zipStream(files), { objectMode: false }))
}
