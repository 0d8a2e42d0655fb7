/**
 * Reads an answer that comes as events in OpenAI's form for conversations: cuts it where events end, so that nobody is ever given half
 * of one, and notes what it says it used and whether it is whole.
 */
import { isRecord, type JsonRecord } from '../../../../domain/models/catalog/model.ts'
import { type EventReading, UnreadableEvent } from '../../../../domain/models/provider.ts'
import type { CompiledModel } from '../rules/compile-model.ts'
import { readCost, readUsage } from './read-answer.ts'

// A picture that is written out within one has a few of these.
const MAX_EVENT_BYTES = 16 * 1024 * 1024
const NOTHING = Buffer.alloc(0)
const CHARACTERS_PER_TOKEN = 4

const FAREWELL = {
  error: {
    message: 'the provider broke off in the middle of its answer; what came of it is charged',
    ...{ type: 'server_error', param: null, code: 'provider_error' },
  },
}

/** `input`: what is counted where the answer does not say what it used. */
export function createEventReading(model: Pick<CompiledModel, 'usage' | 'cost'>, input: JsonRecord): EventReading {
  const cut = createCut()
  let usage: JsonRecord | null = null
  let costMicros: number | null = null
  let characters = 0
  let isOver = false
  let hasFailed = false

  function note(document: unknown): void {
    if (!isRecord(document)) throw new Error('an event is no object')
    if (document['error'] !== undefined && document['error'] !== null) hasFailed = true
    usage = readUsage({ document, headers: {} }, model) ?? usage
    costMicros = readCost(document, model) ?? costMicros
    const choices = document['choices']
    for (const choice of Array.isArray(choices) ? choices : []) {
      if (!isRecord(choice)) continue
      characters += countText(choice['delta'] ?? null)
      if (typeof choice['finish_reason'] === 'string') isOver = true
    }
  }

  function readEvent(event: Buffer): void {
    const lines = event
      .toString('utf8')
      .split(/\r?\n/)
      .filter((line) => line.startsWith('data:'))
    const data = lines.map((line) => line.slice('data:'.length).trim()).join('\n')
    if (data === '[DONE]') isOver = true
    else if (data !== '') note(JSON.parse(data))
  }

  return {
    read(chunk) {
      const whole = cut.take(chunk)
      let from = 0
      try {
        for (const end of endsOf(whole)) {
          readEvent(whole.subarray(from, end))
          from = end
        }
        if (cut.waitingBytes > MAX_EVENT_BYTES) throw new Error('an event is too long')
      } catch (error) {
        throw new UnreadableEvent(error instanceof Error ? error.message : String(error), whole.subarray(0, from))
      }
      return whole
    },
    end(isEnded) {
      let rest: Buffer = NOTHING
      try {
        if (isEnded) {
          const last = cut.rest()
          readEvent(last)
          rest = last
        }
      } catch {
        // Half an event is told to nobody.
      }
      const isWhole = isEnded && isOver && !hasFailed
      const hasOutput = characters > 0
      const farewell = Buffer.from(`data: ${JSON.stringify(FAREWELL)}\n\n`)
      return {
        ...{ isWhole, hasOutput, costMicros },
        rest: isWhole || hasFailed ? rest : farewell,
        usage: usage ?? (hasOutput ? estimate(input, characters) : null),
      }
    },
  }
}

/** Of an answer that did not come to where it says it. */
function estimate({ messages }: JsonRecord, characters: number): JsonRecord {
  const toTokens = (count: number) => Math.max(1, Math.ceil(count / CHARACTERS_PER_TOKEN))
  return { prompt_tokens: toTokens(countText(messages ?? null)), completion_tokens: toTokens(characters) }
}

const EVENT_ENDS = ['\n\n', '\r\n\r\n']
// One less than the longest.
const TAIL_BYTES = 3

/** Cuts bytes behind the last event that is whole. What waits is looked at once, in however small pieces it comes. */
function createCut() {
  let waiting: Buffer[] = []
  let waitingBytes = 0
  /** The last bytes of what waits: an end may begin in them. */
  let tail: Buffer = NOTHING

  function wait(bytes: Buffer): void {
    waiting.push(bytes)
    waitingBytes += bytes.length
    tail = Buffer.concat([tail, bytes.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES)
  }

  return {
    get waitingBytes() {
      return waitingBytes
    },
    take(chunk: Uint8Array): Buffer {
      const bytes = Buffer.from(chunk)
      const looked = Buffer.concat([tail, bytes])
      const end = Math.max(...EVENT_ENDS.map((text) => endOfLast(looked, text))) - tail.length
      if (end <= 0) {
        wait(bytes)
        return NOTHING
      }
      const whole = Buffer.concat([...waiting, bytes.subarray(0, end)])
      waiting = []
      waitingBytes = 0
      tail = NOTHING
      wait(bytes.subarray(end))
      return whole
    },
    rest: () => Buffer.concat(waiting),
  }
}

/** Behind the end of the last one; 0: there is none. */
function endOfLast(bytes: Buffer, text: string): number {
  const at = bytes.lastIndexOf(text)
  return at === -1 ? 0 : at + text.length
}

/** Behind each event. */
function* endsOf(bytes: Buffer): Generator<number> {
  const next = EVENT_ENDS.map((text) => bytes.indexOf(text))
  while (next.some((at) => at !== -1)) {
    const at = Math.min(...next.filter((each) => each !== -1))
    const end = at + (EVENT_ENDS[next.indexOf(at)] ?? '').length
    yield end
    for (const [index, text] of EVENT_ENDS.entries()) {
      const seen = next[index] ?? -1
      if (seen !== -1 && seen < end) next[index] = bytes.indexOf(text, end)
    }
  }
}

// What names a thing is no text of a conversation, nor is a picture that is written out.
const NAMES: ReadonlySet<string> = new Set(['role', 'type', 'id'])

function countText(value: JsonRecord[string]): number {
  if (typeof value === 'string') return value.startsWith('data:') ? 0 : value.length
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + countText(item), 0)
  if (!isRecord(value)) return 0
  return Object.entries(value).reduce((sum, [name, item]) => sum + (NAMES.has(name) ? 0 : countText(item)), 0)
}
