/**
 * Reads an answer that comes as events in OpenAI's form for conversations: cuts it where events end, so that nobody is ever given half
 * of one, and notes what it says it used and whether it is whole.
 */
import { isRecord, type JsonRecord } from '../../../../domain/models/catalog/model.ts'
import type { EventReading } from '../../../../domain/models/provider.ts'
import type { CompiledModel } from '../rules/compile-model.ts'
import { readCost, readUsage } from './read-answer.ts'

const MAX_EVENT_BYTES = 1024 * 1024
const EVENT_ENDS = ['\n\n', '\r\n\r\n']
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
  let waiting: Buffer = NOTHING
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

  /** Throws for what is no event of such an answer. */
  function readWhole(bytes: Buffer): void {
    for (const event of bytes.toString('utf8').split(/\r?\n\r?\n/)) {
      const lines = event.split(/\r?\n/).filter((line) => line.startsWith('data:'))
      const data = lines.map((line) => line.slice('data:'.length).trim()).join('\n')
      if (data === '[DONE]') isOver = true
      else if (data !== '') note(JSON.parse(data))
    }
  }

  return {
    read(chunk) {
      waiting = waiting.length === 0 ? Buffer.from(chunk) : Buffer.concat([waiting, chunk])
      const end = Math.max(...EVENT_ENDS.map((text) => endOfLast(waiting, text)))
      if (waiting.length - end > MAX_EVENT_BYTES) throw new Error('an event is too long')
      const whole = waiting.subarray(0, end)
      waiting = waiting.subarray(end)
      readWhole(whole)
      return whole
    },
    end(isEnded) {
      let rest: Buffer = NOTHING
      try {
        if (isEnded) {
          readWhole(waiting)
          rest = waiting
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

/** Behind the end of the last one; 0: there is none. */
function endOfLast(bytes: Buffer, text: string): number {
  const at = bytes.lastIndexOf(text)
  return at === -1 ? 0 : at + text.length
}

// What names a thing is no text of a conversation, nor is a picture that is written out.
const NAMES: ReadonlySet<string> = new Set(['role', 'type', 'id'])

function countText(value: JsonRecord[string]): number {
  if (typeof value === 'string') return value.startsWith('data:') ? 0 : value.length
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + countText(item), 0)
  if (!isRecord(value)) return 0
  return Object.entries(value).reduce((sum, [name, item]) => sum + (NAMES.has(name) ? 0 : countText(item)), 0)
}
