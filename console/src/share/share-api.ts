/**
 * What the page of a link asks for, below its own address, and what it keeps in this browser: which runs were made here. Numbers keep their digits: a
 * seed may have 64 bits.
 */
import { isJsonObject, type JsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { FormInput } from '../form/input-field.tsx'

const PAGE = window.location.pathname.replace(/\/$/, '')

export interface SharedEndpoint {
  readonly title: string
  readonly description: string
  readonly inputs: readonly FormInput[]
}

export interface SharedOutput {
  readonly title: string
  readonly name: string
  readonly content_type: string
  readonly url: string
}

export interface SharedRun {
  readonly run: string
  readonly status: 'queued' | 'running' | 'succeeded' | 'failed' | 'canceled' | 'expired'
  readonly created_at: string
  readonly queue_position: number | null
  readonly progress: { readonly value: number; readonly step: number | null; readonly steps: number | null } | null
  readonly inputs: JsonObject | null
  readonly outputs: readonly SharedOutput[]
  readonly error: { readonly message: string } | null
}

/** In words that are meant for whoever reads the page. */
export class ShareError extends Error {
  readonly status: number
  /** By the name of the input. */
  readonly inputs: ReadonlyMap<string, string>

  constructor(message: string, status: number, inputs: ReadonlyMap<string, string>) {
    super(message)
    this.status = status
    this.inputs = inputs
  }
}

async function ask<Value>(path: string, init: RequestInit = {}): Promise<Value> {
  let response: Response
  try {
    response = await fetch(PAGE + path, init)
  } catch {
    throw new ShareError('The service cannot be reached. Try again in a moment.', 0, new Map())
  }
  const text = await response.text()
  if (response.ok) return parseLosslessJson(text) as Value
  throw toError(text, response.status)
}

function toError(text: string, status: number): ShareError {
  const fallback = new ShareError(`The service answered with an error (${status}).`, status, new Map())
  try {
    const answer = parseLosslessJson(text)
    const error = isJsonObject(answer) ? answer['error'] : null
    if (!isJsonObject(error) || typeof error['message'] !== 'string') return fallback
    const listed = isJsonObject(error['details']) ? error['details']['inputs'] : []
    return new ShareError(sentence(error['message']), status, toProblems(listed))
  } catch {
    return fallback
  }
}

function toProblems(listed: JsonValue | undefined): ReadonlyMap<string, string> {
  const problems = Array.isArray(listed) ? listed.filter(isJsonObject) : []
  return new Map(problems.map(({ name, message }) => [String(name), String(message)]))
}

function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}${/[.!?]$/.test(message) ? '' : '.'}`
}

export const getEndpoint = () => ask<SharedEndpoint>('/endpoint')
export const getRun = (run: string) => ask<SharedRun>(`/runs/${run}`)
export const cancelRun = (run: string) => ask<SharedRun>(`/runs/${run}/cancel`, { method: 'POST' })

/** `inputs`: JSON text. A call that is sent again with the same key makes no second run. */
export function startRun(inputs: string, key: string): Promise<SharedRun> {
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key }
  return ask('/runs', { method: 'POST', headers, body: `{"inputs":${inputs}}` })
}

interface RunWatcher {
  onRun(run: SharedRun): void
  /** An address of the picture. */
  onPreview(url: string): void
  onError(error: ShareError): void
}

export const isOver = ({ status }: SharedRun) => status !== 'queued' && status !== 'running'

/** Until the run is over; returns the end of it. */
export function watchRun(run: string, { onRun, onPreview, onError }: RunWatcher): () => void {
  const events = new EventSource(`${PAGE}/runs/${run}/events`)
  let timer: ReturnType<typeof setTimeout> | undefined
  let isStopped = false
  const stop = () => {
    isStopped = true
    clearTimeout(timer)
    events.close()
  }
  events.addEventListener('run', ({ data }) => {
    const now = parseLosslessJson(data) as unknown as SharedRun
    onRun(now)
    if (isOver(now)) stop()
  })
  events.addEventListener('preview', ({ data }) => {
    const { content_type: type, data_base64: bytes } = JSON.parse(data) as Record<string, string>
    if (/^image\/(?:png|jpeg|webp|gif)$/.test(type)) onPreview(`data:${type};base64,${bytes}`)
  })
  // The browser opens a stream that broke again by itself; one that was refused it does not.
  events.addEventListener('error', () => {
    if (isStopped || events.readyState !== EventSource.CLOSED) return
    timer = setTimeout(() => void poll(), POLL_MS)
  })
  async function poll(): Promise<void> {
    try {
      const now = await getRun(run)
      if (isStopped) return
      onRun(now)
      if (isOver(now)) return stop()
    } catch (error) {
      if (!(error instanceof ShareError)) throw error
      onError(error)
      if (error.status === 404) return stop()
    }
    timer = setTimeout(() => void poll(), POLL_MS)
  }
  return stop
}

const POLL_MS = 2000
const HISTORY_KEY = `atelier-runs ${PAGE}`
const MAX_HISTORY = 50
const RUN = /^[A-Za-z0-9_-]{43}$/

/** The newest first. A browser that keeps nothing has none. */
export function readHistory(): readonly string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(HISTORY_KEY) ?? '[]')
    return Array.isArray(kept) ? kept.filter((run): run is string => typeof run === 'string' && RUN.test(run)) : []
  } catch {
    return []
  }
}

export function writeHistory(runs: readonly string[]): void {
  try {
    if (runs.length === 0) localStorage.removeItem(HISTORY_KEY)
    else localStorage.setItem(HISTORY_KEY, JSON.stringify(runs.slice(0, MAX_HISTORY)))
  } catch {
    // In a frame of another site a browser may keep nothing: the runs are there for as long as the page is.
  }
}

/** A file as a data URL. */
export function readFile(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener('load', () => resolve(String(reader.result)))
    reader.addEventListener('error', () => reject(new ShareError('This file cannot be read.', 0, new Map())))
    reader.readAsDataURL(file)
  })
}

/** What was given for an input of a run, to give it again; a file comes back as its content. */
export async function readUsed(value: JsonValue | undefined): Promise<JsonValue | undefined> {
  if (!isJsonObject(value) || typeof value['url'] !== 'string') return value
  const response = await fetch(value['url'])
  return response.ok ? readFile(await response.blob()) : undefined
}
