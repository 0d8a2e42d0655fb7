/** Recorded sessions with a real server: their frames, and a fake server that replays them. */
import { readFileSync } from 'node:fs'
import { type JsonObject, parseLosslessJson, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'
import type { HistoryRecord, Prompt } from './prompt-queue.ts'

export type RecordedFrame = JsonObject | { readonly binary: string; readonly length: number }

export interface Recording {
  readonly post: {
    readonly request: { readonly json: { readonly prompt: JsonObject; readonly extra_data?: JsonObject } }
    readonly response: { readonly body: { readonly prompt_id: string } }
  }
  readonly frames: readonly RecordedFrame[]
  readonly history: Readonly<Record<string, HistoryRecord>>
}

export function readRecording(name: string): Recording {
  const path = new URL(`../../../fixtures/recordings/${name}.json`, import.meta.url)
  return parseLosslessJson(readFileSync(path, 'utf8')) as unknown as Recording
}

export function isBinary(frame: RecordedFrame): frame is { readonly binary: string; readonly length: number } {
  return 'binary' in frame && typeof frame.binary === 'string'
}

/** Frames of the run itself, with its new id; connection and queue talk is the server's own. */
export async function playRecording(
  { frames, history, post }: Recording,
  prompt: Prompt,
  send: (frame: string | Buffer) => void,
): Promise<Omit<HistoryRecord, 'prompt'>> {
  const recordedId = post.response.body.prompt_id
  const rename = (text: string) => text.replaceAll(recordedId, prompt.id)
  for (const frame of frames) {
    if (isBinary(frame)) {
      const bytes = Buffer.from(frame.binary, 'base64').toString('latin1')
      // Both ids have the same length, so the lengths inside the frame stay true.
      send(Buffer.from(rename(bytes), 'latin1'))
    } else {
      const { type, data } = frame as { type: string; data: { node?: string | null } }
      const isTalk = type === 'status' || type === 'feature_flags' || (type === 'executing' && data.node === null)
      if (!isTalk) send(rename(stringifyLosslessJson(frame)))
    }
  }
  const record = Object.values(history)[0] as HistoryRecord
  return JSON.parse(rename(JSON.stringify(record))) as HistoryRecord
}
