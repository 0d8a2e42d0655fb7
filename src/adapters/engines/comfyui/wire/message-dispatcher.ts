/**
 * Gives every message of the server to the run that it belongs to. All runs on the engine share the socket; each gets only what
 * carries its own prompt id. The few frames without one (old previews, texts) belong to the run that the server is executing, if
 * it is one of ours; those of other clients are dropped. Printed lines belong to the run that was executing when they were
 * printed.
 */
import { performance } from 'node:perf_hooks'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { keepHead } from '../../../../../lib/text/cut-text.ts'
import { type EngineMessage, type JsonMessage, toText } from './socket-frames.ts'

export interface RunListener {
  onMessage(message: EngineMessage): void
  onLog(text: string): void
  /** The server's queue has become longer or shorter. */
  onQueueChange(): void
}

interface RunTimes {
  readonly startedAt: number | null
  readonly endedAt: number | null
}

interface MessageDispatcherOptions {
  readonly maxLogLineBytes: number
  /** Pieces of printed text that came over the socket. */
  onPrinted(entries: JsonValue | undefined): void
}

// Times of messages are cut to milliseconds.
const CLOCK_STEP_MS = 1
// Colours, cursor moves, titles: meant for a terminal.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they begin with one
const TERMINAL_CODES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g
const ENDS: ReadonlySet<string> = new Set(['execution_success', 'execution_interrupted'])

export class MessageDispatcher {
  readonly #deps: MessageDispatcherOptions
  readonly #listeners = new Map<string, RunListener>()
  readonly #times = new Map<string, RunTimes>()
  readonly #heardAt = new Map<string, number>()
  /** The prompt that the server is executing, when it is one of ours. */
  #current: string | null = null
  /** The one that it executed last: its printed lines may arrive a moment after its end. */
  #printing: string | null = null
  #remaining: number | null = null

  constructor(deps: MessageDispatcherOptions) {
    this.#deps = deps
  }

  /** When the server began and ended a run, by its own clock. */
  noteTimes(promptId: string, { startedAt, endedAt }: RunTimes): void {
    const known = this.#times.get(promptId)
    const both = { startedAt: startedAt ?? known?.startedAt ?? null, endedAt: endedAt ?? known?.endedAt ?? null }
    this.#times.set(promptId, both)
  }

  /**
   * A line that the server printed, and when, by the server's clock. It belongs to the run that the server was executing then;
   * without a time, to the one that it is executing or has executed last.
   */
  receiveLog(text: string, at: number | null = null): void {
    this.#tellPrinted(text, at === null || this.#times.size === 0 ? this.#printing : this.#printerAt(at))
  }

  /** A line from the pipe of the process, which may overtake the message that its run has begun: then it is of the first that waits. */
  receiveLine(text: string): void {
    const [first = null] = this.#listeners.keys()
    this.#tellPrinted(text, this.#printing ?? first)
  }

  #tellPrinted(text: string, promptId: string | null): void {
    const listener = this.#listenerOf(promptId)
    const shown = withoutCodes(text)
    if (listener !== undefined && shown !== '')
      listener.onLog(keepHead(lastState(shown).toWellFormed(), this.#deps.maxLogLineBytes))
  }

  receive(message: EngineMessage): void {
    if (message.kind === 'json') this.#onJson(message)
    else
      this.#listenerOf(
        message.kind === 'preview' && message.promptId !== null ? message.promptId : this.#current,
      )?.onMessage(message)
  }

  attach(promptId: string, listener: RunListener): void {
    this.#listeners.set(promptId, listener)
    this.#heardAt.set(promptId, performance.now())
  }

  detach(promptId: string): void {
    this.#listeners.delete(promptId)
    this.#times.delete(promptId)
    this.#heardAt.delete(promptId)
    if (this.#current === promptId) this.#current = null
    if (this.#printing === promptId) this.#printing = null
  }

  /** Something may have happened to the server: whoever follows a run there asks soon. */
  wakeAll(): void {
    for (const listener of new Set(this.#listeners.values())) listener.onQueueChange()
  }

  attached(): number {
    return this.#listeners.size
  }

  /** When the last message of the run came, by performance.now(); null: no run is attached under this id. */
  lastHeardAt(promptId: string): number | null {
    return this.#heardAt.get(promptId) ?? null
  }

  queueRemaining(): number | null {
    return this.#remaining
  }

  /** The listener of a run of which something was just heard. */
  #listenerOf(promptId: string | null): RunListener | undefined {
    const listener = promptId === null ? undefined : this.#listeners.get(promptId)
    if (promptId !== null && listener !== undefined) this.#heardAt.set(promptId, performance.now())
    return listener
  }

  #onJson(message: JsonMessage): void {
    const { type, data } = message
    if (type === 'status') this.#onStatus(data)
    else if (type === 'logs') this.#deps.onPrinted(data.entries)
    else this.#onRunMessage(message)
  }

  #onRunMessage(message: JsonMessage): void {
    const { type, data } = message
    const told = toText(data.prompt_id)
    // Servers without prompt ids tell progress only to the client whose prompt is executing.
    const promptId = told ?? (type === 'progress' ? this.#current : null)
    const isBegun = type === 'execution_start' || (type === 'executing' && data.node !== null)
    if (isBegun && told !== null && this.#listeners.has(told)) {
      this.#current = told
      this.#printing = told
    }
    if (told !== null && typeof data.timestamp === 'number') this.#noteMoment(told, message, data.timestamp)
    this.#listenerOf(promptId)?.onMessage(message)
    if (isEnd(message) && this.#current === promptId) this.#current = null
  }

  #onStatus(data: JsonObject): void {
    const info = isJsonObject(data.status) && isJsonObject(data.status.exec_info) ? data.status.exec_info : null
    const count = info?.queue_remaining
    if (typeof count !== 'number' || count === this.#remaining) return
    this.#remaining = count
    for (const listener of new Set(this.#listeners.values())) listener.onQueueChange()
  }

  #noteMoment(promptId: string, message: JsonMessage, at: number): void {
    if (!this.#listeners.has(promptId)) return
    if (message.type === 'execution_start') this.#times.set(promptId, { startedAt: at, endedAt: null })
    else if (isEnd(message)) this.noteTimes(promptId, { startedAt: null, endedAt: at })
  }

  #printerAt(at: number): string | null {
    for (const [promptId, { startedAt, endedAt }] of this.#times) {
      if (startedAt === null) continue
      if (at >= startedAt - CLOCK_STEP_MS && (endedAt === null || at <= endedAt + CLOCK_STEP_MS)) return promptId
    }
    return null
  }
}

function isEnd({ type, data }: JsonMessage): boolean {
  if (type === 'executing') return data.node === null
  return ENDS.has(type) || (type === 'execution_error' && data.exception_type !== 'ExecutionBlocked')
}

function withoutCodes(text: string): string {
  return text.includes('\u001b') ? text.replaceAll(TERMINAL_CODES, '') : text
}

/** A progress bar paints over itself: only what it showed last is worth keeping, as a line of its own. */
function lastState(text: string): string {
  if (!text.includes('\r')) return text
  const states = text.split(/\r(?!\n)/).filter((state) => state.trim() !== '')
  const last = states.at(-1) ?? ''
  return last === '' || last.endsWith('\n') ? last : `${last}\n`
}
