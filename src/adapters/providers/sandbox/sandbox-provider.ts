/**
 * `sandbox/*`: models that need no provider, no key and no network. The data file of a model names what it does, as
 * `{"behaviour": "refuse"}`; `latency_ms` in the input says how long it takes. A task keeps all it needs in its handle, so it
 * can be finished after a restart too.
 */
import { crc32, deflateSync } from 'node:zlib'
import type { Clock } from '../../../../lib/clock.ts'
import { writeChunks } from '../../../../lib/files/png-chunks.ts'
import { MAX_TIMER_MS } from '../../../../lib/waiting/sleep.ts'
import { isRecord, type Json, type JsonRecord, type Model, readJsonPath } from '../../../domain/models/catalog/model.ts'
import type { Provider, ProviderOptions, ProviderRefusal, ProviderResult } from '../../../domain/models/provider.ts'
import type { ValidationFailure } from '../../../domain/models/router-error.ts'
import { createEventReading } from '../declarative/answer/read-events.ts'

const POLL_MS = 250

interface SandboxDeps {
  readonly clock: Clock
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
}

interface SandboxTask {
  readonly due_at: string
  readonly input: JsonRecord
}

export function createSandboxProvider({ clock, sleep }: SandboxDeps): Provider {
  /** null: it was stopped before it answered. Like a real provider it goes on past the caller's deadline. */
  async function behave(name: BehaviourName, input: JsonRecord, { signal }: ProviderOptions) {
    const answer = BEHAVIOURS[name](input)
    const waitMs = answer === 'never' ? MAX_TIMER_MS : latencyOf(input)
    if (waitMs > 0) await sleep(waitMs, signal)
    return signal.aborted || answer === 'never' ? null : answer
  }

  return {
    name: 'sandbox',
    access: () => 'service_key',
    checkModel: checkSandboxModel,
    deduplicates: () => true,
    async submit({ model, input }, options) {
      if (model.returns === 'poll') {
        const handle: SandboxTask = {
          due_at: new Date(clock.now().getTime() + latencyOf(input)).toISOString(),
          input: forHandle(input),
        }
        return {
          outcome: 'accepted',
          handle: { ...handle },
          pollAfterMs: Math.min(POLL_MS, Math.max(1, latencyOf(input))),
        }
      }
      const answer = await behave(behaviourOf(model), input, options)
      return answer === null ? { outcome: 'refused', refusal: outOfTime() } : toOutcome(answer)
    },
    async poll({ model, handle }) {
      const { due_at, input } = readTask(handle)
      const leftMs = Date.parse(due_at) - clock.now().getTime()
      const answer = BEHAVIOURS[behaviourOf(model)](input)
      if (leftMs > 0 || answer === 'never')
        return { outcome: 'pending', pollAfterMs: Math.max(1, Math.min(POLL_MS, leftMs)) }
      return toOutcome(answer)
    },
    async cancel() {},
  }
}

export function checkSandboxModel({ adapter }: Model): readonly string[] {
  const known = Object.keys(BEHAVIOURS).join(', ')
  return isBehaviour(adapter['behaviour']) ? [] : [`adapter.behaviour must be one of ${known}`]
}

function behaviourOf({ adapter }: Model): BehaviourName {
  const name = adapter['behaviour']
  return isBehaviour(name) ? name : 'echo'
}

function latencyOf(input: JsonRecord): number {
  const latency = input['latency_ms']
  return typeof latency === 'number' ? latency : 0
}

/** Handles are stored unencrypted, so they hold only what the behaviour needs, and nothing long. */
function forHandle(input: JsonRecord): JsonRecord {
  const { value = null } = input
  return JSON.stringify(value).length <= 1000 ? { value } : { value: 'done' }
}

function readTask(handle: Json): SandboxTask {
  if (!isRecord(handle) || typeof handle['due_at'] !== 'string' || !isRecord(handle['input'])) {
    throw new Error('this handle is not one of the sandbox')
  }
  return { due_at: handle['due_at'], input: handle['input'] }
}

function outOfTime(): ProviderRefusal {
  return { reason: 'timeout', message: 'the sandbox did not answer', upstreamStatus: null, generation: 'ended' }
}

function toOutcome(answer: ProviderResult | ProviderRefusal) {
  return 'reason' in answer
    ? ({ outcome: 'refused', refusal: answer } as const)
    : ({ outcome: 'finished', result: answer } as const)
}

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
  'chat',
] as const
type BehaviourName = (typeof BEHAVIOUR_NAMES)[number]

/**
 * What the sandbox's models do. Each shows one thing that real providers do sooner or later, always the same for the same input,
 * so that a client can be built and tested without an account at any provider.
 */
const BEHAVIOURS: Readonly<Record<BehaviourName, Behaviour>> = {
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
  chat: (input) => (input['stream'] === true ? streamChat(input) : toJson(answerChat(input))),
}

const CHAT_MODEL = 'sandbox/chat'
const CHARACTERS_PER_TOKEN = 4
// A stream says each word with a hundred times its letters around it.
const MAX_SAID_CHARACTERS = 10_000
const CHAT_USAGE = { usage: readJsonPath('usage'), cost: null }

/** The last words of the conversation, as an answer to it. */
function answerChat({ messages }: JsonRecord) {
  const said = Array.isArray(messages) ? messages : []
  const last: Json = said.at(-1) ?? null
  const content = toText(isRecord(last) ? last['content'] : null, 'Hello').slice(0, MAX_SAID_CHARACTERS)
  const [asked, made] = [said.reduce<number>((sum, each) => sum + lengthOf(each), 0), content.length].map((count) =>
    Math.ceil(count / CHARACTERS_PER_TOKEN),
  )
  return {
    ...{ id: 'chatcmpl-sandbox', object: 'chat.completion', created: 0, model: CHAT_MODEL },
    choices: [
      { index: 0, message: { role: 'assistant', content, refusal: null }, logprobs: null, finish_reason: 'stop' },
    ],
    usage: { prompt_tokens: asked, completion_tokens: made, total_tokens: asked + made },
  }
}

function lengthOf(message: Json): number {
  return isRecord(message) ? toText(message['content'], '').length : 0
}

function isBehaviour(name: unknown): name is BehaviourName {
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

/** The same, a word at a time. */
function streamChat(input: JsonRecord): ProviderResult {
  const { choices, usage, ...about } = answerChat(input)
  const [{ message }] = choices as unknown as readonly [{ readonly message: { readonly content: string } }]
  const words = message.content.split(/(?<= )/)
  const toChunk = (delta: JsonRecord, more: JsonRecord = {}) => ({
    ...about,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...more }],
    usage: null,
  })
  const chunks = [
    toChunk({ role: 'assistant', content: '' }),
    ...words.map((content) => toChunk({ content })),
    toChunk({}, { finish_reason: 'stop' }),
    { ...toChunk({}), choices: [], usage },
  ]
  const events = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]']
  return {
    body: toEvents(events),
    contentType: 'text/event-stream',
    ...{ usage: null, costMicros: null },
    events: createEventReading(CHAT_USAGE, input),
  }
}

async function* toEvents(events: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const event of events) yield Buffer.from(`data: ${event}\n\n`)
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

const RGB = 2
const BYTES_PER_PIXEL = 3

interface PictureOptions {
  readonly width: number
  readonly height: number
  readonly seed: number
}

/** A PNG that fades from one colour to another; the seed chooses both. */
function drawPicture({ width, height, seed }: PictureOptions): Buffer {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, RGB, 0, 0, 0], 8)
  const png = writeChunks([
    { type: 'IHDR', body: head },
    { type: 'IDAT', body: deflateSync(pixels(width, height, seed)) },
    { type: 'IEND', body: new Uint8Array(0) },
  ])
  return Buffer.from(png.buffer)
}

function pixels(width: number, height: number, seed: number): Buffer {
  const stride = 1 + width * BYTES_PER_PIXEL
  const rows = Buffer.alloc(stride * height)
  const from = colourOf(seed)
  const to = colourOf(seed + 1)
  for (let y = 0; y < height; y++) {
    const share = height === 1 ? 0 : y / (height - 1)
    const row = from.map((value, index) => Math.round(value + (to[index] - value) * share))
    for (let x = 0; x < width; x++) rows.set(row, y * stride + 1 + x * BYTES_PER_PIXEL)
  }
  return rows
}

function colourOf(seed: number): number[] {
  const mixed = crc32(Buffer.from(String(seed)))
  return [mixed & 0xff, (mixed >>> 8) & 0xff, (mixed >>> 16) & 0xff]
}
