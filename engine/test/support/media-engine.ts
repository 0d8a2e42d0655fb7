/** An engine with the media classes, and what tests read from its runs. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type JsonObject, type JsonValue, NumberText } from '../../../lib/json/lossless-json.ts'
import type { EngineOptions } from '../../engine.ts'
import type { EngineEvent, ReportedFile } from '../../graph/run-event.ts'
import { bytesOf, dumped, lastOf, openTestEngine, reportOf, type TestEngine } from './harness.ts'

export function openMediaEngine(options: Partial<EngineOptions> = {}): Promise<TestEngine> {
  const modules = ['./test-nodes.ts', './ramp-nodes.ts']
  return openTestEngine({ nodeModules: modules.map((path) => new URL(path, import.meta.url).href), ...options })
}

export interface SeenTensor {
  readonly shape: readonly number[]
  readonly data: Float32Array
}

export function toTensor(value: JsonValue): SeenTensor {
  const { kind, shape, f32_b64: text } = value as JsonObject
  assert.equal(kind, 'tensor')
  const bytes = Buffer.from(text as string, 'base64')
  const data = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
  return { shape: (shape as JsonValue[]).map(Number), data }
}

/** The tensor that a TestDump node saw. */
export function seenTensor(events: readonly EngineEvent[], nodeId: string): SeenTensor {
  return toTensor(dumped(events, nodeId)[0])
}

/** The plain value that a TestDump node saw. */
export function seenValue(events: readonly EngineEvent[], nodeId: string): unknown {
  const { value } = dumped(events, nodeId)[0] as JsonObject
  return value instanceof NumberText ? Number(value.text) : value
}

/** The sound that a TestDump node saw. */
export function seenAudio(events: readonly EngineEvent[], nodeId: string): SeenTensor & { readonly rate: number } {
  const { value } = dumped(events, nodeId)[0] as JsonObject
  const { waveform, sample_rate: rate } = value as JsonObject
  return { ...toTensor(waveform), rate: Number((rate as JsonObject).value) }
}

export function files(events: readonly EngineEvent[], nodeId: string, key: string): ReportedFile[] {
  return reportOf(events, nodeId, key).filter((item) => item.kind === 'file')
}

export function failureOf(events: readonly EngineEvent[]): { type: string; message: string } {
  const { failure } = lastOf(events, 'failed')
  return { type: failure.exceptionType, message: failure.message }
}

/** What ffprobe says about bytes, by the entries asked for. */
export function probed(bytes: Uint8Array, entries: string): JsonObject {
  const folder = mkdtempSync(join(tmpdir(), 'probed-'))
  try {
    const path = join(folder, 'media')
    writeFileSync(path, bytes)
    const args = ['-v', 'error', '-count_frames', '-show_entries', entries, '-of', 'json', path]
    return JSON.parse(spawnSync('ffprobe', args, { maxBuffer: 16_777_216 }).stdout.toString())
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The one file that a node reported, with its bytes. */
export async function onlyFile(events: readonly EngineEvent[], nodeId: string, key = 'images') {
  const found = files(events, nodeId, key)
  assert.equal(found.length, 1, JSON.stringify(events.at(-1)))
  return { name: `${found[0].subfolder}|${found[0].filename}`, file: found[0], bytes: await bytesOf(found[0]) }
}
