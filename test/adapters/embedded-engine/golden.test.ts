/** Results of single nodes, recorded from a real ComfyUI, within the tolerances that the recordings state. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JsonObject, JsonValue } from '../../../src/lib/lossless-json.ts'
import { NumberText } from '../../../src/lib/lossless-json.ts'
import { dumped, FIXTURES, type GraphJson, openTestEngine, readFixture, type TestEngine } from './support/harness.ts'

interface GoldenCase {
  readonly class_type: string
  readonly inputs: JsonObject
  readonly outputs: JsonValue[][]
}

const golden = readFixture('golden/golden.json') as unknown as {
  graph_fragments: GraphJson
  cases: Record<string, GoldenCase>
}

const files = Object.fromEntries(
  ['a.png', 'b.png', 'c.png', 'rgba.png'].map((name) => [name, `${FIXTURES}golden/inputs/${name}`]),
)

let engine: TestEngine
before(async () => {
  engine = await openTestEngine({ threads: 2 })
})
after(() => engine[Symbol.asyncDispose]())

function addFragments(inputs: Readonly<Record<string, unknown>>, graph: GraphJson): void {
  for (const value of Object.values(inputs)) {
    if (!Array.isArray(value) || typeof value[0] !== 'string' || value[0] in graph) continue
    graph[value[0]] = golden.graph_fragments[value[0]]
    addFragments(graph[value[0]].inputs, graph)
  }
}

function toGraph({ class_type, inputs, outputs }: GoldenCase): GraphJson {
  const graph: GraphJson = { subject: { class_type, inputs } }
  addFragments(inputs, graph)
  outputs.forEach((_, slot) => {
    graph[`dump${slot}`] = { class_type: 'TestDump', inputs: { source: ['subject', slot] } }
  })
  return graph
}

function floats(base64: string): Float32Array {
  const bytes = Buffer.from(base64, 'base64')
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
}

function numberOf(value: JsonValue): number {
  return Number(value instanceof NumberText ? value.text : value)
}

function assertSame(actual: JsonValue, expected: JsonValue, tolerance: number): void {
  const [a, e] = [actual as JsonObject, expected as JsonObject]
  assert.equal(a.kind, e.kind)
  if (e.kind === 'tensor') {
    assert.deepEqual(a.shape, e.shape)
    const [left, right] = [floats(a.f32_b64 as string), floats(e.f32_b64 as string)]
    const worst = left.reduce((most, value, index) => Math.max(most, Math.abs(value - right[index])), 0)
    assert.ok(worst <= tolerance, `differs by ${worst}`)
  } else if (e.kind === 'float') {
    const [left, right] = [numberOf(a.value), numberOf(e.value)]
    assert.ok(Math.abs(left - right) <= 1e-12 * Math.abs(right), `${left} is not ${right}`)
  } else {
    assert.deepEqual(a.value, e.value)
  }
}

for (const [name, golden_] of Object.entries(golden.cases)) {
  test(`${name} gives what ComfyUI gave`, async () => {
    const events = await engine.run(toGraph(golden_), { files })
    // What went through 8 bit is n/255 exactly.
    const tolerance = name.includes('lanczos') ? 1e-6 : 1e-5
    golden_.outputs.forEach((expected, slot) => {
      const actual = dumped(events, `dump${slot}`)
      assert.equal(actual.length, expected.length)
      expected.forEach((value, index) => {
        assertSame(actual[index], value, tolerance)
      })
    })
  })
}
