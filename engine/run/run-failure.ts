/** How the failure of a run is reported: what went wrong, in which node, with which inputs. */
import { NumberText } from '../../lib/json/lossless-json.ts'
import type { EngineFailure } from '../graph/run-event.ts'
import { toFailureText } from '../node/node-error.ts'
import { Tensor } from '../tensor/tensor.ts'
import { type Slot, type Value, valueTypeName } from '../values/value.ts'
import type { LiveNode } from './live-graph.ts'
import type { RunState } from './run-state.ts'

/** A failure together with the node it happened in. */
export class NodeFailure extends Error {
  readonly live: LiveNode
  constructor(live: LiveNode, cause: unknown) {
    super('a node failed', { cause })
    this.live = live
  }
}

export function toFailure(error: unknown, nodeId: string | null, classType: string | null): EngineFailure {
  const { exceptionType, message, traceback } = toFailureText(error)
  return { code: 'node_execution_error', message, nodeId, classType, traceback, exceptionType }
}

/** The client does not know the nodes that expansion made: the submitted node is named in their stead. */
export function blame({ graph, given, executed }: RunState, { live, cause }: NodeFailure): EngineFailure {
  return {
    ...toFailure(cause, live.realId, graph.get(live.realId).node.classType),
    currentInputs: showInputs(given.get(live.id)),
    currentOutputs: [...graph.ids()],
    executed: [...executed],
  }
}

type ShownInputs = Readonly<Record<string, readonly unknown[]>>

const MAX_TEXT_LENGTH = 1000
const MAX_VALUES = 100
const MAX_INPUTS = 100

/** What a node was given: plain values as they are, everything else described, nothing long. */
function showInputs(lists: ReadonlyMap<string, Slot> | undefined): ShownInputs {
  const shown = [...(lists ?? [])].slice(0, MAX_INPUTS)
  // Not by assignment: an input may be called `__proto__`.
  return Object.fromEntries(shown.map(([name, values]) => [name, values.slice(0, MAX_VALUES).map(showValue)]))
}

function showValue(value: Value): unknown {
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value
  if (typeof value === 'string') return value.slice(0, MAX_TEXT_LENGTH)
  if (value instanceof NumberText) return Number(value.text)
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Tensor) return `tensor of [${value.shape.join(', ')}]`
  return `a value of type ${valueTypeName(value)}`
}
