/** An engine on a fake server that gives nothing up by the clock unless a test asks for it, and what a test wants to see of a run. */
import { createHash } from 'node:crypto'
import { readGraph } from '../../../../engine/graph/graph-json.ts'
import type { EngineEvent, ReportedFile } from '../../../../engine/graph/run-event.ts'
import { systemClock } from '../../../../lib/clock.ts'
import { type JsonValue, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { silentLog } from '../../../../lib/log.ts'
import type { ComfyBounds } from '../../../../src/adapters/engines/comfyui/comfy-bounds.ts'
import { type ComfyEngine, openComfyEngine } from '../../../../src/adapters/engines/comfyui/comfy-engine.ts'
import type { Engine, EngineInput, EngineRun } from '../../../../src/domain/engine/engine-port.ts'
import { PATIENT_BOUNDS } from '../../../support/engines/comfy-test-bounds.ts'
import { type FakeComfy, startFakeComfy } from '../../../support/engines/fake-comfyui/fake-comfyui.ts'
import type { FakeOptions } from '../../../support/engines/fake-comfyui/fake-options.ts'

/** History entries of runs that are over are removed soon. */
export const BOUNDS: Partial<ComfyBounds> = { ...PATIENT_BOUNDS, forgetAfterMs: 5 }

export type GraphJson = Record<string, { class_type: string; inputs: Record<string, unknown> }>

export interface RunSettings {
  readonly jobId?: string
  readonly accountId?: string
  readonly attempt?: number
  readonly claimId?: string
  readonly files?: Readonly<Record<string, Uint8Array>>
  readonly extraData?: Readonly<Record<string, unknown>>
  readonly signal?: AbortSignal
  onEvent?(event: EngineEvent): void
}

export interface ReadOutput {
  readonly nodeId: string
  readonly key: string
  readonly file: ReportedFile
  readonly bytes: Buffer
}

export interface RunResult {
  readonly events: readonly EngineEvent[]
  readonly files: readonly ReadOutput[]
}

let jobs = 0

/** Files are read and released as they are reported, as the service does. */
export async function runGraph(engine: Engine, graph: GraphJson, settings: RunSettings = {}): Promise<RunResult> {
  const events: EngineEvent[] = []
  const files: Promise<ReadOutput>[] = []
  const { signal = new AbortController().signal } = settings
  for await (const event of engine.run(toRun(graph, settings), { signal })) {
    events.push(event)
    if (event.type === 'node_report') files.push(...readFiles(event).map(heard))
    settings.onEvent?.(event)
  }
  return { events, files: await Promise.all(files) }
}

/** It is awaited later; until then nobody else would hear of its failure. */
function heard<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {})
  return work
}

function readFiles(event: Extract<EngineEvent, { type: 'node_report' }>): Promise<ReadOutput>[] {
  return Object.entries(event.report).flatMap(([key, items]) =>
    items.flatMap((item) =>
      item.kind === 'file' ? [readOnce(item).then((bytes) => ({ nodeId: event.nodeId, key, file: item, bytes }))] : [],
    ),
  )
}

async function readOnce(file: ReportedFile): Promise<Buffer> {
  const bytes = await bytesOf(file)
  file.release?.()
  return bytes
}

export async function bytesOf(file: ReportedFile): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of file.read()) parts.push(part)
  return Buffer.concat(parts)
}

const numbers = new Map<string, number>()

export function toRun(
  graph: GraphJson,
  { jobId, accountId = 'local', attempt = 1, claimId = 'claim', files = {}, extraData }: RunSettings = {},
): EngineRun {
  const id = jobId ?? `job-${process.pid}-${++jobs}`
  return {
    jobId: id,
    accountId,
    attempt,
    claimId,
    graph: readGraph(graph as JsonValue),
    graphText: stringifyLosslessJson(graph as JsonValue),
    inputs: new Map(Object.entries(files).map(([name, bytes]) => [name, toInput(bytes)])),
    extraData: extraData ?? null,
    async reserveOutputNumbers(folder, prefix, count) {
      const key = `${id}/${folder}/${prefix}`
      const first = numbers.get(key) ?? 1
      numbers.set(key, first + count)
      return first
    },
  }
}

function toInput(bytes: Uint8Array): EngineInput {
  async function* read() {
    yield bytes
  }
  const hash = createHash('sha256').update(bytes).digest('hex')
  return { hash, sizeBytes: bytes.length, contentType: 'image/png', localPath: null, read }
}

export interface Rig extends AsyncDisposable {
  readonly fake: FakeComfy
  readonly engine: ComfyEngine
}

export async function openRig(options: FakeOptions = {}, bounds: Partial<ComfyBounds> = {}): Promise<Rig> {
  await using opening = new AsyncDisposableStack()
  const fake = opening.use(await startFakeComfy(options))
  const engine = opening.use(await openEngineAt(fake.url, bounds))
  await engine.untilReady()
  const opened = opening.move()
  return { fake, engine, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

export function openEngineAt(url: URL, bounds: Partial<ComfyBounds> = {}): Promise<ComfyEngine> {
  return openComfyEngine({
    server: { kind: 'remote', url },
    bounds: { ...BOUNDS, ...bounds },
    log: silentLog,
    clock: systemClock,
  })
}

/** A picture of one colour, saved. */
export function saveGraph(color: number, prefix = 'x'): GraphJson {
  return {
    '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color } },
    '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: prefix } },
  }
}

export function stepsGraph(steps: number, ms: number, seed = 0): GraphJson {
  return {
    '1': { class_type: 'DemoSteps', inputs: { steps, ms, preview: true, seed } },
    '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'steps' } },
  }
}

/** Events in a short form: `2+` started, `2.` finished, `2!` reported, `2?` blocked, then the end. */
export function outline(events: readonly EngineEvent[]): string {
  return events
    .flatMap((event) => {
      if (event.type === 'node_started') return [`${event.nodeId}+`]
      if (event.type === 'node_finished') return [`${event.nodeId}.`]
      if (event.type === 'node_report') return [`${event.nodeId}!${event.cached ? 'cached' : ''}`]
      if (event.type === 'node_blocked') return [`${event.nodeId}?`]
      return ['succeeded', 'failed', 'interrupted'].includes(event.type) ? [event.type] : []
    })
    .join(' ')
}

export function ofType<Type extends EngineEvent['type']>(
  events: readonly EngineEvent[],
  type: Type,
): Extract<EngineEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<EngineEvent, { type: Type }> => event.type === type)
}
