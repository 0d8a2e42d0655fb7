/**
 * A ComfyUI server without computation, for tests: HTTP and socket behave like the real ones, small graphs really run, and known
 * faults of real servers can be switched on. Runs in this process, or in one of its own (main.ts).
 */
import { createServer, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { posix } from 'node:path'
import type { NodeDefinition } from '../../../../engine/graph/node-catalog.ts'
import { metadataFrame, previewFrame, textFrame } from './binary-frames.ts'
import { FakeExecutor, type Phase } from './executor.ts'
import type { Execution, FakeOptions, RestartOptions } from './fake-options.ts'
import { type FakeFaults, noFaults } from './faults.ts'
import { FakeFiles } from './files.ts'
import { Gates } from './gates.ts'
import { listenOnOwnPort } from './http/own-port.ts'
import { answer, type RouteParts } from './http/routes.ts'
import { createFakeModels, type FakeModels } from './models.ts'
import { describeClasses, type Installed, type SavedFile } from './node-classes.ts'
import { PrintedLines } from './printed-lines.ts'
import { type Prompt, PromptQueue } from './prompt-queue.ts'
import { playRecording, type Recording } from './recording.ts'
import { FakeSockets, type SocketCounts } from './sockets.ts'

// As long as the web server of a real one keeps a connection open. Node's own five seconds are so close to the time after which our
// client closes an idle connection that on a busy machine a call can get lost on one that the server is just closing.
const KEEP_ALIVE_MS = 75_000

export interface FakeComfy extends AsyncDisposable {
  readonly url: URL
  readonly port: number
  readonly faults: FakeFaults
  readonly files: FakeFiles
  readonly executions: readonly Execution[]
  readonly sockets: SocketCounts
  /** How often each path was called, `METHOD /path`. */
  readonly calls: ReadonlyMap<string, number>
  readonly weightLoads: number
  /** The credentials of the latest call. */
  readonly lastAuthorization: string | null
  /** Of the latest call of each path that named a trace, by `METHOD /path`. */
  readonly traceparents: ReadonlyMap<string, string>
  queue(): PromptQueue
  /** Prompts stop at this point of their life until released. */
  hold(phase: Phase): void
  /** Resolves when a prompt stands at the point. */
  held(phase: Phase): Promise<Prompt>
  release(phase: Phase): void
  /** Answers the next prompt with what a real server once sent. */
  play(recording: Recording): void
  /** Forgets queue, history and cache, cuts every connection, and listens again after a while. */
  restart(options?: RestartOptions): Promise<void>
  /** Other weights and classes than at the start. */
  install(installed: Partial<Installed>): void
  /** How often somebody has asked for this path. */
  asked(path: string): number
  print(line: string): void
  /** Ends every socket at once. */
  cutSockets(): void
  /** What sockets are sent arrives only after `deliverFrames`. */
  delayFrames(): void
  deliverFrames(): void
}

export async function startFakeComfy(options: FakeOptions = {}): Promise<FakeComfy> {
  const fake = new FakeServer(options)
  await fake.listen(options.port ?? 0)
  return fake
}

class FakeServer implements FakeComfy {
  readonly faults: FakeFaults
  readonly files = new FakeFiles()
  readonly executions: Execution[] = []
  readonly calls = new Map<string, number>()
  port = 0
  readonly traceparents = new Map<string, string>()
  lastAuthorization: string | null = null
  readonly #options: FakeOptions
  readonly #sockets: FakeSockets
  readonly #connections = new Set<Socket>()
  readonly #gates = new Gates()
  readonly #lines: PrintedLines
  readonly #assets = new Map<string, string>()
  readonly #models: FakeModels
  #server: Server | null = null
  #life = new AbortController()
  #queue: PromptQueue
  #executor: FakeExecutor
  #number = 0
  #installed: Partial<Installed>
  readonly #asked = new Map<string, number>()
  #recording: Recording | null = null
  #restarting: Promise<void> = Promise.resolve()

  constructor(options: FakeOptions) {
    this.#options = options
    this.faults = { ...noFaults(), ...options.faults }
    this.#installed = options
    this.#models = createFakeModels(options.modelsDir ?? null, () => this.#installed.checkpoints ?? [])
    this.#sockets = new FakeSockets(
      this.faults,
      (clientId) => this.#greet(clientId),
      () => this.#features(),
    )
    this.#lines = new PrintedLines(this.faults, (clientId, text) => this.#sockets.send(clientId, text))
    this.#queue = this.#newQueue()
    this.#executor = this.#newExecutor()
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${this.port}`)
  }

  get sockets(): SocketCounts {
    return this.#sockets.counts
  }

  get weightLoads(): number {
    return this.#executor.weightLoads
  }

  queue(): PromptQueue {
    return this.#queue
  }

  async listen(port: number): Promise<void> {
    const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
      const key = `${request.method} ${(request.url ?? '').split('?', 1)[0]}`
      this.lastAuthorization = request.headers.authorization ?? null
      const { traceparent } = request.headers
      if (typeof traceparent === 'string') this.traceparents.set(key, traceparent)
      this.calls.set(key, (this.calls.get(key) ?? 0) + 1)
      const [path = ''] = (request.url ?? '').split('?', 1)
      this.#asked.set(path, this.asked(path) + 1)
      answer(this.#routeParts(), request, response).catch((error) => {
        // A real server answers so when a handler raises.
        if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/plain' }).end(String(error))
      })
    })
    server.on('connection', (socket) => {
      this.#connections.add(socket)
      socket.on('close', () => this.#connections.delete(socket))
    })
    server.on('upgrade', (request, socket, head) => this.#sockets.accept(request, socket, head))
    this.#server = server
    this.port = await listenOnOwnPort(server, port)
    this.#work(this.#life.signal)
  }

  #newQueue(): PromptQueue {
    return new PromptQueue(this.faults, () =>
      this.#send(null, 'status', { status: { exec_info: { queue_remaining: this.#queue.remaining() } } }),
    )
  }

  #newExecutor(): FakeExecutor {
    const { signal } = this.#life
    return new FakeExecutor({
      faults: this.faults,
      nodeMs: this.#options.nodeMs ?? 0,
      loadMs: this.#options.loadMs ?? 0,
      isOutput: (classType) => this.#classes()[classType]?.output_node === true,
      isInputThere: (name) => this.#isInputThere(name),
      save: (prefix, type, extension, bytes) => this.#save(prefix, type, extension, bytes),
      send: (clientId, type, data) => signal.aborted || this.#send(clientId, type, data),
      sendPreview: (prompt, nodeId, bytes) => this.#sendPreview(prompt, nodeId, bytes),
      sendText: (nodeId, text) => this.#sockets.send(null, textFrame(nodeId, text)),
      print: (line) => this.print(line),
      reach: (phase, prompt, interrupted) => this.#gates.pass(phase, prompt, interrupted),
    })
  }

  #save(prefix: string, type: 'output' | 'temp', extension: string, bytes: Buffer): SavedFile {
    const isFixed = this.faults.duplicateNames && type === 'output'
    const file = this.files.save(prefix, type, { extension, bytes, isFixed })
    if (!this.faults.hasAssets) return file
    const id = crypto.randomUUID()
    this.#assets.set(id, FakeFiles.path(file.type, file.subfolder, file.filename))
    return { ...file, id }
  }

  #deleteAsset(id: string): boolean {
    const path = this.#assets.get(id)
    return path !== undefined && this.files.delete(path)
  }

  #isInputThere(name: string): boolean {
    return this.files.get(posix.join('input', name.replace(/ \[input\]$/, ''))) !== undefined
  }

  #greet(clientId: string): object[] {
    const status = { exec_info: { queue_remaining: this.#queue.remaining() } }
    const running = this.#queue.running
    const isOwn = running !== null && running.extraData.client_id === clientId
    return [
      { type: 'status', data: { status, sid: clientId } },
      ...(isOwn ? [{ type: 'executing', data: { node: '1' } }] : []),
    ]
  }

  #features(): object {
    return {
      supports_preview_metadata: true,
      max_upload_size: this.#options.maxUploadBytes ?? 104_857_600,
      assets: false,
      node_replacements: true,
    }
  }

  #routeParts(): RouteParts {
    return {
      faults: this.faults,
      version: this.#options.version ?? '0.33.0',
      files: this.files,
      models: this.#models,
      queue: () => this.#queue,
      classes: () => this.#classes(),
      features: () => this.#features(),
      isInputThere: (name) => this.#isInputThere(name),
      accept: (prompt) => this.#accept(prompt),
      nextNumber: () => this.#number++,
      interruptRunning: (id) => this.#interruptRunning(id),
      free: () => this.#executor.free(),
      deleteAsset: (id) => this.#deleteAsset(id),
      subscribeLogs: (clientId) => this.#lines.subscribers.add(clientId),
      printed: () => this.#lines.newest(),
    }
  }

  /** As it lists them now: every answer is put together anew. */
  #classes(): Record<string, NodeDefinition> {
    const inputFiles = this.files.paths().flatMap((path) => /^input\/([^/]+)$/.exec(path)?.[1] ?? [])
    const checkpoints = this.#models.files('checkpoints')?.map(({ name }) => name) ?? []
    return describeClasses({ without: [], ...this.#installed, checkpoints, inputFiles })
  }

  #accept(prompt: Prompt): void {
    this.#queue.put(prompt)
    if (this.#gates.isClosed('queued')) this.#gates.stand('queued', prompt)
  }

  #interruptRunning(id: string | null): boolean {
    const { running } = this.#queue
    if (running === null || (id !== null && running.id !== id)) return false
    this.#executor.interrupt()
    return true
  }

  async #work(over: AbortSignal): Promise<void> {
    const [queue, executor] = [this.#queue, this.#executor]
    while (!over.aborted) {
      const prompt = await queue.take(over)
      if (prompt === null || over.aborted) return
      const clientId = (prompt.extraData.client_id as string | undefined) ?? null
      const about = { promptId: prompt.id, graph: prompt.graph, secrets: prompt.secrets, clientId }
      const execution: Execution = { ...about, computedMs: null }
      this.executions.push(execution)
      const news = { promptId: prompt.id, graph: prompt.graph }
      this.#options.onExecution?.({ ...news, what: 'begun', status: null })
      const record = this.#recording === null ? await executor.run(prompt) : await this.#replay(prompt)
      if (over.aborted) return
      if (this.faults.diesUnrecorded) return
      execution.computedMs = toComputedMs(record.status.messages)
      this.#options.onExecution?.({ ...news, what: 'ended', status: record.status.status_str })
      queue.done(prompt, record)
      this.#send(clientId, 'executing', { node: null, prompt_id: prompt.id })
    }
  }

  async #replay(prompt: Prompt) {
    const recording = this.#recording as Recording
    this.#recording = null
    return playRecording(recording, prompt, (frame) => this.#sockets.send(prompt.extraData.client_id as string, frame))
  }

  #send(clientId: string | null, type: string, data: Record<string, unknown>): void {
    if (clientId === null && type !== 'status') return
    this.#sockets.send(clientId, JSON.stringify({ type, data }))
    if (!this.faults.strangersFrames || type === 'status') return
    const foreign = { ...data, prompt_id: '00000000-0000-4000-8000-000000000000' }
    this.#sockets.send(null, JSON.stringify({ type, data: foreign }))
    this.#sockets.send(null, textFrame('999', 'a text of somebody else'))
  }

  #sendPreview(prompt: Prompt, nodeId: string, bytes: Buffer): void {
    const clientId = (prompt.extraData.client_id as string | undefined) ?? null
    if (clientId === null) return
    this.#sockets.send(
      clientId,
      this.#sockets.wantsMetadata(clientId) ? metadataFrame(prompt.id, nodeId, bytes) : previewFrame(bytes),
    )
  }

  print(line: string): void {
    this.#options.onPrint?.(line)
    this.#lines.print(line)
  }

  delayFrames(): void {
    this.#sockets.delay()
  }

  deliverFrames(): void {
    this.#sockets.deliver()
  }

  cutSockets(): void {
    this.#sockets.cutAll()
  }

  hold(phase: Phase): void {
    this.#gates.close(phase)
    if (phase === 'queued') this.#queue.isHeld = true
  }

  held(phase: Phase): Promise<Prompt> {
    return this.#gates.held(phase)
  }

  release(phase: Phase): void {
    this.#gates.open(phase)
    if (phase === 'queued') this.#queue.letGo()
  }

  play(recording: Recording): void {
    this.#recording = recording
  }

  asked(path: string): number {
    return this.#asked.get(path) ?? 0
  }

  install(installed: Partial<Installed>): void {
    this.#installed = { ...this.#installed, ...installed }
  }

  restart(options: RestartOptions = {}): Promise<void> {
    this.#restarting = this.#restart(options)
    return this.#restarting
  }

  async #restart({ downMs = 0, downUntil, wipe = false }: RestartOptions): Promise<void> {
    await this.#stop()
    if (wipe) this.files.clear('input')
    this.files.clear('temp')
    if (downMs > 0) await new Promise((resolve) => setTimeout(resolve, downMs))
    await downUntil
    this.#life = new AbortController()
    this.#queue = this.#newQueue()
    this.#executor = this.#newExecutor()
    this.#lines.subscribers.clear()
    await this.listen(this.port)
  }

  async #stop(): Promise<void> {
    const server = this.#server
    this.#life.abort()
    this.#executor.interrupt()
    this.#gates.openAll()
    this.#queue.letGo()
    this.#sockets.cutAll()
    for (const connection of this.#connections) connection.destroy()
    await new Promise<void>((resolve) => (server === null ? resolve() : server.close(() => resolve())))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.faults.hang = false
    await this.#restarting
    await this.#stop()
    this.#sockets.close()
  }
}

function toComputedMs(messages: readonly (readonly [string, unknown])[]): number {
  const times = messages.map(([, body]) => (body as { readonly timestamp: number }).timestamp)
  return (times.at(-1) ?? 0) - (times[0] ?? 0)
}
