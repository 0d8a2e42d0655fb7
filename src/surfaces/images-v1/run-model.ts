/** Pictures from models of the catalogue: a request is one call of the model router, and its answer is put into OpenAI's form. */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sniffType } from '../../../lib/files/mime.ts'
import { type JsonObject, NumberText, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { Picture, SizedPicture } from '../../domain/assets/pictures.ts'
import { ServiceError } from '../../domain/errors.ts'
import { findImages, type MadeImage, toImageInput } from '../../domain/models/access/image-models.ts'
import type { OpenedModel } from '../../domain/models/access/own-models.ts'
import { NO_WISH } from '../../domain/models/alternates/choose-providers.ts'
import { type CallResult, readCallBody } from '../../domain/models/calls/call-store.ts'
import type { RunAnswer } from '../../domain/models/calls/run-call.ts'
import type { JsonRecord } from '../../domain/models/catalog/model.ts'
import { RouterError } from '../../domain/models/router-error.ts'
import { claimOf } from '../kit/bodies/body-memory.ts'
import { holdOpen, keepUntilAnswered } from '../kit/connections/raw-connections.ts'
import type { Door, DoorContext } from '../kit/jobs/endpoint-door.ts'
import { mustBeResult, readCallTag } from '../kit/model-calls.ts'
import { RunError } from '../kit/openai-errors.ts'
import { sendJson } from '../kit/request.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import type { EditForm } from './edit-form.ts'
import type { ImageRequest } from './image-request.ts'
import { NO_TOKENS, PictureEvents } from './picture-events.ts'
import type { AnswerDeps } from './serve-images.ts'
import type { ImageCall } from './start-images.ts'

interface ModelDeps {
  readonly parts: SurfaceParts
  readonly door: Pick<Door, 'linkTo'>
  readonly answers: Pick<AnswerDeps, 'tellError'>
}

/** null: the name is none of a model of the catalogue that makes pictures of what such clients say. */
export async function openImageModel(
  { chat: { access } }: Pick<SurfaceParts, 'chat'>,
  caller: DoorContext,
  name: string,
): Promise<OpenedModel> {
  const [provider = '', model = '', ...rest] = name.split('/')
  const shown = JSON.stringify(name.slice(0, 128))
  if (rest.length > 0) throw new RouterError('unknown_model', `there is no model ${shown}`)
  const opened = await access.open(caller, provider, model)
  if (opened.model.images == null)
    throw new RouterError(
      'unknown_model',
      `${shown} does not take requests in this form: its own input is told by GET /v2/models/${provider}/${model}/openapi.json`,
    )
  return access.choose(caller, opened, NO_WISH)
}

export async function answerFromModel(
  request: FastifyRequest,
  reply: FastifyReply,
  { opened, call }: { readonly opened: OpenedModel; readonly call: ImageCall },
  deps: ModelDeps,
): Promise<FastifyReply> {
  const { parts, door } = deps
  const { chat, clock } = parts
  const { context, request: asked, form, digest, idempotencyKey } = call
  const isForm = form !== null
  const heldBytes = holdFiles(request.raw, form)
  const input = toImageInput(opened.model, { ...toWanted(asked), ...(await readFiles(parts, form)), isForm })
  const body = Buffer.from(stringifyLosslessJson({ ...(input as JsonObject), ...longNumbers(asked.others, input) }))
  claimOf(request.raw).take(Math.max(0, body.length - heldBytes))
  keepUntilAnswered(request.raw.socket)
  holdOpen(reply.raw, chat.holdMs)
  const { accountId, keyId, baseUrl } = context
  const run = chat.runModel({
    ...{ opened, accountId, keyId, tag: readCallTag(request.raw.headers), requestId: request.id },
    ...{ key: idempotencyKey, fingerprint: `${request.url} ${digest}` },
    ...{ body, input, baseUrl },
    listener: { isConnected: () => !reply.raw.destroyed },
    holdBody: () => claimOf(request.raw).hold(),
  })
  const maker = { opened, accountId, isOwnKey: opened.isOwnKey }
  if (asked.isStream) return streamMade(reply, run, { maker, call, ...deps })
  const answer = await run
  const result = mustBeResult(answer)
  holdResult(request, reply, { sizeBytes: result.sizeBytes, mayRefuse: idempotencyKey !== null })
  const made = await findMade(opened, result, parts)
  if (answer.isReplay) reply.header('idempotent-replayed', 'true')
  const data = []
  let about: Picture | SizedPicture | null = null
  for (const [index, image] of made.entries()) {
    if (asked.isByUrl && 'url' in image) data.push({ url: image.url })
    else {
      const bytes = await readImage(image, maker, parts)
      const picture = await convert(bytes, asked, parts)
      about ??= picture
      data.push(asked.isByUrl ? { url: await keep(picture, index) } : { b64_json: toBase64(picture) })
    }
  }
  const created = Math.floor(clock.now().getTime() / 1000)
  return sendJson(reply, 200, { created, data, ...(about !== null && !asked.isByUrl && toAbout(about)) })

  /** A file of the account, so that it has an address. */
  async function keep({ bytes, contentType }: Picture, index: number): Promise<string> {
    const name = `${createHash('sha256').update(bytes).digest('hex').slice(0, 24)}-${index}.${contentType.slice(6)}`
    const received = await parts.assets.receive([bytes], { accountId })
    const asset = await received.place({ accountId, folder: 'output', name, contentType, overwrite: true })
    return door.linkTo({ assetId: asset.id }, { accountId, expiresAt: asset.expiresAt ?? new Date(8.64e15) }, baseUrl)
  }
}

interface Streamed extends ModelDeps {
  readonly maker: Maker
  readonly call: ImageCall
}

/** Providers show nothing on the way: the stream is kept open, and the finished pictures are its events. */
async function streamMade(reply: FastifyReply, run: Promise<RunAnswer>, { maker, call, parts, answers }: Streamed) {
  const event = call.form === null ? 'image_generation' : 'image_edit'
  const events = new PictureEvents(reply, { event, ticker: parts.endpoints.ticker, clock: parts.clock })
  try {
    const answer = await run
    const result = mustBeResult(answer)
    const mayRefuse = call.idempotencyKey !== null
    holdResult(reply.request, reply, { sizeBytes: result.sizeBytes, mayRefuse })
    const made = await findMade(maker.opened, result, parts)
    if (answer.isReplay && !events.hasBegun) reply.header('idempotent-replayed', 'true')
    for (const image of made) {
      const picture = await convert(await readImage(image, maker, parts), call.request, parts)
      events.send('completed', 'width' in picture ? picture : { ...picture, width: null, height: null }, {
        usage: NO_TOKENS,
      })
    }
  } catch (error) {
    if (!events.hasBegun) throw error
    events.fail(answers.tellError(error, reply.request.id).error)
  } finally {
    events.end()
  }
  return reply
}

function toWanted({ prompt, n, others }: ImageRequest) {
  return { prompt, n, others: JSON.parse(stringifyLosslessJson(others)) as JsonRecord }
}

/** With every digit. */
function longNumbers(others: JsonObject, input: JsonRecord): JsonObject {
  return Object.fromEntries(
    Object.entries(others).filter(([name, value]) => value instanceof NumberText && Object.hasOwn(input, name)),
  )
}

// What a provider is sent has to fit into a request.
const MAX_FILES_BYTES = 64 * 1024 * 1024

// Four letters for three bytes.
const TEXT_SHARE = 4 / 3

/** Room for the files as texts, before any is read. Throws payload_too_large, overloaded. */
function holdFiles(request: IncomingMessage, form: EditForm | null): number {
  if (form === null) return 0
  const sizeBytes = form.images.reduce((sum, image) => sum + image.sizeBytes, form.mask?.byteLength ?? 0)
  if (sizeBytes > MAX_FILES_BYTES)
    throw new ServiceError('payload_too_large', `pictures may have at most ${MAX_FILES_BYTES} bytes together`, {
      details: { field: 'image' },
    })
  const heldBytes = Math.ceil(sizeBytes * TEXT_SHARE)
  claimOf(request).take(heldBytes)
  return heldBytes
}

async function readFiles({ assets }: Pick<SurfaceParts, 'assets'>, form: EditForm | null) {
  if (form === null) return { images: [], mask: null }
  const images: string[] = []
  for (const image of form.images) {
    const asset = await image.keep()
    images.push(toDataUri(await buffer(await assets.open(asset)), asset.contentType))
  }
  return { images, mask: form.mask === null ? null : toDataUri(form.mask, sniffType(Buffer.from(form.mask))) }
}

// More than any answer of today, and within what one caller may hold.
const MAX_RESULT_CLAIM_BYTES = 64 * 1024 * 1024

/**
 * Room for an answer that is read, converted and written out. `mayRefuse`: who has the key of the call is told to come again where there is
 * none; what cannot be had again is given all the same. Throws overloaded.
 */
function holdResult(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  { sizeBytes, mayRefuse }: { readonly sizeBytes: number; readonly mayRefuse: boolean },
): void {
  if (reply.raw.destroyed) return
  const claim = claimOf(raw)
  // The call had its own end to hold the claim for.
  reply.raw.once('close', claim.hold())
  try {
    claim.take(Math.min(sizeBytes, MAX_RESULT_CLAIM_BYTES))
  } catch (error) {
    if (mayRefuse) throw error
  }
}

function toDataUri(bytes: Uint8Array, contentType: string | null): string {
  return `data:${contentType ?? 'image/png'};base64,${Buffer.from(bytes).toString('base64')}`
}

async function findMade(
  { model }: OpenedModel,
  { body }: CallResult,
  { chat }: Pick<SurfaceParts, 'chat'>,
): Promise<readonly MadeImage[]> {
  const bytes = await readCallBody(chat.blobs, body)
  const made = model.images == null ? [] : findImages(model.images, JSON.parse(bytes.toString('utf8')))
  if (made.length > 0) return made
  throw new RunError(502, 'provider_error', 'the provider answered, and its answer has no picture')
}

interface Maker {
  readonly opened: OpenedModel
  readonly accountId: string
  readonly isOwnKey: boolean
}

async function readImage(
  image: MadeImage,
  { opened: { model }, accountId, isOwnKey }: Maker,
  { chat }: Pick<SurfaceParts, 'chat'>,
): Promise<Buffer> {
  if ('base64' in image) return Buffer.from(image.base64.slice(image.base64.indexOf(',') + 1), 'base64')
  const bytes = await chat.readMedia(image.url, { model, accountId, isOwnKey })
  if (bytes !== null) return bytes
  throw new RunError(502, 'provider_error', UNREAD)
}

const UNREAD =
  'the picture is made, and could not be read where its provider keeps it; the same request with its Idempotency-Key reads it again'

async function convert(
  bytes: Buffer,
  { format, compression }: ImageRequest,
  { pictures }: Pick<SurfaceParts, 'pictures'>,
): Promise<Picture | SizedPicture> {
  const isAsked = format !== null || compression !== null
  try {
    return await pictures.convert(bytes, { format, quality: compression })
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const contentType = sniffType(bytes) ?? 'image/png'
    if (isAsked) throw new RunError(500, 'server_error', `the picture cannot be converted: it is ${contentType}`)
    return { bytes, contentType }
  }
}

function toBase64({ bytes }: Picture): string {
  return Buffer.from(bytes).toString('base64')
}

function toAbout(picture: Picture | SizedPicture) {
  const size = 'width' in picture ? { size: `${picture.width}x${picture.height}` } : {}
  return { output_format: picture.contentType.slice('image/'.length), ...size }
}
