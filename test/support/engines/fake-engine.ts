/**
 * An engine without any computation: what a graph's nodes do is told by their class, and faults can be switched on for all
 * runs. One fake with named switches instead of a mock in every test.
 *
 * | class | does |
 * |---|---|
 * | FakeSource | nothing |
 * | FakeSampler | `steps` steps, with a preview each |
 * | FakeSave | reports `count` PNG files with the bytes of `text` |
 * | FakeValue | reports `value` under `key` |
 * | FakeFile | reports one file `filename` in `folder` under `key`, with the bytes of `text` |
 * | FakeLoad | names a file of the caller |
 * | FakeBlock | is blocked with a message, as ComfyUI tells it: by an error that is none |
 * | FakeLog | prints `text`, `times` times |
 * | FakeGate | waits until the gate is opened or the run is interrupted |
 * | FakeHang | waits until the run is interrupted |
 * | FakeFail | fails |
 */

import type { GraphNode } from '../../../engine/graph/graph.ts'
import type {
  EngineEvent,
  EngineFailure,
  NodeRef,
  ReportedFile,
  ReportedItem,
} from '../../../engine/graph/run-event.ts'
import type { Engine, EngineRun, RunOptions } from '../../../src/domain/engine/engine-port.ts'
import { type FakeClass, fakeCatalog } from './fake-catalog.ts'

export interface FakeFaults {
  /** The run never says anything after `started`. */
  hang: boolean
  /** An interrupt is not noticed, wherever the run is. */
  ignoreAbort: boolean
  /** The iterator throws after so many events. */
  throwAfter: number | null
  /** The run ends without an outcome after so many events. */
  silentEndAfter: number | null
  duplicateEvents: boolean
  delayMs: number
  /** Said to be cached: they do not run. */
  cached: readonly string[]
  /** Reading a file throws this. */
  readError: unknown
  /** The run fails with this before it has begun. */
  refusal: EngineFailure | null
  /** Somebody else interrupts the run at the first node. */
  interruptItself: boolean
}

export interface FakeEngine extends Engine {
  readonly faults: FakeFaults
  readonly runs: readonly EngineRun[]
  activeCount(): number
  /** Resolves when so many runs have begun. */
  untilRuns(count: number): Promise<void>
  /** Lets one waiting FakeGate go on, or the next one that comes. */
  openGate(): void
  /** Ends runs that ignore everything else. */
  release(): void
}

const NO_FAULTS: FakeFaults = {
  hang: false,
  ignoreAbort: false,
  throwAfter: null,
  silentEndAfter: null,
  duplicateEvents: false,
  delayMs: 0,
  cached: [],
  readError: null,
  refusal: null,
  interruptItself: false,
}

export function createFakeEngine(faults: Partial<FakeFaults> = {}): FakeEngine {
  return new ScriptedEngine({ ...NO_FAULTS, ...faults })
}

const INTERRUPTED = Symbol('interrupted')

class ScriptedEngine implements FakeEngine {
  readonly faults: FakeFaults
  readonly runs: EngineRun[] = []
  #active = 0
  #openGates = 0
  #gateWaiters: (() => void)[] = []
  #runWaiters: { readonly count: number; readonly resolve: () => void }[] = []
  readonly #released = Promise.withResolvers<void>()

  constructor(faults: FakeFaults) {
    this.faults = faults
  }

  catalog() {
    return fakeCatalog
  }

  activeCount(): number {
    return this.#active
  }

  async untilRuns(count: number): Promise<void> {
    if (this.runs.length >= count) return
    await new Promise<void>((resolve) => this.#runWaiters.push({ count, resolve }))
  }

  openGate(): void {
    const waiter = this.#gateWaiters.shift()
    if (waiter === undefined) this.#openGates++
    else waiter()
  }

  release(): void {
    this.#released.resolve()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release()
  }

  async *run(run: EngineRun, { signal }: RunOptions): AsyncGenerator<EngineEvent> {
    this.runs.push(run)
    for (const { count, resolve } of this.#runWaiters) if (this.runs.length >= count) resolve()
    this.#active++
    try {
      yield* this.#withFaults(this.#script(run, signal), signal)
    } finally {
      this.#active--
    }
  }

  async *#withFaults(events: AsyncIterable<EngineEvent>, signal: AbortSignal): AsyncGenerator<EngineEvent> {
    const { faults } = this
    let said = 0
    for await (const event of events) {
      if (faults.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, faults.delayMs))
      if (said === faults.throwAfter) throw new Error('the engine process died')
      if (said === faults.silentEndAfter) return
      yield event
      if (faults.duplicateEvents) yield event
      if (faults.hang) await this.#pause(signal)
      said++
    }
  }

  async *#script(run: EngineRun, signal: AbortSignal): AsyncGenerator<EngineEvent> {
    const { cached, refusal } = this.faults
    if (refusal !== null) return yield { type: 'failed', failure: refusal }
    yield { type: 'started', nodesTotal: run.graph.size }
    if (cached.length > 0) yield { type: 'cached', nodeIds: cached }
    for (const [nodeId, node] of run.graph) {
      if (this.#isInterrupted(signal)) return yield { type: 'interrupted' }
      const ref = { nodeId, classType: node.classType, displayNodeId: nodeId, parentNodeId: null }
      if (cached.includes(nodeId)) {
        yield* this.#report(ref, node, true)
        continue
      }
      yield { type: 'node_started', ...ref }
      const end = yield* this.#execute(ref, node, signal)
      if (end === INTERRUPTED) return yield { type: 'interrupted' }
      if (end === 'failed') return
      yield { type: 'node_finished', ...ref }
    }
    yield { type: 'succeeded' }
  }

  async *#execute(
    ref: NodeRef,
    node: GraphNode,
    signal: AbortSignal,
  ): AsyncGenerator<EngineEvent, typeof INTERRUPTED | 'failed' | 'done'> {
    const kind = node.classType as FakeClass
    switch (kind) {
      case 'FakeSampler':
        return yield* this.#sample(ref, node, signal)
      case 'FakeLog':
        for (let time = 0; time < Number(node.inputs['times'] ?? 1); time++) {
          yield { type: 'log', text: String(node.inputs['text'] ?? '') }
        }
        return 'done'
      case 'FakeSave':
      case 'FakeFile':
      case 'FakeValue':
        yield* this.#report(ref, node, false)
        return 'done'
      case 'FakeBlock':
        yield { type: 'node_blocked', ...ref, message: 'nothing for you' }
        yield { type: 'failed', failure: { ...toFailure(ref), exceptionType: 'ExecutionBlocked' } }
        return 'done'
      case 'FakeGate':
        await this.#gate(signal)
        return this.#isInterrupted(signal) ? INTERRUPTED : 'done'
      case 'FakeHang':
        await this.#pause(signal)
        return INTERRUPTED
      case 'FakeFail':
        yield { type: 'failed', failure: toFailure(ref) }
        return 'failed'
      case 'FakeSource':
      case 'FakeLoad':
        return 'done'
    }
  }

  async *#sample(ref: NodeRef, node: GraphNode, signal: AbortSignal) {
    const steps = Number(node.inputs['steps'] ?? 1)
    for (let step = 1; step <= steps; step++) {
      if (this.#isInterrupted(signal)) return INTERRUPTED
      yield { type: 'node_progress', ...ref, value: step, max: steps } as const
      yield { type: 'preview', ...ref, contentType: 'image/png', bytes: Buffer.from(`step ${step}`) } as const
    }
    return 'done' as const
  }

  async *#report(ref: NodeRef, node: GraphNode, cached: boolean): AsyncGenerator<EngineEvent> {
    if (node.classType === 'FakeValue') {
      const key = String(node.inputs['key'] ?? 'text')
      const items: ReportedItem[] = [{ kind: 'value', value: node.inputs['value'] ?? null }]
      yield { type: 'node_report', ...ref, report: { [key]: items }, cached }
    } else if (node.classType === 'FakeSave') {
      const count = Number(node.inputs['count'] ?? 1)
      const text = String(node.inputs['text'] ?? 'picture')
      const items = Array.from({ length: count }, (_, index) =>
        this.#toFile(`fake_${index + 1}_.png`, `${text}${index}`),
      )
      yield { type: 'node_report', ...ref, report: { images: items }, cached }
    } else if (node.classType === 'FakeFile') {
      const { key = 'images', filename = 'fake.png', text = 'file', folder, content_type } = node.inputs
      const file = this.#toFile(String(filename), String(text), {
        folder: folder === 'temp' ? 'temp' : 'output',
        contentType: typeof content_type === 'string' ? content_type : null,
      })
      yield { type: 'node_report', ...ref, report: { [String(key)]: [file] }, cached }
    }
  }

  #toFile(filename: string, text: string, fields: Partial<ReportedFile> = {}): ReportedItem {
    const { faults } = this
    return {
      kind: 'file',
      filename,
      subfolder: '',
      folder: 'output',
      contentType: null,
      ...fields,
      async *read() {
        if (faults.readError !== null) throw faults.readError
        yield Buffer.from(text)
      },
    }
  }

  #isInterrupted(signal: AbortSignal): boolean {
    return this.faults.interruptItself || (signal.aborted && !this.faults.ignoreAbort)
  }

  #pause(signal: AbortSignal): Promise<void> {
    return Promise.race([
      this.#released.promise,
      this.faults.ignoreAbort ? this.#released.promise : untilAborted(signal),
    ])
  }

  async #gate(signal: AbortSignal): Promise<void> {
    if (this.#openGates > 0) {
      this.#openGates--
      return
    }
    const { promise: opened, resolve } = Promise.withResolvers<void>()
    this.#gateWaiters.push(resolve)
    await Promise.race([opened, this.#pause(signal)])
    // A run that was interrupted here waits no longer, and must not use up the next opening.
    this.#gateWaiters = this.#gateWaiters.filter((waiter) => waiter !== resolve)
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

function toFailure({ nodeId, classType }: NodeRef) {
  return {
    code: 'node_execution_error',
    message: 'this node always fails',
    nodeId,
    classType,
    traceback: 'Traceback (most recent call last): ...',
    exceptionType: 'RuntimeError',
  }
}
