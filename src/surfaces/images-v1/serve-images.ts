/**
 * Holds the answer to an image client until its jobs have ended, and gives it the pictures: as one JSON object, or as events with previews
 * on the way. A client that leaves changes nothing about the jobs.
 */
import { buffer } from 'node:stream/consumers'
import type { FastifyReply } from 'fastify'
import type { SizedPicture } from '../../domain/assets/pictures.ts'
import type { EndpointVersion } from '../../domain/endpoints/endpoint.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Job, Output } from '../../domain/jobs/job.ts'
import { isTerminal } from '../../domain/jobs/transitions.ts'
import { holdOpen, keepUntilAnswered } from '../kit/connections/raw-connections.ts'
import type { Door } from '../kit/jobs/endpoint-door.ts'
import { type OpenAIError, RunError } from '../kit/openai-errors.ts'
import { sendJson } from '../kit/request.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import type { ImageRequest } from './image-request.ts'
import type { JoinedRun } from './joined-runs.ts'
import { type MadeContent, NO_TOKENS, PictureEvents, toAbout } from './picture-events.ts'

export interface AnswerDeps extends Pick<SurfaceParts, 'endpoints' | 'pictures' | 'clock'> {
  readonly openContent: SurfaceParts['console']['openContent']
  readonly linkTo: Door['linkTo']
  readonly tellError: (error: unknown, requestId: string) => { readonly error: OpenAIError }
  readonly isStopping: () => boolean
}

interface Asked {
  readonly request: ImageRequest
  readonly baseUrl: string
  /** What the events of a stream begin with. */
  readonly event: 'image_generation' | 'image_edit'
}

// How long an answer is held. Common clients give up after ten minutes.
const MAX_HOLD_MS = 300_000
const HOLD_GRACE_MS = 60_000
// Held in memory while they are converted and written as base64.
const MAX_PICTURE_BYTES = 64 * 1024 * 1024

export async function serveImages(reply: FastifyReply, run: JoinedRun, asked: Asked, deps: AnswerDeps) {
  holdOpen(reply.raw, MAX_HOLD_MS + HOLD_GRACE_MS)
  keepUntilAnswered(reply.request.raw.socket)
  reply.raw.once('close', () => {
    if (reply.raw.writableFinished) run.delivered()
  })
  if (asked.request.isStream) return streamImages(reply, run, asked, deps)
  const { version } = await run.started
  const jobs = await untilEnded(run, deps)
  const outputs = picturesOf(version, mustHaveSucceeded(jobs))
  const { request } = asked
  const data = []
  let about: MadeContent | null = null
  for (const { job, output } of outputs) {
    if (request.isByUrl) data.push({ url: deps.linkTo(output, job, asked.baseUrl) })
    else {
      about = await readPicture(deps, { job, output }, request)
      data.push({ b64_json: Buffer.from(about.bytes).toString('base64') })
    }
  }
  const created = Math.floor(deps.clock.now().getTime() / 1000)
  return sendJson(reply, 200, { created, data, ...(about !== null && toAbout(about)), usage: NO_TOKENS })
}

/** Throws once the answer has been held for as long as it may be. The jobs go on. */
async function untilEnded(run: JoinedRun, { endpoints, isStopping }: AnswerDeps): Promise<readonly Job[]> {
  const { jobs } = await run.started
  const { promise: isOver, resolve } = Promise.withResolvers<null>()
  const disarm = endpoints.ticker.after(MAX_HOLD_MS, () => resolve(null))
  try {
    const ended = await Promise.race([run.ended, isOver])
    if (ended?.every(({ status }) => isTerminal(status))) return ended
  } finally {
    disarm()
  }
  const ids = jobs.map(({ id }) => id).join(', ')
  if (isStopping())
    throw new RunError(503, 'server_error', `this process stops; the job ${ids} goes on: read it at /api/v2/jobs`)
  const seconds = MAX_HOLD_MS / 1000
  throw new RunError(
    504,
    'timeout',
    `the job ${ids} takes longer than ${seconds} s and goes on: read it at /api/v2/jobs`,
  )
}

// Said by a provider, or by the operator's own hook.
const OF_CONTENT: ReadonlySet<string> = new Set(['content_policy_violation', 'refused_by_policy'])

function mustHaveSucceeded(jobs: readonly Job[]): readonly Job[] {
  for (const { id, status, error } of jobs) {
    if (status === 'succeeded') continue
    const why = status === 'failed' && error !== null ? error.message : `it is ${status}`
    if (error !== null && OF_CONTENT.has(error.code)) throw new RunError(400, 'content_policy_violation', why)
    throw new RunError(500, 'server_error', `the job ${id} made no picture: ${why}`)
  }
  return jobs
}

interface MadePicture {
  readonly job: Job
  readonly output: Output
}

/** What the first output of pictures has made, or every picture where the endpoint names none. */
function picturesOf({ outputs }: EndpointVersion, jobs: readonly Job[]): readonly MadePicture[] {
  const node = outputs.find(({ kind }) => kind === 'image')?.nodeId ?? null
  const made = jobs.flatMap((job) =>
    job.outputs
      .filter(({ nodeId, contentType }) => contentType.startsWith('image/') && (node === null || nodeId === node))
      .map((output) => ({ job, output })),
  )
  if (made.length > 0) return made
  throw new RunError(500, 'server_error', `the job ${jobs[0]?.id} has ended well, and made no picture`)
}

async function readPicture(
  { openContent, pictures }: AnswerDeps,
  { job, output }: MadePicture,
  { format, compression }: ImageRequest,
): Promise<MadeContent> {
  if (output.sizeBytes > MAX_PICTURE_BYTES)
    throw new RunError(500, 'server_error', 'the picture is too large for base64; ask for response_format url')
  const content = await openContent(job.accountId, output.assetId)
  const bytes = await buffer(await content.open())
  try {
    return await pictures.convert(bytes, { format, quality: compression })
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    if (format !== null || compression !== null)
      throw new RunError(500, 'server_error', `the picture cannot be converted: it is ${output.contentType}`)
    return { bytes, contentType: output.contentType, width: null, height: null }
  }
}

/** Errors before the first event are answers with a status; later ones are events. */
async function streamImages(reply: FastifyReply, run: JoinedRun, { request, event }: Asked, deps: AnswerDeps) {
  const started = await run.started
  const events = new PictureEvents(reply, { event, ticker: deps.endpoints.ticker, clock: deps.clock })
  const previews = await watchPreviews(started.jobs, request, deps, (picture, index) =>
    events.send('partial_image', picture, { partial_image_index: index }),
  )
  try {
    const jobs = await untilEnded(run, deps).finally(previews.stop)
    await previews.settled()
    for (const made of picturesOf(started.version, mustHaveSucceeded(jobs)))
      events.send('completed', await readPicture(deps, made, request), { usage: NO_TOKENS })
  } catch (error) {
    if (!events.hasBegun) throw error
    events.fail(deps.tellError(error, reply.request.id).error)
  } finally {
    previews.stop()
    events.end()
  }
  return reply
}

/** As many as were asked for, spread over the run as far as its progress tells. */
async function watchPreviews(
  jobs: readonly Job[],
  { partialImages, format, compression }: ImageRequest,
  { endpoints, pictures }: AnswerDeps,
  show: (picture: SizedPicture, index: number) => void,
) {
  let taken = 0
  let shown = 0
  let isOver = false
  let showing = Promise.resolve()
  const progress = new Map<string, number>()
  const stops: (() => void)[] = []

  async function convert(bytes: Uint8Array): Promise<void> {
    try {
      const picture = await pictures.convert(bytes, { format, quality: compression })
      if (isOver) return
      show(picture, shown)
      shown += 1
    } catch {
      // What an engine shows on the way need not be a picture that can be read.
    }
  }

  for (const { id, accountId } of partialImages === 0 ? [] : jobs) {
    const watch = await endpoints.watchJob(accountId, id, {
      onSnapshot: (job) => void progress.set(id, job.progress?.value ?? 0),
      onPreview({ bytes }) {
        const far = jobs.reduce((sum, job) => sum + (progress.get(job.id) ?? 0), 0) / jobs.length
        if (taken === partialImages || far < taken / (partialImages + 1)) return
        taken += 1
        showing = showing.then(() => convert(bytes))
      },
      onGone() {},
    })
    stops.push(watch.stop)
  }
  return {
    stop: () => {
      for (const stop of stops.splice(0)) stop()
    },
    async settled() {
      await showing
      isOver = true
    },
  }
}
