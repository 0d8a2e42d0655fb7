/**
 * What the sandbox's models do. Each shows one thing that real providers do sooner or later, always the same for the same input,
 * so that a client can be built and tested without an account at any provider.
 */

import type { Json, JsonRecord } from '../../../domain/models/catalog/model.ts'
import type { ProviderRefusal, ProviderResult } from '../../../domain/models/provider.ts'
import type { ValidationFailure } from '../../../domain/models/router-error.ts'
import { drawPicture } from './sandbox-picture.ts'

/** `never`: no answer comes. */
type Behaviour = (input: JsonRecord) => ProviderResult | ProviderRefusal | 'never'

const BEHAVIOUR_NAMES = [
  'echo',
  'image',
  'task',
  'refuse',
  'invalid',
  'rate_limit',
  'fail',
  'broken',
  'empty',
  'provider_timeout',
  'silent',
  'large',
] as const
export type BehaviourName = (typeof BEHAVIOUR_NAMES)[number]

export const BEHAVIOURS: Readonly<Record<BehaviourName, Behaviour>> = {
  echo: (input) => toJson({ output: input['value'] ?? null }),
  image: (input) => {
    const size = { width: toNumber(input['width'], 256), height: toNumber(input['height'], 256) }
    const bytes = drawPicture({ ...size, seed: toNumber(input['seed'], 0) })
    return toJson({ data: [{ b64_json: bytes.toString('base64'), mime_type: 'image/png' }], ...size })
  },
  task: (input) => toJson({ status: 'succeeded', output: input['value'] ?? 'done' }),
  refuse: (input) => ({
    reason: 'policy',
    message: `the sandbox refuses this content: ${toText(input['reason'], 'it was asked to')}`,
    upstreamStatus: 400,
    generation: 'ended',
    costMicros: null,
  }),
  invalid: (input) => ({
    reason: 'invalid',
    message: 'the sandbox does not accept this input',
    failures: toFailures(input['steps'] ?? 51),
    upstreamStatus: 422,
    generation: 'none',
  }),
  rate_limit: () => failed('the sandbox is too busy', { status: 429, generation: 'none' }),
  fail: () => failed('the sandbox failed, as it was asked to', { status: 500, generation: 'ended' }),
  broken: () => failed('the answer of the sandbox is no JSON', { status: 200, generation: 'ended' }),
  empty: () => failed('the sandbox finished without any output', { status: 200, generation: 'ended' }),
  provider_timeout: () => ({
    reason: 'timeout',
    message: 'the sandbox ran out of its own time',
    upstreamStatus: 504,
    generation: 'ended',
  }),
  silent: () => 'never',
  large: (input) => ({
    body: pattern(toNumber(input['size_bytes'], 1_000_000)),
    contentType: 'application/octet-stream',
    usage: null,
    costMicros: null,
  }),
}

export function isBehaviour(name: unknown): name is BehaviourName {
  return typeof name === 'string' && Object.hasOwn(BEHAVIOURS, name)
}

/** As a provider words them: with its own bounds and the value that it refused. */
function toFailures(steps: Json): readonly ValidationFailure[] {
  const tooSmall = { loc: ['body', 'image_url'], msg: 'the picture is too small', type: 'image_too_small' }
  const tooMany = { loc: ['body', 'steps'], msg: 'must be at most 50', type: 'less_than_equal', input: steps }
  return [
    { ...tooSmall, ctx: { min_width: 512 } },
    { ...tooMany, ctx: { limit_value: 50 } },
  ]
}

const CHUNK_BYTES = 64 * 1024

/** A repeated pattern, so that a reader can tell whether something is missing. */
async function* pattern(sizeBytes: number): AsyncGenerator<Uint8Array> {
  const chunk = Buffer.alloc(CHUNK_BYTES, 'abcdefghijklmnopqrstuvwxyz012345')
  for (let left = sizeBytes; left > 0; left -= CHUNK_BYTES) yield left < CHUNK_BYTES ? chunk.subarray(0, left) : chunk
}

function toJson(document: JsonRecord): ProviderResult {
  const body = Buffer.from(`${JSON.stringify(document)}\n`)
  return { body, contentType: 'application/json', usage: null, costMicros: null }
}

function failed(
  message: string,
  { status, generation }: { readonly status: number; readonly generation: 'none' | 'ended' },
): ProviderRefusal {
  return { reason: 'failed', message, upstreamStatus: status, generation }
}

function toNumber(value: unknown, fallback: number): number {
  return typeof value === 'number' ? value : fallback
}

function toText(value: unknown, fallback: string): string {
  return typeof value === 'string' && value !== '' ? value : fallback
}
