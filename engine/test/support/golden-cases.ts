/** Recorded results of single nodes: how a case becomes a graph, and how far a result may be from it. */
import assert from 'node:assert/strict'
import { type JsonObject, type JsonValue, NumberText } from '../../../lib/json/lossless-json.ts'
import type { EngineEvent } from '../../graph/run-event.ts'
import { dumped, type GraphJson, outline, readFixture } from './harness.ts'

export interface GoldenCase {
  readonly class_type: string
  readonly inputs: JsonObject
  readonly outputs: JsonValue[][]
}

export interface GoldenCases {
  readonly graph_fragments: GraphJson
  readonly cases: Readonly<Record<string, GoldenCase>>
}

export function readGoldenCases(name: string): GoldenCases {
  return readFixture(`golden/${name}`) as unknown as GoldenCases
}

function addFragments(fragments: GraphJson, inputs: Readonly<Record<string, unknown>>, graph: GraphJson): void {
  for (const value of Object.values(inputs)) {
    if (!Array.isArray(value) || typeof value[0] !== 'string' || value[0] in graph) continue
    graph[value[0]] = fragments[value[0]]
    addFragments(fragments, graph[value[0]].inputs, graph)
  }
}

/** The node with what it links to, and a dump of every output slot. */
export function toGraph(golden: GoldenCases, { class_type, inputs, outputs }: GoldenCase): GraphJson {
  const graph: GraphJson = { subject: { class_type, inputs } }
  addFragments(golden.graph_fragments, inputs, graph)
  outputs.forEach((_, slot) => {
    graph[`dump${slot}`] = { class_type: 'TestDump', inputs: { source: ['subject', slot] } }
  })
  return graph
}

export function floatsOf(base64: string): Float32Array {
  const bytes = Buffer.from(base64, 'base64')
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
}

const numberOf = (value: JsonValue) => Number(value instanceof NumberText ? value.text : value)

/** Tensors within the tolerance, floats to twelve digits, everything else exactly. A dict may hold more keys. */
export function assertSame(actual: JsonValue, expected: JsonValue, tolerance: number): void {
  const [a, e] = [actual as JsonObject, expected as JsonObject]
  assert.equal(a.kind, e.kind)
  if (e.kind === 'tensor') {
    assert.deepEqual(a.shape, e.shape)
    const [left, right] = [floatsOf(a.f32_b64 as string), floatsOf(e.f32_b64 as string)]
    assert.equal(left.length, right.length)
    left.forEach((value, index) => {
      const distance = Math.abs(value - right[index])
      assert.ok(distance <= tolerance, `element ${index} differs by ${distance}`)
    })
  } else if (e.kind === 'float') {
    const [left, right] = [numberOf(a.value), numberOf(e.value)]
    assert.ok(Math.abs(left - right) <= 1e-12 * Math.abs(right), `${left} is not ${right}`)
  } else if (e.kind === 'dict') {
    const members = a.value as JsonObject
    for (const [key, value] of Object.entries(e.value as JsonObject)) {
      assert.ok(key in members, `${key} is missing`)
      assertSame(members[key], value, tolerance)
    }
  } else if (e.kind === 'list') {
    const [left, right] = [a.value as JsonValue[], e.value as JsonValue[]]
    assert.equal(left.length, right.length)
    right.forEach((value, index) => {
      assertSame(left[index], value, tolerance)
    })
  } else {
    assert.deepEqual(a.value, e.value)
  }
}

export function assertOutputs(events: readonly EngineEvent[], { outputs }: GoldenCase, tolerance: number): void {
  assert.equal(events.at(-1)?.type, 'succeeded', `${outline(events)} ${JSON.stringify(events.at(-1))}`)
  outputs.forEach((expected, slot) => {
    const actual = dumped(events, `dump${slot}`)
    assert.equal(actual.length, expected.length)
    expected.forEach((value, index) => {
      assertSame(actual[index], value, tolerance)
    })
  })
}
