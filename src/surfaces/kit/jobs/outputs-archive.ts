/**
 * What jobs made as one archive. It is read file by file while it is sent. Bytes that are gone break the answer off: an archive must
 * not be whole without them.
 */
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { type ZipFile, zipStream } from '../../../../lib/files/zip-stream.ts'
import type { OpenContent } from '../../../domain/assets/asset-content.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Job } from '../../../domain/jobs/job.ts'

const MAX_FILES = 10_000

export function sendJobArchive(reply: FastifyReply, job: Job, openContent: OpenContent): FastifyReply {
  if (job.outputs.length === 0) throw new ServiceError('not_found', 'this job has no outputs')
  return sendArchive(reply, `job-${job.id}`, toFiles(openContent, job, ''))
}

/** A folder for each job, named by its number and its id's beginning, so that the order of the list is that of the folders. */
export function sendJobsArchive(
  reply: FastifyReply,
  { jobs, name }: { readonly jobs: readonly Job[]; readonly name: string },
  openContent: OpenContent,
): FastifyReply {
  const width = String(jobs.length).length
  const files = jobs.flatMap((job, index) =>
    toFiles(openContent, job, `${String(index + 1).padStart(width, '0')}-${job.id.slice(0, 8)}/`),
  )
  if (files.length === 0) throw new ServiceError('not_found', 'these jobs have no outputs')
  if (files.length > MAX_FILES) throw new ServiceError('invalid_request', `an archive has at most ${MAX_FILES} files`)
  return sendArchive(reply, name, files)
}

function toFiles(openContent: OpenContent, job: Job, folder: string): readonly ZipFile[] {
  const names = toArchiveNames(job.outputs.map(({ name }) => name))
  return job.outputs.map(({ assetId, sizeBytes }, index) => ({
    ...{ name: folder + (names[index] ?? assetId), sizeBytes, modifiedAt: job.completedAt ?? job.createdAt },
    open: async () => (await openContent(job.accountId, assetId)).open(),
  }))
}

function sendArchive(reply: FastifyReply, name: string, files: readonly ZipFile[]): FastifyReply {
  reply.headers({
    'content-type': 'application/zip',
    'content-disposition': `attachment; filename="${name}.zip"`,
    'cache-control': 'no-store',
  })
  // Nothing is opened for one who only asks whether there is an archive.
  if (reply.request.method === 'HEAD') return reply.send()
  return reply.send(Readable.from(zipStream(files), { objectMode: false }))
}

/** Names for the files of an archive: none leads out of the folder that it is unpacked in, and none is there twice. */
const MAX_LENGTH = 150
// Control characters, separators, and what some file systems give a meaning.
const UNSAFE = /[\p{Cc}\p{Cf}/\\:*?"<>|]+/gu
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i

export function toArchiveNames(names: readonly string[]): string[] {
  /** By name in small letters: the number to try next. */
  const taken = new Map<string, number>()
  return names.map((name) => {
    const safe = toSafeName(name)
    const [, stem = safe, extension = ''] = /^(.+?)(\.[^.]{1,16})?$/su.exec(safe) ?? []
    let unique = safe
    let number = taken.get(safe.toLowerCase()) ?? 2
    for (; taken.has(unique.toLowerCase()); number += 1) unique = `${stem} (${number})${extension}`
    taken.set(safe.toLowerCase(), number)
    if (unique !== safe) taken.set(unique.toLowerCase(), 2)
    return unique
  })
}

function toSafeName(name: string): string {
  const plain = name
    .toWellFormed()
    .replaceAll(UNSAFE, '_')
    .replace(/^[.\s]+/, '')
    .replace(/[.\s]+$/, '')
  const kept = plain.length > MAX_LENGTH ? plain.slice(-MAX_LENGTH) : plain
  if (kept === '') return 'file'
  return RESERVED.test(kept) ? `_${kept}` : kept
}
