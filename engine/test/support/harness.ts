/** A real engine with its threads, the test nodes added, and everything a test wants to see of a run. */
import { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { accessSync, readFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { CheckedGraph, type Engine, type EngineOptions, openEngine, type RunOptions } from '../../engine.ts'
import type { InputSource } from '../../files/input-files.ts'
import { readGraph } from '../../graph/graph-json.ts'
import type { EngineEvent, ReportedFile, ReportedItem } from '../../graph/run-event.ts'

export const FIXTURES = fileURLToPath(new URL('../../../test/fixtures/', import.meta.url))

export function readFixture(name: string): JsonValue {
  return parseLosslessJson(readFileSync(FIXTURES + name, 'utf8'))
}

export type GraphJson = Record<string, { class_type: string; inputs: Record<string, unknown> }>

export interface RunSettings {
  readonly owner?: string
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  readonly extraPngInfo?: JsonValue
  readonly runModel?: RunOptions['runModel']
  readonly signal?: AbortSignal
  onEvent?(event: EngineEvent): void
}

function toInput(file: string | Uint8Array): InputSource {
  // To the engine an absent file is one that is no media: a test would blame the wrong thing.
  if (typeof file === 'string') accessSync(file)
  async function* read() {
    if (typeof file !== 'string') yield file
  }
  const localPath = typeof file === 'string' ? file : null
  // The engine only compares hashes: any text that stands for the content will do.
  const hash = typeof file === 'string' ? file : Buffer.from(file).toString('base64')
  return { hash, localPath, read }
}

export interface TestEngine extends AsyncDisposable {
  readonly engine: Engine
  run(graph: GraphJson, settings?: RunSettings): Promise<EngineEvent[]>
}

export const NOON = new Date(2031, 0, 2, 12, 3, 4)

// The test nodes are written against the sources, so the engine must run from these (test/support/built-threads.ts).
const FROM_SOURCES = { ATELIER_TEST_ENGINE: 'sources' }

export async function openTestEngine(options: EngineOptions = {}): Promise<TestEngine> {
  const engine = await openEngine({
    threads: 1,
    memoryLimitBytes: 268_435_456,
    maxImagePixels: 10_000_000,
    clock: { now: () => NOON },
    nodeModules: [new URL('./test-nodes.ts', import.meta.url).href],
    ...options,
    ...(options.environment !== undefined && { environment: { ...options.environment, ...FROM_SOURCES } }),
  })
  return {
    engine,
    async run(graph, settings = {}) {
      const { files = {}, onEvent, ...options } = settings
      const inputs = new Map(Object.entries(files).map(([name, file]) => [name, toInput(file)]))
      const events: EngineEvent[] = []
      for await (const event of engine.run(new CheckedGraph(readGraph(graph as JsonValue)), { inputs, ...options })) {
        onEvent?.(event)
        events.push(event)
      }
      return events
    },
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  }
}

/** Events in a short form: `2+` started, `2.` finished, `2!` reported, `2?` blocked, `2~` progress, then the end. */
export function outline(events: readonly EngineEvent[]): string {
  const words: string[] = []
  for (const event of events) {
    if (event.type === 'node_started') words.push(`${event.nodeId}+`)
    else if (event.type === 'node_finished') words.push(`${event.nodeId}.`)
    else if (event.type === 'node_report') words.push(`${event.nodeId}!${event.cached ? 'cached' : ''}`)
    else if (event.type === 'node_blocked') words.push(`${event.nodeId}?`)
    else if (event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted')
      words.push(event.type)
  }
  return words.join(' ')
}

export function lastOf<Type extends EngineEvent['type']>(
  events: readonly EngineEvent[],
  type: Type,
): Extract<EngineEvent, { type: Type }> {
  const found = events.findLast((event) => event.type === type)
  if (found === undefined) throw new Error(`no ${type} event among ${outline(events)}`)
  return found as Extract<EngineEvent, { type: Type }>
}

export function cachedIds(events: readonly EngineEvent[]): readonly string[] {
  return [...lastOf(events, 'cached').nodeIds].sort()
}

export function reportOf(events: readonly EngineEvent[], nodeId: string, key: string): readonly ReportedItem[] {
  const report = events.find((event) => event.type === 'node_report' && event.nodeId === nodeId)
  if (report?.type !== 'node_report')
    throw new Error(`node ${nodeId} reported nothing: ${JSON.stringify(events.at(-1))}`)
  return report.report[key]
}

/** What a TestDump node saw. */
export function dumped(events: readonly EngineEvent[], nodeId: string): JsonValue[] {
  return reportOf(events, nodeId, 'dump').map((item) => (item.kind === 'value' ? (item.value as JsonValue) : null))
}

export function texts(events: readonly EngineEvent[], nodeId: string): unknown[] {
  return reportOf(events, nodeId, 'text').map((item) => (item.kind === 'value' ? item.value : null))
}

export function filesOf(events: readonly EngineEvent[], nodeId: string): ReportedFile[] {
  return reportOf(events, nodeId, 'images').filter((item) => item.kind === 'file')
}

export async function bytesOf(file: ReportedFile): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of file.read()) parts.push(part)
  return Buffer.concat(parts)
}

/** Shows every process that an engine starts, before it has said anything. */
export function watchProcesses(t: TestContext, see: (child: ChildProcess) => void): void {
  type On = (this: ChildProcess, name: string, listener: (value: unknown) => void) => ChildProcess
  const on = EventEmitter.prototype.on as unknown as On
  const seen = new Set<ChildProcess>()
  const watched: On = function (name, listener) {
    if (name === 'message' && !seen.has(this)) {
      seen.add(this)
      see(this)
    }
    return on.call(this, name, listener)
  }
  t.mock.method(ChildProcess.prototype, 'on', watched as ChildProcess['on'])
}
