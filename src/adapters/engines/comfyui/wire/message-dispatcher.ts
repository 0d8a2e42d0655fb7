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

export interface MessageDispatcher {
  receive(message: EngineMessage): void
  /**
   * A line that the server printed, and when, by the server's clock. It belongs to the run that the server was executing then;
   * without a time, to the one that it is executing or has executed last.
   */
  receiveLog(text: string, at?: number | null): void
  /** When the server began and ended a run, by its own clock. */
  noteTimes(promptId: string, times: RunTimes): void
  attach(promptId: string, listener: RunListener): void
  detach(promptId: string): void
  attached(): number
  /** When the last message of the run came, by performance.now(); null: no run is attached under this id. */
  lastHeardAt(promptId: string): number | null
  queueRemaining(): number | null
}

// Times of messages are cut to milliseconds.
const CLOCK_STEP_MS = 1
// Colours, cursor moves, titles: meant for a terminal.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they begin with one
const TERMINAL_CODES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g
const ENDS: ReadonlySet<string> = new Set(['execution_success', 'execution_interrupted'])

export function createMessageDispatcher({ maxLogLineBytes, onPrinted }: MessageDispatcherOptions): MessageDispatcher {
  const listeners = new Map<string, RunListener>()
  const times = new Map<string, RunTimes>()
  const heardAt = new Map<string, number>()
  /** The prompt that the server is executing, when it is one of ours. */
  let current: string | null = null
  /** The one that it executed last: its printed lines may arrive a moment after its end. */
  let printing: string | null = null
  let remaining: number | null = null

  /** The listener of a run of which something was just heard. */
  function listenerOf(promptId: string | null): RunListener | undefined {
    const listener = promptId === null ? undefined : listeners.get(promptId)
    if (promptId !== null && listener !== undefined) heardAt.set(promptId, performance.now())
    return listener
  }

  function onJson(message: JsonMessage): void {
    const { type, data } = message
    if (type === 'status') onStatus(data)
    else if (type === 'logs') onPrinted(data.entries)
    else onRunMessage(message)
  }

  function onRunMessage(message: JsonMessage): void {
    const { type, data } = message
    const told = toText(data.prompt_id)
    // Servers without prompt ids tell progress only to the client whose prompt is executing.
    const promptId = told ?? (type === 'progress' ? current : null)
    const isBegun = type === 'execution_start' || (type === 'executing' && data.node !== null)
    if (isBegun && told !== null && listeners.has(told)) {
      current = told
      printing = told
    }
    if (told !== null && typeof data.timestamp === 'number') noteMoment(told, message, data.timestamp)
    listenerOf(promptId)?.onMessage(message)
    if (isEnd(message) && current === promptId) current = null
  }

  function onStatus(data: JsonObject): void {
    const info = isJsonObject(data.status) && isJsonObject(data.status.exec_info) ? data.status.exec_info : null
    const count = info?.queue_remaining
    if (typeof count !== 'number' || count === remaining) return
    remaining = count
    for (const listener of new Set(listeners.values())) listener.onQueueChange()
  }

  function noteMoment(promptId: string, message: JsonMessage, at: number): void {
    if (!listeners.has(promptId)) return
    if (message.type === 'execution_start') times.set(promptId, { startedAt: at, endedAt: null })
    else if (isEnd(message)) noteTimes(promptId, { startedAt: null, endedAt: at })
  }

  function noteTimes(promptId: string, { startedAt, endedAt }: RunTimes): void {
    const known = times.get(promptId)
    const both = { startedAt: startedAt ?? known?.startedAt ?? null, endedAt: endedAt ?? known?.endedAt ?? null }
    times.set(promptId, both)
  }

  function printerAt(at: number): string | null {
    for (const [promptId, { startedAt, endedAt }] of times) {
      if (startedAt === null) continue
      if (at >= startedAt - CLOCK_STEP_MS && (endedAt === null || at <= endedAt + CLOCK_STEP_MS)) return promptId
    }
    return null
  }

  function receiveLog(text: string, at: number | null = null): void {
    const listener = listenerOf(at === null || times.size === 0 ? printing : printerAt(at))
    const shown = withoutCodes(text)
    if (listener !== undefined && shown !== '')
      listener.onLog(keepHead(lastState(shown).toWellFormed(), maxLogLineBytes))
  }

  return {
    receive(message) {
      if (message.kind === 'json') onJson(message)
      else
        listenerOf(message.kind === 'preview' && message.promptId !== null ? message.promptId : current)?.onMessage(
          message,
        )
    },
    receiveLog,
    noteTimes,
    attach(promptId, listener) {
      listeners.set(promptId, listener)
      heardAt.set(promptId, performance.now())
    },
    detach(promptId) {
      listeners.delete(promptId)
      times.delete(promptId)
      heardAt.delete(promptId)
      if (current === promptId) current = null
      if (printing === promptId) printing = null
    },
    attached: () => listeners.size,
    lastHeardAt: (promptId) => heardAt.get(promptId) ?? null,
    queueRemaining: () => remaining,
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
