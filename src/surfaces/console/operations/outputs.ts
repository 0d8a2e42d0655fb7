/** What jobs made: a gallery over all of them, and small pictures. */
import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import { createSemaphore } from '../../../../lib/waiting/semaphore.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Job, Output } from '../../../domain/jobs/job.ts'
import { type JobSummary, NO_FILTER, type SummaryPage } from '../../../domain/jobs/summaries/summary-store.ts'
import { matchesEtag, quoteDigest } from '../../kit/content/etag.ts'
import { createTimeCursors } from '../../kit/cursor.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { sendJson } from '../../kit/send-json.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'
import { readFields, readFilter, readLimit } from '../job-filters.ts'
import { toContentPath } from '../views/job-view.ts'

const PAGE = 50
// Jobs without a fitting output are passed over; whoever wants more asks for the next page.
const MAX_PAGES = 10

/** A page ends behind a job, so it may have a few more than `limit`. */
export function listOutputs(app: FastifyInstance, { callerOf, jobs, console: parts, clock }: ConsoleDeps): void {
  const cursors = createTimeCursors(parts.cursorSecret)
  app.get(`${CONSOLE_API}/outputs`, async (request, reply) => {
    const { accountId } = callerOf(request)
    const fields = readFields(request.raw.url ?? '')
    const { since, until } = readFilter(fields)
    const [type, node] = [fields.get('type') ?? null, fields.get('node') ?? null]
    const limit = readLimit(fields)
    const name = JSON.stringify(['outputs', accountId, type, node, since, until])
    const cursor = fields.get('cursor')
    const { mountPrefix } = serviceAddressOf(request)
    const fits = (output: Output) =>
      (type === null || output.type === type) && (node === null || output.nodeId === node)
    const outputs: object[] = []
    let after: SummaryPage['next'] = cursor === undefined ? null : cursors.read(cursor, name)
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const filter = { ...NO_FILTER, since, until }
      const found = await parts.summaries.search(accountId, {
        filter,
        order: 'newest',
        limit: PAGE,
        after,
        now: clock.now(),
      })
      // A job without a first picture has none, and need not be read to know it.
      const made = found.summaries.filter(
        ({ outputs: count, thumb }) => count > 0 && (type !== 'image' || thumb !== null),
      )
      const whole = await Promise.all(made.map((summary) => findJob(accountId, summary)))
      for (const { summary, job } of whole) {
        if (job === null) continue
        outputs.push(...job.outputs.filter(fits).map((output) => toView(output, summary, mountPrefix)))
        if (outputs.length < limit) continue
        const next = cursors.encode({ createdAt: summary.createdAt, id: summary.id }, name)
        return sendJson(reply, 200, { outputs, next_cursor: next })
      }
      after = found.next
      if (after === null) return sendJson(reply, 200, { outputs, next_cursor: null })
    }
    return sendJson(reply, 200, { outputs, next_cursor: after === null ? null : cursors.encode(after, name) })
  })

  async function findJob(accountId: string, summary: JobSummary): Promise<{ summary: JobSummary; job: Job | null }> {
    return { summary, job: await jobs.reader.find(accountId, summary.id).catch(noneIfGone) }
  }
}

function noneIfGone(error: unknown): null {
  if (error instanceof ServiceError && error.refusal === 'not_found') return null
  throw error
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
  app.get(`${CONSOLE_API}/thumbnails/:asset`, async (request, reply) => {
    const { accountId } = callerOf(request)
    const { asset: assetId } = request.params as { readonly asset: string }
    const width = readFields(request.raw.url ?? '').get('w') ?? '256'
    if (!WIDTHS.includes(width)) throw new ServiceError('invalid_request', `w must be one of ${WIDTHS.join(', ')}`)
    const content = await parts.openContent(accountId, assetId)
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
