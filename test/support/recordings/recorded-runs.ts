/**
 * Runs that were recorded with a real ComfyUI: every file in the folder of recordings that holds a submitted prompt. New files are
 * picked up automatically. They are returned in the order in which they were recorded.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type JsonObject, type JsonValue, parseLosslessJson } from '../../../lib/json/lossless-json.ts'

export const RECORDINGS = fileURLToPath(new URL('../../fixtures/recordings/', import.meta.url))

export interface Exchange {
  readonly request: {
    readonly method: string
    readonly path: string
    readonly headers?: Readonly<Record<string, string>>
    readonly json?: JsonValue
    readonly raw?: string
  }
  readonly response: { readonly status: number; readonly body: JsonValue }
}

export interface RecordedText {
  readonly type: string
  readonly data: JsonObject
}

export type RecordedFrame = RecordedText | { readonly binary: string; readonly length: number }

export interface RecordedRun {
  readonly name: string
  /** null when nobody listened. */
  readonly websocket: { readonly path: string; readonly sent: readonly JsonValue[] } | null
  readonly post: Exchange
  /** Exchanges that were made while the run was under way. */
  readonly during: Readonly<Record<string, Exchange>>
  readonly frames: readonly RecordedFrame[]
  readonly history: JsonObject
  readonly job: JsonObject | null
}

interface StoredRun {
  readonly websocket?: RecordedRun['websocket']
  readonly post?: Exchange
  readonly during?: RecordedRun['during']
  readonly frames?: readonly RecordedFrame[]
  readonly history?: JsonObject
  readonly job?: JsonObject
}

export function readRecording(name: string): JsonObject {
  return parseLosslessJson(readFileSync(`${RECORDINGS}${name}.json`, 'utf8')) as JsonObject
}

export function listRecordedRuns(): readonly RecordedRun[] {
  const names = readdirSync(RECORDINGS).filter((file) => file.endsWith('.json'))
  return names.flatMap((file) => toRun(file.slice(0, -'.json'.length))).sort((a, b) => numberOf(a) - numberOf(b))
}

function toRun(name: string): RecordedRun[] {
  const { websocket, post, during, frames, history, job } = readRecording(name) as unknown as StoredRun
  if (post === undefined || post.response.status !== 200) return []
  return [
    {
      name,
      websocket: websocket ?? null,
      post,
      during: during ?? {},
      frames: frames ?? [],
      history: history ?? {},
      job: job ?? null,
    },
  ]
}

function numberOf({ post }: RecordedRun): number {
  return Number((post.response.body as JsonObject)['number'])
}

export function promptIdOf(exchange: Exchange): string {
  return String((exchange.response.body as JsonObject)['prompt_id'])
}

/** Nodes that were cached when the run began: empty where it owed nothing to the run before it. */
export function cachedNodesOf({ frames, history }: RecordedRun): readonly string[] {
  const frame = frames.find((one): one is RecordedText => 'type' in one && one.type === 'execution_cached')
  if (frame !== undefined) return frame.data['nodes'] as string[]
  const [entry] = Object.values(history) as { status: { messages: [string, JsonObject][] } }[]
  const message = entry?.status.messages.find(([type]) => type === 'execution_cached')
  return (message?.[1]['nodes'] ?? []) as string[]
}
