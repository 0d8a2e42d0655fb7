/** From a request of an image client to jobs: finds the endpoint, puts parameters and files under its inputs, and makes the runs. */
import { randomInt } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  keepNumber,
  parseLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import type { Asset } from '../../domain/assets/asset.ts'
import type { Picture, Pictures } from '../../domain/assets/pictures.ts'
import {
  type EndpointVersion,
  type FileInput,
  type MaskConvention,
  nameFor,
  type SeedInput,
} from '../../domain/endpoints/endpoint.ts'
import type { EndpointCaller, Resolved } from '../../domain/endpoints/reach.ts'
import { invalidField, ServiceError } from '../../domain/errors.ts'
import { BatchRefusedError } from '../../domain/jobs/batches/submit-batch.ts'
import type { Job } from '../../domain/jobs/job.ts'
import type { DoorContext } from '../kit/jobs/endpoint-door.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import type { EditForm } from './edit-form.ts'
import type { ImageRequest } from './image-request.ts'
import { type InputMap, mapInputs, paramOf, toInputs } from './input-map.ts'
import type { StartedRun } from './joined-runs.ts'

type ImageParts = Pick<SurfaceParts, 'endpoints' | 'jobs' | 'assets' | 'pictures' | 'chat'>
type NamingParts = Pick<ImageParts, 'endpoints' | 'chat'>

export interface ImageCall {
  readonly context: DoorContext
  readonly request: ImageRequest
  /** null: a request as JSON. */
  readonly form: EditForm | null
  readonly idempotencyKey: string | null
  /** Of the whole request. */
  readonly digest: string
}

export async function startImages(parts: ImageParts, call: ImageCall): Promise<StartedRun> {
  const { context, request, form } = call
  const { accountId } = context
  const resolved = await findModel(parts, call.context, request.model)
  const { version } = resolved
  const map = mapInputs(version.inputs)
  const inputs = toInputs(map, request)
  if (form !== null) checkFiles(form, map, version)
  const files = form === null ? {} : await keepFiles(parts, form, map, accountId)
  const items = toItems(map, { ...inputs, ...files }, request.n ?? 1)
  try {
    return { version, jobs: await submit(parts, call, { ...resolved, items }) }
  } catch (error) {
    throw toRequestError(error, map)
  }
}

/**
 * By its name, perhaps with a version, or by one of the names that its settings give it. What the account has itself comes first, and then
 * the catalogue: no other account takes the place of a model by calling itself like a provider. Throws not_found.
 */
export async function findModel(parts: NamingParts, caller: EndpointCaller, model: string | null): Promise<Resolved> {
  const { endpoints } = parts.endpoints
  if (model === null) return findOnly(parts.endpoints, caller)
  const named = await nullIfNotFound(endpoints.resolveToCall(caller, model))
  if (named !== null && named.endpoint.accountId === caller.accountId) return named
  const aliased = await endpoints.findByModel(caller, model)
  if (aliased !== null) return endpoints.resolve(caller, aliased.name)
  if (named === null || parts.chat.access.isCatalogued(model)) throw modelNotFound(model)
  return named
}

async function nullIfNotFound<Value>(asked: Promise<Value>): Promise<Value | null> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof ServiceError && error.refusal === 'not_found') return null
    throw error
  }
}

export async function isEndpoint(parts: NamingParts, caller: EndpointCaller, name: string): Promise<boolean> {
  return (await nullIfNotFound(findModel(parts, caller, name))) !== null
}

export function modelNotFound(model: string): ServiceError {
  const shown = JSON.stringify(model.slice(0, 64))
  return new ServiceError(
    'not_found',
    `there is no model ${shown}: it is the name of an endpoint, or one of the models in the settings of one`,
    { details: { field: 'model', code: 'model_not_found' } },
  )
}

// Whoever has more has to say which one is meant.
const MAX_LOOKED_AT = 50
const MAX_LISTED = 1000

/** Whether a client of images can use it as it is: it makes a picture of a text. */
export function makesPictures({ inputs, outputs }: EndpointVersion): boolean {
  return mapInputs(inputs).prompt !== null && outputs.some(({ kind }) => kind === 'image')
}

/** The account's only one with a text input. */
async function findOnly(
  { endpoints }: Pick<ImageParts['endpoints'], 'endpoints'>,
  caller: EndpointCaller,
): Promise<Resolved> {
  const all = await endpoints.list(caller, { after: null, limit: MAX_LISTED })
  const listed = all.filter(({ isOfService }) => isOfService !== true)
  const ready = listed.filter(({ state }) => state === 'ready')
  const found: Resolved[] = []
  if (listed.length <= MAX_LOOKED_AT)
    for (const { name } of ready) {
      const resolved = await endpoints.resolve(caller, name)
      if (mapInputs(resolved.version.inputs).prompt !== null) found.push(resolved)
    }
  if (found.length === 1) return found[0]
  throw invalidField('model', 'is required: name an endpoint, unless the account has exactly one that takes a text')
}

function checkFiles({ images, mask }: EditForm, map: InputMap, version: EndpointVersion): void {
  if (images.length > map.images.length)
    throw invalidField('image', `may be sent ${map.images.length} times: so many pictures does this model take`)
  if (mask === null || map.mask !== null) return
  const [first] = map.images
  if (images.length === 0 || first === undefined || !usesMaskOf(version, first))
    throw invalidField('mask', 'has no input in this model')
}

/** The masks of loaders are what is transparent in their pictures: such a picture carries its mask itself. */
function usesMaskOf({ graph }: EndpointVersion, { places }: FileInput): boolean {
  const nodes = parseLosslessJson(graph) as JsonObject
  const isMaskOfIt = (value: JsonValue) =>
    Array.isArray(value) && value[1] === 1 && places.some(({ nodeId }) => nodeId === value[0])
  return Object.values(nodes).some(
    (node) => isJsonObject(node) && isJsonObject(node['inputs']) && Object.values(node['inputs']).some(isMaskOfIt),
  )
}

/** What stands for the files, by input. */
async function keepFiles(
  parts: ImageParts,
  { images, mask }: EditForm,
  map: InputMap,
  accountId: string,
): Promise<JsonObject> {
  const { pictures } = parts
  const files: Record<string, JsonValue> = {}
  const write = mask === null ? null : await pictures.toMask(mask).catch(ofParameter('mask'))
  if (mask !== null && write === null)
    throw invalidField('mask', 'must have an alpha channel; what is transparent in it is edited')
  for (const [index, image] of images.entries()) {
    let asset = await image.keep()
    if (index === 0 && write !== null && map.mask === null) {
      const whole = await buffer(await parts.assets.open(asset))
      const { bytes } = await pictures.replaceAlpha(whole, write.bytes).catch(ofParameter('mask'))
      asset = await keepPng(parts, accountId, 'masked.png', bytes)
    }
    files[map.images[index].name] = toReference(asset)
  }
  if (mask !== null && write !== null && map.mask !== null) {
    const { bytes } = await toConvention(pictures, map.maskConvention, { sent: mask, both: write })
    files[map.mask.name] = toReference(await keepPng(parts, accountId, 'mask.png', bytes))
  }
  return files
}

interface SentMask {
  readonly sent: Uint8Array
  /** For loaders of either kind. */
  readonly both: Picture
}

async function toConvention(
  pictures: Pictures,
  convention: MaskConvention | null,
  { sent, both }: SentMask,
): Promise<Picture> {
  if (convention === null) return both
  return convention === 'alpha' ? pictures.replaceAlpha(sent, sent) : pictures.channel(both.bytes, 'rgb')
}

function ofParameter(name: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof ServiceError) || error.refusal !== 'invalid_field') throw error
    throw new ServiceError('invalid_field', `${name}: ${error.message}`, { details: { field: name }, cause: error })
  }
}

async function keepPng({ assets }: ImageParts, accountId: string, name: string, bytes: Uint8Array): Promise<Asset> {
  const received = await assets.receive([bytes], { accountId })
  return received.place({ accountId, folder: 'input', name, contentType: 'image/png', overwrite: false })
}

function toReference({ id, filePath }: Asset): JsonValue {
  return { __type: 'core/ASSET', info: { id, file_path: filePath } }
}

/** One for each run: all alike but for the seed, which counts up. */
function toItems(map: InputMap, inputs: JsonObject, n: number): readonly JsonObject[] {
  if (map.count !== null || n === 1) return [inputs]
  const { seed } = map
  if (seed === null) return Array.from({ length: n }, () => inputs)
  const given = Object.hasOwn(inputs, seed.name) ? inputs[seed.name] : null
  const first = readSeed(given)
  // What is no number is for the check of inputs to refuse.
  if (given !== null && first === null) return [inputs]
  const start = first === null || first === -1n ? BigInt(randomInt(2 ** 47)) : first
  return Array.from({ length: n }, (_, index) => ({
    ...inputs,
    [seed.name]: keepNumber(String(toSeed(seed, start, index))),
  }))
}

function readSeed(value: JsonValue): bigint | null {
  return value !== null && /^-?\d{1,30}$/.test(String(value)) ? BigInt(String(value)) : null
}

/** Counts on from the lowest seed behind the highest one. */
function toSeed({ minimum, maximum }: SeedInput, start: bigint, index: number): bigint {
  const [low, high] = [readSeed(minimum) ?? 0n, readSeed(maximum) ?? 2n ** 64n - 1n]
  const from = index === 0 ? start : start > high || start < low ? low : start
  const seed = from + BigInt(index)
  return index > 0 && seed > high ? low + (seed - high - 1n) : seed
}

interface Start extends Resolved {
  readonly items: readonly JsonObject[]
}

async function submit(parts: ImageParts, call: ImageCall, { endpoint, version, items }: Start): Promise<Job[]> {
  const { runs } = parts.endpoints
  const { accountId, keyId, endpoints, pool } = call.context
  const common = {
    ...{ accountId, keyId, endpoints, pool, idempotencyKey: call.idempotencyKey, areTexts: call.form !== null },
    ...{ extraData: null, priority: 0, metadata: toLabels(call.request) },
    // The version that the inputs were put together for, even if the endpoint moves on in this moment.
    reference: `${nameFor(call.context.accountId, endpoint)}@${version.number}`,
  }
  if (items.length === 1 && call.idempotencyKey === null) return [(await runs.run({ ...common, inputs: items[0] })).job]
  // A batch that comes again with its key and its content is answered with the jobs that it has made.
  const { jobIds } = await runs.runMany({ ...common, items, isWhole: true, digest: call.digest })
  return Promise.all(jobIds.flatMap((id) => (id === null ? [] : [parts.jobs.reader.find(accountId, id)])))
}

function toLabels({ user }: ImageRequest): Record<string, string> {
  return user === null ? {} : { user }
}

/** Under the names of the parameters. */
function toRequestError(error: unknown, map: InputMap): unknown {
  const [item] = error instanceof BatchRefusedError ? error.items : []
  const known =
    item === undefined ? error : new ServiceError(item.refusal, item.message, { details: item.details ?? undefined })
  if (!(known instanceof ServiceError) || known.refusal !== 'invalid_input') return known
  const { inputs } = known.details as { readonly inputs: readonly { readonly name: string }[] }
  const told = inputs.map((problem) => ({ ...problem, name: paramOf(map, problem.name) }))
  return new ServiceError('invalid_input', known.message, { details: { inputs: told } })
}
