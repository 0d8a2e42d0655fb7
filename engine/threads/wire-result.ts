/** The result of a call on its way from a compute thread to the engine thread. File bytes move, they are not copied. */
import { type CallResult, GraphBuilder, type MadeReport } from '../node/node-context.ts'
import { Blocker, type Value } from '../values/value.ts'
import { fromWire, fromWireRecord, type Recognise, toWire, toWireRecord } from '../values/wire-value.ts'
import type { WireResult } from './protocol.ts'

export function toWireResult({ outputs, report, expand }: CallResult): WireResult {
  return {
    outputs: toWire(outputs instanceof Blocker ? outputs : [...outputs]),
    report: report ?? null,
    expand: expand?.nodes.map((node) => ({ ...node, inputs: toWireRecord(node.inputs) })) ?? null,
  }
}

export function fromWireResult({ outputs, report, expand }: WireResult, recognise: Recognise): CallResult {
  const read = fromWire(outputs, recognise)
  return {
    outputs: read instanceof Blocker ? read : (read as Value[]),
    ...(report !== null && { report }),
    ...(expand !== null && { expand: rebuild(expand, recognise) }),
  }
}

function rebuild(nodes: NonNullable<WireResult['expand']>, recognise: Recognise): GraphBuilder {
  const graph = new GraphBuilder('')
  for (const { id, classType, inputs } of nodes) graph.node(classType, fromWireRecord(inputs, recognise), id)
  return graph
}

/** The memory of a report's files, each once and only where a file owns all of it. */
export function transferable(report: MadeReport | null): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>()
  for (const items of Object.values(report ?? {})) {
    for (const item of items) {
      if (item.kind === 'file' && item.bytes.byteLength === item.bytes.buffer.byteLength) buffers.add(item.bytes.buffer)
    }
  }
  return [...buffers]
}
