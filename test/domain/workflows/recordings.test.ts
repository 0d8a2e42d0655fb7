/** Replays what a real ComfyUI 0.33.0 answered to POST /prompt against our validator. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isUiFormat, readGraph } from '../../../engine/graph/graph-json.ts'
import { validate } from '../../../engine/graph/validate/validate.ts'
import type { ValidationResult } from '../../../engine/graph/validate/validation-result.ts'
import {
  type JsonObject,
  type JsonValue,
  NumberText,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { readFixture, recordedCatalog } from '../../support/engines/recorded-catalog.ts'

const catalog = recordedCatalog()
// The files that the recorded server had.
const FILES: readonly JsonValue[] = ['test.png', 'a.png']

interface Recording {
  readonly request: {
    readonly json?: { readonly prompt?: JsonObject; readonly partial_execution_targets?: string[] }
    readonly raw?: string
  }
  readonly response: { readonly status: number; readonly body: JsonObject }
  readonly stored_input?: JsonValue
}

function replay({ request }: Recording): ValidationResult {
  const targets = request.json?.partial_execution_targets
  return validate(readGraph(request.json?.prompt ?? null), {
    catalog,
    checkInput: (_classType, _input, value) => (FILES.includes(value) ? true : `Invalid image file: ${value}`),
    ...(targets === undefined ? {} : { targets }),
  })
}

interface Comparable {
  dependent_outputs: string[]
  errors: { type: string; details: string; extra_info: { traceback?: unknown; cycle_nodes?: string[] } }[]
}

/** As the recordings ask to be compared: lists of outputs and errors as sets, cycles from any of their nodes, no tracebacks. */
function comparable(nodeErrors: unknown): unknown {
  const nodes = parseLosslessJson(stringifyLosslessJson(nodeErrors as JsonValue)) as unknown as Record<
    string,
    Comparable
  >
  for (const node of Object.values(nodes)) {
    node.dependent_outputs.sort()
    for (const error of node.errors) {
      delete error.extra_info.traceback
      if (error.type !== 'dependency_cycle') continue
      error.details = error.details.split(' -> ').slice(0, -1).sort().join()
      error.extra_info.cycle_nodes?.sort()
    }
    node.errors.sort((a, b) => (`${a.type} ${a.details}` < `${b.type} ${b.details}` ? -1 : 1))
  }
  return nodes
}

function assertSameAnswer(recording: Recording): ValidationResult {
  const { status, body } = recording.response
  const result = replay(recording)
  assert.equal(result.ok, status === 200)
  assert.deepEqual(comparable(result.nodeErrors), comparable(body.node_errors))
  assert.deepEqual(result.error, (body.error as unknown) ?? null)
  return result
}

// What the legacy surface decides before there is a graph to validate.
const NOT_ABOUT_THE_GRAPH = ['no prompt', 'bad json', 'bad prompt_id', 'ui workflow as prompt']

const validation = readFixture('validation.json') as unknown as Record<string, Recording>
for (const [name, recording] of Object.entries(validation)) {
  if (NOT_ABOUT_THE_GRAPH.includes(name)) continue
  test(`validation answers like ComfyUI: ${name}`, () => {
    assertSameAnswer(recording)
  })
}

test('the recorded editor export is recognised', () => {
  assert.equal(isUiFormat(validation['ui workflow as prompt'].request.json?.prompt), true)
})

const edge = readFixture('edge-validation.json') as unknown as Record<string, Recording>
for (const [name, recording] of Object.entries(edge)) {
  test(`validation answers like ComfyUI: ${name}`, () => {
    const { graph } = assertSameAnswer(recording)
    if (recording.stored_input !== undefined) assert.deepEqual(graph.get('2')?.inputs.width, recording.stored_input)
  })
}

test('constants are written back as ComfyUI stores them', () => {
  const booleans = replay(edge['string false for boolean']).graph
  assert.equal(booleans.get('1')?.inputs.value, true)
  const unwrapped = replay(edge['__value__ wrapper']).graph
  assert.equal(unwrapped.get('1')?.inputs.value, 5)
  const seed = replay(edge['seed 2^63-1']).graph
  assert.equal(seed.get('1')?.inputs.seed, 9223372036854775807n)
  const floats = replay(edge['media outputs']).graph
  assert.deepEqual(floats.get('15')?.inputs.fps, new NumberText('8.0'))
})

test('recorded partial targets select the outputs that run', () => {
  assert.deepEqual(replay(validation['partial targets']).goodOutputs, ['5'])
  assert.deepEqual(replay(validation['type mismatch']).goodOutputs, ['5'])
})
