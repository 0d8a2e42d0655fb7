/**
 * How much text a node may make. Python has no limit but memory; a service has: a few characters of input (an empty search
 * text, a width of a billion) could otherwise ask for more than the process has.
 */
import type { Cost, EngineNode } from '../node/define-node.ts'
import { NodeError } from '../node/node-error.ts'

const MAX_TEXT_LENGTH = 2 ** 24

// The longest text that is allowed is searched in well under a second. A pattern of a few characters can take years.
const TEXT_CPU_MS = 3000

/** A node whose work cannot be told from the size of its inputs: each call has a few seconds of processor time. */
export function boundCpu(node: EngineNode): EngineNode {
  return { ...node, cpuLimitMs: TEXT_CPU_MS }
}

export function refuseLongText(length: number): void {
  if (length <= MAX_TEXT_LENGTH) return
  throw new NodeError(
    'MemoryError',
    `the text would be ${length} characters long; at most ${MAX_TEXT_LENGTH} are allowed`,
  )
}

// A text of this length is handled in well under a millisecond, also by the slower of the text nodes.
const INLINE_LENGTH = 8192

/** Short texts are handled where they are, long ones on the pool. */
export function costOfTexts(inputs: Readonly<Record<string, unknown>>): Cost {
  let length = 0
  for (const input of Object.values(inputs)) if (typeof input === 'string') length += input.length
  return length <= INLINE_LENGTH ? 'inline' : 'compute'
}

/** A text as a message shows it: cut, with an ellipsis that says so. */
export function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text
}
