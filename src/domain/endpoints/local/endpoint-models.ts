/**
 * The endpoints of an account as models of the router: `local/<name>`, perhaps with a version (`local/card@stable`). They are in no catalogue,
 * and exist for their account only. A call costs what its job costs; the router itself holds and charges nothing.
 */
import { stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { writeUsd } from '../../../../lib/text/usd.ts'
import type { PoolPrice } from '../../credits/prices.ts'
import { ServiceError } from '../../errors.ts'
import type { OwnModels } from '../../models/access/own-models.ts'
import {
  isRecord,
  type Json,
  type JsonRecord,
  MODALITIES,
  type Model,
  type ModelInput,
} from '../../models/catalog/model.ts'
import type { Estimate } from '../../models/pricing/pricing.ts'
import type { Provider } from '../../models/provider.ts'
import { type Endpoint, type EndpointVersion, toJobPrice } from '../endpoint.ts'
import { toInputSchema } from '../input-schema.ts'
import type { EndpointCaller, Reach, Resolved } from '../reach.ts'
import { createInputCheck } from './input-failures.ts'
import { LOCAL } from './service-endpoints.ts'

interface EndpointModelsDeps {
  readonly endpoints: Pick<Reach, 'resolve'>
  /** Without what the service offers, which is in the catalogue. */
  readonly own: Pick<Reach, 'list'>
  readonly provider: () => Provider
  /** What a job of the account costs; null: nothing. `pool` null: the common one. */
  readonly priceOf: (accountId: string, pool: string | null) => PoolPrice | null
}

const PREFIX = `${LOCAL}/`

export function createEndpointModels({ endpoints, own, provider, priceOf }: EndpointModelsDeps): OwnModels {
  async function resolve(caller: EndpointCaller, reference: string): Promise<Resolved | null> {
    try {
      const resolved = await endpoints.resolve(caller, reference)
      // What the service offers is in the catalogue.
      return resolved.endpoint.isOfService === true ? null : resolved
    } catch (error) {
      if (error instanceof ServiceError && error.refusal === 'not_found') return null
      throw error
    }
  }

  return {
    async find(caller, id) {
      const resolved = id.startsWith(PREFIX) ? await resolve(caller, id.slice(PREFIX.length)) : null
      if (resolved === null) return null
      const { endpoint, version } = resolved
      const { deployment, price: ownPrice } = endpoint.settings
      return {
        model: toModel(id, resolved),
        checkInput: createInputCheck(version.inputs),
        provider: provider(),
        listedId: PREFIX + endpoint.name,
        estimate: () => toEstimate(ownPrice === null ? priceOf(caller.accountId, deployment) : toJobPrice(ownPrice)),
      }
    },
    async list(caller, { after, limit }) {
      if (after !== null && after > PREFIX && !after.startsWith(PREFIX)) return []
      const from = after?.startsWith(PREFIX) === true ? after.slice(PREFIX.length) : null
      return (await own.list(caller, { after: from, limit })).map(toListed)
    },
    // The handle of a call says all that is needed to collect it.
    toCollect: (id) => (id.startsWith(PREFIX) ? toListed({ name: id.slice(PREFIX.length), description: '' }) : null),
  }
}

function toListed({ name, description }: Pick<Endpoint, 'name' | 'description'>): Model {
  const input: ModelInput = { schema: null, modelField: null, modelName: name, modalities: [], example: null }
  return {
    ...{ id: PREFIX + name, provider: LOCAL, model: name, state: 'released', successor: null, entitlement: null },
    chargesOnPolicyRejection: 'no',
    input: description === '' ? input : { ...input, schema: { type: 'object', description } },
    output: { schema: ANSWER, mediaType: 'application/json', modalities: [] },
    ...{ returns: 'poll', price: { kind: 'free' }, deadlineMs: null, hosting: null, adapter: {}, isOwn: true },
  }
}

function toModel(id: string, { endpoint, version }: Pick<Resolved, 'endpoint' | 'version'>): Model {
  const { inputs, outputs } = version
  const listed = toListed(endpoint)
  const kinds = inputs.map((input) => (input.type === 'file' ? input.kind : 'text'))
  return {
    ...listed,
    ...{ id, model: id.slice(PREFIX.length) },
    input: {
      ...listed.input,
      schema: toSchema(endpoint, version),
      modalities: toModalities(kinds),
      example: toExample(version),
    },
    output: { ...listed.output, modalities: toModalities(outputs.map(({ kind }) => kind)) },
    adapter: { endpoint: `${endpoint.name}@${version.number}` },
  }
}

/** Documents of models are of OpenAPI 3.0: an input has one example there, and no media type. */
function toSchema({ description }: Endpoint, { inputs }: EndpointVersion): JsonRecord {
  const { properties, ...schema } = toPlain(toInputSchema(inputs))
  const changed = Object.entries(isRecord(properties) ? properties : {}).map(([name, property]) => {
    const { examples, contentMediaType: _, ...rest } = isRecord(property) ? property : {}
    const [example = null] = Array.isArray(examples) ? (examples as readonly Json[]) : []
    return [name, { ...rest, ...(example !== null && { example }) }]
  })
  return { ...schema, ...(description !== '' && { description }), properties: Object.fromEntries(changed) }
}

function toExample({ inputs }: EndpointVersion): JsonRecord {
  return toPlain(
    Object.fromEntries(inputs.flatMap(({ type, name, example }) => (type === 'seed' ? [] : [[name, example]]))),
  )
}

function toPlain(value: Parameters<typeof stringifyLosslessJson>[0]): JsonRecord {
  return JSON.parse(stringifyLosslessJson(value)) as JsonRecord
}

function toModalities(kinds: readonly string[]): Model['output']['modalities'] {
  return MODALITIES.filter((modality) => kinds.some((kind) => (kind === 'mask' ? 'image' : kind) === modality))
}

function toEstimate(price: PoolPrice | null): Estimate {
  if (price === null) return { source: 'exact', micros: 0 }
  const { perSecondMicros, minimumMicros: minMicros, holdMicros: maxMicros, isAgreed = false } = price
  if (isAgreed && perSecondMicros === 0) return { source: 'exact', micros: maxMicros }
  if (isAgreed) return { source: 'estimated', minMicros, maxMicros }
  const reason = `its job is charged $${writeUsd(price.perSecondMicros)} per second of execution, and at least $${writeUsd(price.minimumMicros)}`
  return { source: 'unknown', reason }
}

const TEXT: JsonRecord = { type: 'string' }
const ANSWER: JsonRecord = {
  type: 'object',
  required: ['files', 'texts', 'job_id', 'version'],
  properties: {
    files: {
      type: 'array',
      items: {
        type: 'object',
        required: ['output', 'name', 'content_type', 'data'],
        properties: { output: TEXT, name: TEXT, content_type: TEXT, data: { type: 'string', format: 'byte' } },
      },
    },
    texts: { type: 'array', items: TEXT },
    job_id: { type: 'string', format: 'uuid' },
    version: { type: 'integer' },
  },
}
