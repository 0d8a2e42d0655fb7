/** What an endpoint takes and gives, as an OpenAPI 3.1 document of its own. Pure. */
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { Endpoint, EndpointVersion } from '../../../domain/endpoints/endpoint.ts'
import { toInputSchema } from '../../../domain/endpoints/input-schema.ts'
import { toSamples } from './endpoint-samples.ts'
import { API_PATH, type LinkBase } from './job-view.ts'

interface Described {
  readonly endpoint: Endpoint
  readonly version: EndpointVersion
  /** What the reader calls the version; left out: it is the current one, also when another has become current. */
  readonly selector?: string
}

/** One operation for each endpoint, and what every caller needs beside it: reading and cancelling a run, and the errors. */
export function toOpenapi(
  described: readonly Described[],
  { origin, mountPrefix }: LinkBase,
  needsCredentials: boolean,
): JsonObject {
  const [only] = described.length === 1 ? described : []
  const server = `${origin}${mountPrefix}`
  return {
    openapi: '3.1.0',
    info: {
      title: only?.endpoint.title ?? 'Endpoints',
      version: only === undefined ? '1' : String(only.version.number),
      ...(only !== undefined && only.endpoint.description !== '' && { description: only.endpoint.description }),
    },
    servers: [{ url: server }],
    ...(needsCredentials && { security: [{ bearer: [] }] }),
    paths: {
      ...Object.fromEntries(
        described.map((each) => [pathOf(each), toRunPath(each, { url: server + pathOf(each), needsCredentials })]),
      ),
      ...JOB_PATHS,
    },
    components: {
      ...(needsCredentials && { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }),
      schemas: SCHEMAS,
    },
  }
}

function pathOf({ endpoint, selector }: Described): string {
  return `${API_PATH}/endpoints/${encodeURIComponent(endpoint.name)}${selector === undefined ? '' : `@${selector}`}/runs`
}

function toRunPath(
  { endpoint, version }: Described,
  call: { readonly url: string; readonly needsCredentials: boolean },
): JsonObject {
  const { name, title, description } = endpoint
  const inputs = toInputSchema(version.inputs)
  const example = Object.fromEntries(
    version.inputs.flatMap((input) => (input.type === 'seed' ? [] : [[input.name, input.example]])),
  )
  const results: JsonObject = {
    type: 'object',
    properties: Object.fromEntries(
      version.outputs.map((output) => [
        output.name,
        { type: 'array', title: output.title, items: { $ref: '#/components/schemas/Output' } },
      ]),
    ),
  }
  const own: JsonObject = { type: 'object', properties: { inputs, results } }
  const run: JsonObject = { allOf: [{ $ref: '#/components/schemas/Run' }, own] }
  const answer = (said: string): JsonObject => ({ description: said, content: { 'application/json': { schema: run } } })
  return {
    post: {
      operationId: `run_${name.replaceAll(/[-/]/g, '_')}`,
      summary: title,
      ...(description !== '' && { description }),
      parameters: RUN_PARAMETERS,
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              required: version.inputs.some(({ isRequired }) => isRequired) ? ['inputs'] : [],
              properties: { inputs, metadata: { type: 'object', additionalProperties: { type: 'string' } } },
            },
            examples: { example: { value: { inputs: example } } },
          },
        },
      },
      responses: {
        '200': answer('The run has ended: see its status.'),
        '201': answer('The run is queued.'),
        '202': answer('The run has not ended yet.'),
        '422': {
          description: 'Inputs are wrong; `details.inputs` names each.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
        default: {
          description: 'Refused.',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
      'x-codeSamples': toSamples({ ...call, inputs: example }),
    },
  }
}

const RUN_PARAMETERS: JsonValue[] = [
  {
    name: 'Prefer',
    in: 'header',
    schema: { type: 'string', examples: ['wait=60'] },
    description: '`wait=n`: hold the answer until the run has ended, at most n seconds (1 to 60).',
  },
  { name: 'Idempotency-Key', in: 'header', schema: { type: 'string', maxLength: 255 } },
]
const ID = { name: 'id', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } }
const JOB = {
  description: 'The run.',
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Run' } } },
}
const JOB_PATHS: JsonObject = {
  [`${API_PATH}/jobs/{id}`]: {
    get: { operationId: 'get_run', summary: 'Read a run', parameters: [ID], responses: { '200': JOB } },
  },
  [`${API_PATH}/jobs/{id}/cancel`]: {
    post: { operationId: 'cancel_run', summary: 'Cancel a run', parameters: [ID], responses: { '200': JOB } },
  },
}
const SCHEMAS: JsonObject = {
  Run: {
    type: 'object',
    required: ['id', 'status', 'outputs'],
    properties: {
      id: { type: 'string', format: 'uuid' },
      status: { type: 'string', enum: ['queued', 'running', 'canceling', 'succeeded', 'failed', 'canceled'] },
      outputs: { type: 'array', items: { $ref: '#/components/schemas/Output' } },
      error: {
        type: ['object', 'null'],
        properties: { code: { type: 'string' }, message: { type: 'string' } },
      },
      endpoint: { type: 'object', properties: { name: { type: 'string' }, version: { type: 'integer' } } },
    },
  },
  Output: {
    type: 'object',
    required: ['id', 'name', 'type', 'content_type', 'url'],
    properties: {
      id: { type: 'string' },
      name: { type: 'string' },
      type: { type: 'string' },
      content_type: { type: 'string' },
      size_bytes: { type: 'integer' },
      url: { type: 'string', format: 'uri' },
    },
  },
  Error: {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message'],
        properties: {
          code: { type: 'string' },
          message: { type: 'string' },
          details: {
            type: ['object', 'null'],
            properties: {
              inputs: {
                type: 'array',
                items: {
                  type: 'object',
                  properties: { name: { type: 'string' }, reason: { type: 'string' }, message: { type: 'string' } },
                },
              },
            },
          },
        },
      },
    },
  },
}
