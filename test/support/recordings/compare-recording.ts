/**
 * Compares two transcripts of one run without what may differ: ids, times, random letters, the order of sets, and the order of
 * nodes that do not depend on each other (in ComfyUI it depends on hash tables). The rest is compared exactly, binary frames
 * included.
 */
import assert from 'node:assert/strict'
import sharp from 'sharp'
import { type JsonObject, type JsonValue, NumberText } from '../../../lib/json/lossless-json.ts'
import type { Frame } from '../clients/test-socket.ts'
import type { RecordedFrame } from './recorded-runs.ts'

/** A frame without what may differ. `node` is the node that it is about. */
interface Step {
  readonly node: string | null
  readonly text: string
}

type Data = Readonly<Record<string, unknown>>

const TEMP_NAME = /ComfyUI_temp_[a-z]{5}_\d{5}_\.png/g
const SETS: ReadonlySet<string> = new Set(['executed', 'current_outputs', 'outputs_to_execute', 'dependent_outputs'])

export async function compareFrames(
  ours: readonly Frame[],
  recorded: readonly RecordedFrame[],
  ids: ReadonlyMap<string, string>,
): Promise<void> {
  const back = new Map([...ids].map(([from, to]) => [to, from]))
  const actual = withoutRepeatedStatus(await toSteps(ours, back))
  const expected = withoutRepeatedStatus(await toSteps(recorded.map(toFrame), new Map()))
  const [a, b] = [texts(actual), texts(expected)]
  if (JSON.stringify(a) === JSON.stringify(b)) return
  // Each node tells its own story in the recorded order, and so does the run as a whole.
  assert.deepEqual(texts(withoutNode(actual)), texts(withoutNode(expected)))
  const nodes = new Set([...actual, ...expected].flatMap(({ node }) => node ?? []))
  for (const node of nodes) assert.deepEqual(texts(ofNode(actual, node)), texts(ofNode(expected, node)), `node ${node}`)
  assert.deepEqual(a.toSorted(), b.toSorted())
}

/** Both tell the length of the queue whenever they look, also where it has not changed: how often depends on time. */
function withoutRepeatedStatus(steps: readonly Step[]): Step[] {
  let last: string | null = null
  return steps.filter(({ text }) => {
    if (!text.startsWith('status ')) return true
    const isNew = text !== last
    last = text
    return isNew
  })
}

const texts = (steps: readonly Step[]) => steps.map(({ text }) => text)
const withoutNode = (steps: readonly Step[]) => steps.filter(({ node }) => node === null)
const ofNode = (steps: readonly Step[], id: string) => steps.filter(({ node }) => node === id)

function toFrame(frame: RecordedFrame): Frame {
  if ('binary' in frame) return { binary: Buffer.from(frame.binary, 'base64') }
  return { type: frame.type, data: toPlain(frame.data) }
}

/** Recordings are read without loss: `0.0` is not `0` to them. On the socket both are the number zero. */
function toPlain(data: JsonObject): Record<string, unknown> {
  const text = JSON.stringify(data, (_key, value: unknown) =>
    value instanceof NumberText ? Number(value.text) : value,
  )
  return JSON.parse(text) as Record<string, unknown>
}

async function toSteps(frames: readonly Frame[], back: ReadonlyMap<string, string>): Promise<Step[]> {
  const steps: Step[] = []
  let states: Data = {}
  for (const frame of frames) {
    if ('binary' in frame) steps.push(await toBinaryStep(frame.binary, back))
    else if (frame.type === 'progress_state') {
      const next = frame.data['nodes'] as Data
      steps.push(toStateStep(states, next, back))
      states = next
    } else steps.push(toTextStep(frame.type, frame.data, back))
  }
  return steps
}

/** What a `progress_state` tells anew: it repeats everything else, in an order that depends on all nodes before. */
function toStateStep(before: Data, after: Data, back: ReadonlyMap<string, string>): Step {
  const changed = Object.entries(after).filter(([id, state]) => JSON.stringify(state) !== JSON.stringify(before[id]))
  const gone = Object.keys(before).filter((id) => !Object.hasOwn(after, id))
  const node = changed.length === 1 ? changed[0][0] : null
  return { node, text: `progress_state ${rename(JSON.stringify({ changed, gone }), back)}` }
}

function toTextStep(type: string, data: Data, back: ReadonlyMap<string, string>): Step {
  const node = data['node'] ?? (type === 'execution_error' ? data['node_id'] : null)
  const shown = rename(JSON.stringify(toComparable(type, data)), back).replaceAll(TEMP_NAME, 'ComfyUI_temp.png')
  return { node: typeof node === 'string' ? node : null, text: `${type} ${shown}` }
}

function toComparable(type: string, data: Data): unknown {
  // The two servers differ in what they can do, not in that they say it.
  if (type === 'feature_flags') return { supports_preview_metadata: data['supports_preview_metadata'] }
  const entries = Object.entries(data).map(([key, value]) => {
    if (key === 'timestamp') return [key, typeof value]
    if (SETS.has(key) || (type === 'execution_cached' && key === 'nodes')) return [key, (value as string[]).toSorted()]
    // How a tensor is printed, and which frames a stack has, is the engine's own.
    if (key === 'traceback') return [key, (value as unknown[]).length === 0 ? 'empty' : 'lines']
    if (key === 'current_inputs') return [key, Array.isArray(value) ? 'none' : Object.keys(value as object)]
    return [key, value]
  })
  return Object.fromEntries(entries)
}

async function toBinaryStep(bytes: Buffer, back: ReadonlyMap<string, string>): Promise<Step> {
  const kind = bytes.readUInt32BE(0)
  if (kind === 3) {
    const idEnd = 8 + bytes.readUInt32BE(4)
    return { node: bytes.subarray(8, idEnd).toString(), text: `binary ${bytes.toString('hex')}` }
  }
  const start = kind === 4 ? 8 + bytes.readUInt32BE(4) : 8
  const head = kind === 4 ? rename(bytes.subarray(8, start).toString(), back) : String(bytes.readUInt32BE(4))
  const node = kind === 4 ? String((JSON.parse(head) as { node_id: string }).node_id) : null
  return { node, text: `binary ${kind} ${head} ${await describePicture(bytes.subarray(start))}` }
}

/** Two encoders never agree on bytes; a lossless picture must agree on every pixel, a lossy one on its form. */
async function describePicture(bytes: Buffer): Promise<string> {
  const { format, width, height, channels } = await sharp(bytes).metadata()
  const pixels = format === 'png' ? (await sharp(bytes).raw().toBuffer()).toString('hex') : ''
  return `${format} ${width}x${height}x${channels} ${pixels}`
}

function rename(text: string, back: ReadonlyMap<string, string>): string {
  return [...back].reduce((all, [from, to]) => all.replaceAll(from, to), text)
}

/** Everything that was recorded is there, in the same kinds of values; what is there beside it does not matter. */
export function assertSameShape(actual: JsonValue | undefined, recorded: JsonValue, where = 'body'): void {
  if (recorded === null) return
  if (Array.isArray(recorded)) {
    assert.ok(Array.isArray(actual), `${where} is a list`)
    assert.equal(actual.length, recorded.length, `${where} has as many entries`)
    for (const [index, entry] of recorded.entries()) assertSameShape(actual[index], entry, `${where}[${index}]`)
  } else if (isObject(recorded)) {
    assert.ok(isObject(actual), `${where} is an object`)
    for (const [key, value] of Object.entries(recorded)) {
      assert.ok(Object.hasOwn(actual, key), `${where} has ${key}`)
      assertSameShape(actual[key], value, `${where}.${key}`)
    }
  } else assert.equal(kindOf(actual), kindOf(recorded), `${where} is a ${kindOf(recorded)}`)
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return kindOf(value) === 'object'
}

function kindOf(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'list'
  if (typeof value === 'bigint' || value instanceof NumberText) return 'number'
  return typeof value
}
