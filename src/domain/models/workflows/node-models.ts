/**
 * A partner's model called by a node of a workflow: the same call as over HTTP, billed to the job's account. The key in the
 * job's `extra_data` decides whether it is allowed. The job and the node name the call, so that no attempt of a job pays twice.
 */
import { hash } from 'node:crypto'
import { MAX_MODEL_IMAGES, type ModelAnswer } from '../../../../engine/graph/model-nodes.ts'
import {
  isJsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import { type Authenticate, type Caller, mustHaveScope } from '../../accounts/caller.ts'
import type { ModelRequest, ModelWish, NodeModels } from '../../engine/model-port.ts'
import { type Refusal, ServiceError } from '../../errors.ts'
import type { Access } from '../access/model-access.ts'
import { NO_WISH } from '../alternates/choose-providers.ts'
import type { CallBody, CallResult } from '../calls/call-store.ts'
import type { RunAnswer, RunModel } from '../calls/run-call.ts'
import { isRecord, type JsonRecord, readModelId } from '../catalog/model.ts'
import { RouterError, type RouterRefusal } from '../router-error.ts'

interface NodeModelsDeps {
  readonly access: Pick<Access, 'open' | 'choose' | 'mustBeEntitled'>
  readonly runModel: RunModel
  /** True once the service stops: a call may then be left to the next process. */
  readonly isStopping: () => boolean
  readonly authenticate: Authenticate
  /** The same without counting it as a request: a submit has been counted already. */
  readonly identify: Authenticate
  /** Names of the member of `extra_data` that holds the key, one per brand. */
  readonly keyNames: readonly string[]
  readonly readBody: ReadBody
  /** What addresses of ours in a result begin with. */
  readonly baseUrl: string
  readonly newRequestId: () => string
}

// It has to fit into memory, pictures in base64 included.
const MAX_ANSWER_BYTES = 134_217_728
const IMAGE_REFERENCE = /^image:\/\/(\d{1,3})$/

export function createNodeModels(deps: NodeModelsDeps): NodeModels {
  async function run(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    const id = readModelId(request.model)
    if (id === null)
      throw new ServiceError('invalid_field', `${JSON.stringify(request.model.slice(0, 200))} is not the id of a model`)
    const caller = await identify(deps, request)
    const input = placeImages(request.input, request.images)
    const body = Buffer.from(stringifyLosslessJson(input))
    const asked = {
      opened: await deps.access.choose(caller, await deps.access.open(caller, id.provider, id.model), NO_WISH),
      accountId: request.accountId,
      requestId: deps.newRequestId(),
      key: `node:${request.jobId}:${request.key}`,
      fingerprint: hash('sha256', Buffer.concat([Buffer.from(`node ${request.model}\n`), body]), 'base64'),
      body,
      input: readInput(body),
      baseUrl: deps.baseUrl,
      listener: { isConnected: () => !signal.aborted, left: signal },
    }
    const { end } = await untilAborted(runOrWait(deps, asked, signal), signal)
    if (end.kind === 'result') return toAnswer(end.result, deps.readBody)
    throw new RouterError(end.refusal.refusal, end.refusal.message)
  }
  return {
    async run(request, { signal }) {
      try {
        return await run(request, signal)
      } catch (error) {
        if (!(error instanceof RouterError)) throw error
        // The job is about to go back to the queue, and its next attempt collects this call: it must not fail before that.
        if (error.refusal === 'unavailable' && deps.isStopping())
          await untilAborted(new Promise<never>(() => {}), signal)
        throw toServiceError(error)
      }
    },
    async mustRun({ nodes, ...wish }) {
      const caller = await foresee(deps, wish)
      mustHaveScope(caller, 'models:run')
      try {
        for (const { model } of nodes) if (model !== null) deps.access.mustBeEntitled(caller, model)
      } catch (error) {
        throw error instanceof RouterError ? toServiceError(error) : error
      }
    },
  }
}

/**
 * The request of an earlier attempt may still be waiting for the call of this key, because nobody has noticed yet that its worker
 * is gone. The call is this job's all the same: its answer is waited for, at most until the call's own deadline.
 */
async function runOrWait(
  { runModel }: Pick<NodeModelsDeps, 'runModel'>,
  asked: Parameters<RunModel>[0],
  signal: AbortSignal,
): Promise<RunAnswer> {
  for (;;) {
    try {
      return await runModel(asked)
    } catch (error) {
      if (!(error instanceof RouterError) || error.refusal !== 'key_running' || signal.aborted) throw error
      await sleep((error.retryAfterSeconds ?? 1) * 1000, signal)
    }
  }
}

/** The job pays, so the key in it must be one of the same account, and one that may run models. */
async function identify(deps: NodeModelsDeps, { extraData, accountId }: ModelRequest): Promise<Caller> {
  const caller = await deps.authenticate(keyIn(deps, extraData))
  if (caller.accountId !== accountId)
    throw new ServiceError('forbidden', 'the API key in extra_data belongs to another account than the job')
  mustHaveScope(caller, 'models:run')
  return caller
}

function keyIn({ keyNames }: NodeModelsDeps, extraData: ModelRequest['extraData']): string | null {
  const key = keyNames.map((name) => extraData?.[name]).find((value) => typeof value === 'string' && value !== '')
  return (key as string | undefined) ?? null
}

/**
 * Whose rights count when the nodes run: those of the key in `extra_data`. A job without one that counts would fail at its first
 * such node, maybe after hours; so it is refused when it is submitted.
 */
async function foresee(deps: NodeModelsDeps, { accountId, extraData }: Omit<ModelWish, 'nodes'>): Promise<Caller> {
  const key = keyIn(deps, extraData)
  try {
    const caller = await deps.identify(key)
    if (caller.accountId === accountId) return caller
  } catch (error) {
    const isRefused = error instanceof ServiceError && ['unauthorized', 'forbidden'].includes(error.refusal)
    if (!isRefused) throw error
  }
  const fields = deps.keyNames.map((name) => `extra_data.${name}`)
  const what = key === null ? 'is missing' : 'is no valid API key of this account'
  throw new ServiceError(
    'forbidden',
    `${fields.join(' or ')} ${what}: the graph runs partner models, which needs an API key of the account with the scope models:run there`,
    { details: { field: fields[0] } },
  )
}

/** `"image://0"` in the input stands for the first picture. */
function placeImages(input: JsonValue, images: ModelRequest['images']): JsonValue {
  if (typeof input === 'string') {
    const reference = IMAGE_REFERENCE.exec(input)
    if (reference === null) return input
    const image = images[Number(reference[1])]
    if (image === undefined)
      throw new ServiceError('invalid_field', `the input names ${input}, and there are ${images.length} images`)
    return `data:image/png;base64,${Buffer.from(image).toString('base64')}`
  }
  if (Array.isArray(input)) return input.map((item) => placeImages(item, images))
  if (!isJsonObject(input)) return input
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, placeImages(value, images)]))
}

function readInput(body: Buffer): JsonRecord | RouterError {
  const value: unknown = JSON.parse(body.toString())
  return isRecord(value) ? value : new RouterError('malformed', 'the input of a model must be a JSON object')
}

async function toAnswer(result: CallResult, readBody: ReadBody): Promise<ModelAnswer> {
  const isImage = result.contentType.startsWith('image/')
  const isJson = result.contentType.includes('json')
  // A node can do nothing with other bytes, so they are left where they are.
  if (!isImage && !isJson) return { output: null, images: [] }
  if (result.sizeBytes > MAX_ANSWER_BYTES) {
    const limit = `a node can take ${MAX_ANSWER_BYTES}`
    throw new ServiceError('payload_too_large', `the answer of the model has ${result.sizeBytes} bytes; ${limit}`)
  }
  const bytes = await readBody(result.body)
  if (!isJson) return { output: null, images: [bytes] }
  const output = parseLosslessJson(bytes.toString())
  return { output, images: await findImages(output, readBody) }
}

/** The call itself goes on: it is the provider's, and paid for. */
function untilAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>()
  const stop = () => reject(signal.reason)
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop)
  work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  return promise
}

const REFUSALS: Partial<Record<RouterRefusal, Refusal>> = {
  malformed: 'invalid_field',
  invalid_fields: 'invalid_field',
  provider_refused_input: 'invalid_field',
  too_large: 'payload_too_large',
  no_credits: 'insufficient_credits',
  unauthorized: 'unauthorized',
  forbidden: 'forbidden',
  not_enabled: 'forbidden',
  unknown_model: 'not_found',
  rate: 'rate_limited',
  calls_exhausted: 'rate_limited',
  spend_exhausted: 'rate_limited',
}

function toServiceError(error: RouterError): ServiceError {
  const { refusal, failures, retryAfterSeconds } = error
  const list = failures?.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`).join('; ')
  const message = list === undefined ? error.message : `${error.message} (${list})`
  const options = retryAfterSeconds === null ? {} : { retryAfterSeconds }
  return new ServiceError(REFUSALS[refusal] ?? 'output_unavailable', message, { ...options, cause: error })
}

/** A body of ours, or the content behind an address of ours; null for any other address and for what is larger than allowed. */
interface ReadBody {
  (body: CallBody): Promise<Buffer>
  readonly hosted: (url: string, maxBytes: number) => Promise<Buffer | null>
}

const DATA_URI = /^data:image\/[a-z0-9.+-]+;base64,/i
// The beginnings of PNG, JPEG, WebP and GIF files in base64.
const IMAGE_BASE64 = /^(?:iVBORw0KGgo|\/9j\/|UklGR|R0lGOD)/
const MIN_BASE64_LENGTH = 64
// Of one answer together, while they are on their way to the engine.
const MAX_HOSTED_BYTES = 268_435_456

/**
 * The pictures in a model's answer: those written out as base64, and those on our own storage as far as memory allows, because
 * an answer may name the same large file again and again. All others stay addresses.
 */
export async function findImages(output: JsonValue, readBody: ReadBody): Promise<readonly Uint8Array[]> {
  const images: Uint8Array[] = []
  let leftBytes = MAX_HOSTED_BYTES
  for (const text of textsOf(output)) {
    if (images.length >= MAX_MODEL_IMAGES) break
    const image = await toImage(text, readBody, leftBytes)
    if (image === null) continue
    images.push(image)
    leftBytes -= image.byteLength
  }
  return images
}

async function toImage(text: string, readBody: ReadBody, leftBytes: number): Promise<Uint8Array | null> {
  const head = DATA_URI.exec(text)?.[0]
  if (head !== undefined) return Buffer.from(text.slice(head.length), 'base64')
  if (text.length >= MIN_BASE64_LENGTH && IMAGE_BASE64.test(text)) return Buffer.from(text, 'base64')
  return text.startsWith('http') && leftBytes > 0 ? readBody.hosted(text, leftBytes) : null
}

function* textsOf(value: JsonValue): Generator<string> {
  if (typeof value === 'string') yield value
  else if (Array.isArray(value)) for (const item of value) yield* textsOf(item)
  else if (isJsonObject(value)) for (const item of Object.values(value)) yield* textsOf(item)
}
