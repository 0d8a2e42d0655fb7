/** What jobs made: a gallery over all of them, and small pictures. */
import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import { createSemaphore } from '../../../../lib/waiting/semaphore.ts'
import { mustRead } from '../../../domain/assets/asset-content.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Output, OutputType } from '../../../domain/jobs/job.ts'
import {
  type JobSummary,
  NO_FILTER,
  type OutputFilter,
  type SummaryPage,
} from '../../../domain/jobs/summaries/summary-store.ts'
import { matchesEtag, quoteDigest } from '../../kit/content/send-content.ts'
import { createTimeCursors } from '../../kit/cursor.ts'
import { needs, serviceAddressOf } from '../../kit/guards/routes.ts'
import { readFields, readFilter, readLimit } from '../../kit/jobs/job-pages.ts'
import { toContentPath } from '../../kit/jobs/job-view.ts'
import { sendJson } from '../../kit/request.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

const TYPES: readonly (OutputType | 'any')[] = ['image', 'video', 'audio', 'text', 'file', 'latent', 'any']
const MAX_NODE_LENGTH = 1024
// Outputs of the jobs that are read together; a single job may have more.
const READ_OUTPUTS = 500

/** A page ends behind a job, so it may have a few more than `limit`. */
export function listOutputs(app: FastifyInstance, { callerOf, console: parts, clock }: ConsoleDeps): void {
  const cursors = createTimeCursors(parts.cursorSecret)
  app.get(`${CONSOLE_API}/outputs`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const fields = readFields(request.raw.url ?? '')
    const { since, until } = readFilter(fields)
    const wanted = readWanted(fields)
    const limit = readLimit(fields)
    const name = JSON.stringify(['outputs', accountId, wanted, since, until])
    const cursor = fields.get('cursor')
    const { mountPrefix } = serviceAddressOf(request)
    const found = await parts.summaries.search(accountId, {
      ...{ filter: { ...NO_FILTER, since, until, outputs: wanted }, order: 'newest', limit, now: clock.now() },
      after: cursor === undefined ? null : cursors.read(cursor, name),
    })
    const answer = (outputs: readonly object[], next: SummaryPage['next']) =>
      sendJson(reply, 200, { outputs, next_cursor: next === null ? null : cursors.encode(next, name) })
    const outputs: object[] = []
    for (const some of inChunks(found.summaries)) {
      const listed = await parts.summaries.findOutputs(accountId, some)
      for (const summary of some) {
        const fitting = (listed.get(summary.id) ?? []).filter((output) => isWanted(output, wanted))
        outputs.push(...fitting.map((output) => toView(output, summary, mountPrefix)))
        if (outputs.length >= limit && summary !== found.summaries.at(-1)) return answer(outputs, summary)
      }
    }
    return answer(outputs, found.next)
  })
}

function readWanted(fields: ReadonlyMap<string, string>): OutputFilter {
  const [type, nodeId] = [fields.get('type') || 'any', fields.get('node') || null]
  const known = TYPES.find((each) => each === type)
  if (known === undefined) throw new ServiceError('invalid_request', `type must be one of ${TYPES.join(', ')}`)
  if (nodeId !== null && (nodeId.length > MAX_NODE_LENGTH || nodeId.includes('\0')))
    throw new ServiceError('invalid_request', `node must have at most ${MAX_NODE_LENGTH} characters and no NUL`)
  return { type: known, nodeId }
}

function isWanted(output: Output, { type, nodeId }: OutputFilter): boolean {
  return (type === 'any' || output.type === type) && (nodeId === null || output.nodeId === nodeId)
}

/** Jobs in their order, few enough that their outputs can be read together. */
function* inChunks(summaries: readonly JobSummary[]): Generator<readonly JobSummary[]> {
  let chunk: JobSummary[] = []
  let count = 0
  for (const summary of summaries) {
    if (chunk.length > 0 && count + summary.outputs > READ_OUTPUTS) {
      yield chunk
      chunk = []
      count = 0
    }
    chunk.push(summary)
    count += summary.outputs
  }
  if (chunk.length > 0) yield chunk
}

function toView({ assetId, nodeId, name, type, contentType, sizeBytes }: Output, job: JobSummary, mountPrefix: string) {
  return {
    ...{ asset_id: assetId, job_id: job.id, job_title: job.title, node_id: nodeId, name, type },
    ...{ content_type: contentType, size_bytes: sizeBytes },
    created_at: (job.completedAt ?? job.createdAt).toISOString(),
    url: toContentPath(mountPrefix, assetId),
  }
}

const WIDTHS = ['64', '128', '256', '512']
const MAX_SOURCE_BYTES = 64 * 1024 * 1024
const QUALITY = 80
const KEPT = 500
const FOR_EVER = 'private, max-age=31536000, immutable'

/** The bytes of an asset never change, and so neither does its small picture. */
export function getThumbnail(app: FastifyInstance, { callerOf, console: parts, pictures }: ConsoleDeps): void {
  const made = new BoundedMap<string, Uint8Array>(KEPT)
  // Decoding takes memory and a core.
  const decoding = createSemaphore(2)
  app.get(`${CONSOLE_API}/thumbnails/:asset`, needs('asset'), async (request, reply) => {
    const caller = callerOf(request)
    const { accountId } = caller
    const { asset: assetId } = request.params as { readonly asset: string }
    const open = () => parts.openContent(accountId, assetId)
    await mustRead(caller, async () => (await open()).asset)
    const width = readFields(request.raw.url ?? '').get('w') ?? '256'
    if (!WIDTHS.includes(width)) throw new ServiceError('invalid_request', `w must be one of ${WIDTHS.join(', ')}`)
    const content = await open()
    const { hash, sizeBytes, contentType } = content.asset
    const etag = quoteDigest(`${hash}-${width}`)
    const lasting = { etag, 'cache-control': FOR_EVER }
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).headers(lasting).send()
    if (!contentType.startsWith('image/') || sizeBytes > MAX_SOURCE_BYTES)
      throw new ServiceError('not_found', 'there is no small picture of this asset')
    const name = `${hash} ${width}`
    const bytes = made.get(name) ?? (await decoding.run(() => shrink(content.open, Number(width))))
    made.set(name, bytes)
    return reply.headers({ ...lasting, 'content-type': 'image/webp' }).send(Buffer.from(bytes))
  })

  async function shrink(open: () => Promise<Readable>, width: number): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    for await (const chunk of await open()) chunks.push(chunk as Uint8Array)
    const options = { format: 'webp', quality: QUALITY, fitPixels: width } as const
    return (await pictures.preview(Buffer.concat(chunks), options)).bytes
  }
}
