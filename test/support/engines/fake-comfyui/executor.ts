/**
 * Runs prompts as ComfyUI does: depth first from the outputs, a cache over whole sub-graphs, and the recorded order of
 * messages. Tests can hold a prompt at three points of its life and let it go on.
 */
import { stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { type FakeFaults, strikes } from './faults.ts'
import { type NodeContext, PythonException, RUN, type SavedFile } from './node-classes.ts'
import type { HistoryRecord, Prompt } from './prompt-queue.ts'

export type Phase = 'queued' | 'running' | 'finishing'

export interface ExecutorDeps {
  readonly faults: FakeFaults
  isOutput(classType: string): boolean
  save(prefix: string, type: 'output' | 'temp', extension: string, bytes: Buffer): SavedFile
  isInputThere(name: string): boolean
  send(clientId: string | null, type: string, data: Record<string, unknown>): void
  sendPreview(prompt: Prompt, nodeId: string, bytes: Buffer): void
  sendText(nodeId: string, text: string): void
  print(line: string): void
  /** Resolves at once, or when a test lets the prompt go on, or when it is interrupted. */
  reach(phase: Phase, prompt: Prompt, interrupted: AbortSignal): Promise<void>
  readonly nodeMs: number
  readonly loadMs: number
}

interface Cached {
  readonly outputs: readonly unknown[]
  readonly ui: Record<string, unknown> | null
}

class Interrupted extends Error {}

/** What is kept from prompt to prompt. */
export class FakeExecutor {
  readonly #deps: ExecutorDeps
  readonly #cache = new Map<string, Cached>()
  loadedWeights: string | null = null
  weightLoads = 0
  #isCudaBroken = false
  #interrupt: (() => void) | null = null

  constructor(deps: ExecutorDeps) {
    this.#deps = deps
  }

  interrupt(): void {
    this.#interrupt?.()
  }

  free(): void {
    this.#cache.clear()
    this.loadedWeights = null
  }

  async run(prompt: Prompt): Promise<Omit<HistoryRecord, 'prompt'>> {
    const run = new PromptRun(prompt, { ...this.#deps, ...this.#shared() })
    this.#interrupt = () => run.interrupt()
    try {
      return await run.execute()
    } finally {
      this.#interrupt = null
    }
  }

  #shared() {
    return {
      cache: this.#cache,
      loadWeights: async (name: string, sleep: (ms: number) => Promise<void>) => {
        if (this.loadedWeights === name) return
        await sleep(this.#deps.loadMs)
        this.loadedWeights = name
        this.weightLoads++
      },
      isCudaBroken: () => {
        if (this.#deps.faults.cudaFault) this.#isCudaBroken = true
        return this.#isCudaBroken
      },
    }
  }
}

interface RunParts extends ExecutorDeps {
  readonly cache: Map<string, Cached>
  loadWeights(name: string, sleep: (ms: number) => Promise<void>): Promise<void>
  isCudaBroken(): boolean
}

class PromptRun {
  readonly #prompt: Prompt
  readonly #parts: RunParts
  readonly #clientId: string | null
  readonly #done = new Map<string, Cached>()
  readonly #states: Record<string, Record<string, unknown>> = {}
  readonly #outputs: Record<string, unknown> = {}
  readonly #messages: (readonly [string, unknown])[] = []
  readonly #interrupted = new AbortController()

  constructor(prompt: Prompt, parts: RunParts) {
    this.#prompt = prompt
    this.#parts = parts
    this.#clientId = (prompt.extraData.client_id as string | undefined) ?? null
  }

  interrupt(): void {
    this.#interrupted.abort()
  }

  async execute(): Promise<Omit<HistoryRecord, 'prompt'>> {
    const { outputs } = this.#prompt
    this.#record('execution_start', {})
    const cached = Object.keys(this.#prompt.graph).filter((nodeId) => this.#parts.cache.has(this.#sign(nodeId)))
    this.#record('execution_cached', { nodes: cached })
    let current = ''
    try {
      await this.#parts.reach('running', this.#prompt, this.#interrupted.signal)
      for (const nodeId of outputs) {
        for (const next of this.#order(nodeId)) {
          current = next
          await this.#runNode(next)
        }
      }
      await this.#parts.reach('finishing', this.#prompt, this.#interrupted.signal)
      this.#record('execution_success', {})
    } catch (error) {
      this.#end(error, current)
    }
    const isGood = this.#messages.at(-1)?.[0] === 'execution_success'
    const ids = Object.keys(this.#outputs)
    return {
      outputs: this.#outputs,
      status: { status_str: isGood ? 'success' : 'error', completed: isGood, messages: this.#messages },
      meta: Object.fromEntries(
        ids.map((node) => [node, { node_id: node, display_node: node, parent_node: null, real_node_id: node }]),
      ),
    }
  }

  #end(error: unknown, nodeId: string): void {
    const node = this.#prompt.graph[nodeId]
    const place = { node_id: nodeId, node_type: node?.class_type ?? '', executed: [...this.#done.keys()] }
    if (error instanceof Interrupted) {
      this.#record('execution_interrupted', place)
      return
    }
    const { type = 'RuntimeError', message } = error as PythonException
    const frame = '  File "/comfyui/execution.py", line 545, in execute\n    ...\n'
    const long = Math.ceil(this.#parts.faults.tracebackBytes / frame.length)
    this.#record('execution_error', {
      ...place,
      exception_message: `${message}\n`,
      exception_type: type,
      traceback: [
        ...Array.from({ length: Math.max(1, long) }, () => frame),
        '  File "/comfyui/nodes.py", line 1, in last_frame\n',
      ],
      current_inputs: {},
      current_outputs: [...this.#done.keys()],
    })
  }

  #record(type: string, data: Record<string, unknown>): void {
    const body = { ...data, prompt_id: this.#prompt.id, timestamp: Date.now() }
    this.#messages.push([type, body])
    this.#send(type, body)
  }

  #send(type: string, data: Record<string, unknown>): void {
    if (this.#clientId !== null) this.#parts.send(this.#clientId, type, data)
  }

  /** A node and what it needs, dependencies first. */
  #order(nodeId: string, seen = new Set<string>()): string[] {
    if (seen.has(nodeId) || this.#done.has(nodeId)) return []
    seen.add(nodeId)
    const inputs = Object.values(this.#prompt.graph[nodeId]?.inputs ?? {})
    return [...inputs.flatMap((value) => (isLink(value) ? this.#order(value[0], seen) : [])), nodeId]
  }

  /** The node's class, its constants and the same of everything above it. */
  #sign(nodeId: string): string {
    const node = this.#prompt.graph[nodeId]
    const inputs = Object.entries(node?.inputs ?? {}).toSorted(([one], [other]) => (one < other ? -1 : 1))
    const parts = inputs.map(([name, value]) => [
      name,
      isLink(value) ? [this.#sign(value[0]), value[1]] : String(JSON.stringify(value, bigText)),
    ])
    return JSON.stringify([node?.class_type, parts])
  }

  async #runNode(nodeId: string): Promise<void> {
    const { cache, faults } = this.#parts
    const signature = this.#sign(nodeId)
    const known = cache.get(signature)
    if (known !== undefined) {
      this.#done.set(nodeId, known)
      if (known.ui !== null && !faults.cachedEmptyOutputs) this.#tellUi(nodeId, known.ui)
      return
    }
    this.#state(nodeId, { value: 0, max: 1, state: 'running' })
    this.#send('executing', { node: nodeId, display_node: nodeId, prompt_id: this.#prompt.id })
    const result = await this.#call(nodeId)
    this.#done.set(nodeId, result)
    if (this.#prompt.graph[nodeId]?.class_type !== 'SaveImageWebsocket') cache.set(signature, result)
    if (result.ui !== null) this.#tellUi(nodeId, result.ui)
    const { value = 1, max = 1 } = this.#states[nodeId] ?? {}
    this.#state(nodeId, { value: max === 1 ? 1 : value, max, state: 'finished' })
  }

  #tellUi(nodeId: string, ui: Record<string, unknown>): void {
    this.#outputs[nodeId] = ui
    this.#send('executed', { node: nodeId, display_node: nodeId, output: ui, prompt_id: this.#prompt.id })
  }

  #state(nodeId: string, news: Record<string, unknown>): void {
    this.#states[nodeId] = {
      ...news,
      node_id: nodeId,
      prompt_id: this.#prompt.id,
      display_node_id: nodeId,
      parent_node_id: null,
      real_node_id: nodeId,
    }
    this.#send('progress_state', { prompt_id: this.#prompt.id, nodes: { ...this.#states } })
  }

  async #call(nodeId: string): Promise<Cached> {
    const { faults, nodeMs } = this.#parts
    const node = this.#prompt.graph[nodeId]
    if (this.#interrupted.signal.aborted) throw new Interrupted()
    if (nodeMs > 0) await this.#sleep(nodeMs)
    if (faults.diesAtNode) {
      this.#parts.print('Exception in thread Thread-1 (prompt_worker):')
      await new Promise<never>(() => {})
    }
    if (this.#parts.isCudaBroken())
      throw new PythonException('RuntimeError', 'CUDA error: an illegal memory access was encountered')
    if (faults.raises !== null) throw new PythonException(faults.raises.type, faults.raises.message)
    if (strikes(faults, 'outOfMemory'))
      throw new PythonException(
        'torch.OutOfMemoryError',
        'Allocation on device 0 would exceed allowed memory. (out of memory)',
      )
    // Looked at again and again: a test may mend the node.
    while (faults.hang) await this.#sleep(10)
    const run = RUN[node?.class_type ?? '']
    if (run === undefined) throw new PythonException('NotImplementedError', `the fake cannot run ${node?.class_type}`)
    const { outputs = [], ui } = await run(this.#contextOf(nodeId, node?.inputs ?? {}))
    return { outputs, ui: (ui as Record<string, unknown> | undefined) ?? null }
  }

  #contextOf(nodeId: string, given: Record<string, unknown>): NodeContext {
    const parts = this.#parts
    const inputs = Object.fromEntries(
      Object.entries(given).map(([name, value]) => [
        name,
        isLink(value) ? this.#done.get(value[0])?.outputs[value[1]] : value,
      ]),
    )
    const sleep = (ms: number) => this.#sleep(ms)
    return {
      nodeId,
      inputs,
      sleep,
      progress: (value, max, preview) => {
        if (this.#interrupted.signal.aborted) throw new Interrupted()
        this.#state(nodeId, { value, max, state: 'running' })
        if (preview !== undefined) parts.sendPreview(this.#prompt, nodeId, preview)
        this.#send('progress', { value, max, prompt_id: this.#prompt.id, node: nodeId })
      },
      text: (text) => parts.sendText(nodeId, text),
      print: parts.print,
      prompt: stringifyLosslessJson(this.#prompt.graph as never),
      save: parts.save,
      isInputThere: parts.isInputThere,
      loadWeights: (name) => parts.loadWeights(name, sleep),
    }
  }

  async #sleep(ms: number): Promise<void> {
    const { signal } = this.#interrupted
    if (signal.aborted) throw new Interrupted()
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      signal.addEventListener('abort', end)
    })
    if (signal.aborted) throw new Interrupted()
  }
}

function isLink(value: unknown): value is [string, number] {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && typeof value[1] === 'number'
}

function bigText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}n` : value
}
