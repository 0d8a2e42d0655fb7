/** The graphs in the history of a running ComfyUI, as carriers of workflows. */
import {
  isJsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { CommandError, EXIT } from '../terminal.ts'
import type { Carrier } from './carried-workflows.ts'

const MAX_ITEMS = 1000
const MAX_BYTES = 256 * 1024 * 1024
const ANSWER_WITHIN_MS = 120_000

export async function readHistory(address: string, signal: AbortSignal): Promise<Carrier[]> {
  const base = URL.canParse(address) ? new URL(address) : null
  if (base === null || !/^https?:$/.test(base.protocol))
    throw new CommandError(
      `--history ${JSON.stringify(address)} is not an address such as http://127.0.0.1:8188`,
      EXIT.usage,
    )
  const url = `${base.href.replace(/\/+$/, '')}/history?max_items=${MAX_ITEMS}`
  const history = parse(await fetchText(url, AbortSignal.any([signal, AbortSignal.timeout(ANSWER_WITHIN_MS)])), url)
  const entries = isJsonObject(history) ? Object.entries(history) : []
  // The last one is the newest; the history does not say more of their times.
  return entries.map(([id, entry], index) => ({
    name: id,
    madeAt: new Date(index),
    readTexts: () => textsOf(isJsonObject(entry) ? entry['prompt'] : null),
  }))
}

async function fetchText(url: string, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    const response = await fetch(url, { signal })
    if (!response.ok || response.body === null) throw new Error(`it answered ${response.status}`)
    for await (const chunk of response.body) {
      size += chunk.byteLength
      if (size > MAX_BYTES) throw new Error('its history is too large')
      chunks.push(chunk)
    }
  } catch (error) {
    throw new CommandError(
      `cannot read ${url}: ${(error as Error).message}; is ComfyUI running there?`,
      EXIT.unreachable,
    )
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string, url: string): JsonValue {
  try {
    return parseLosslessJson(text)
  } catch {
    throw new CommandError(`${url} does not answer with JSON; is it a ComfyUI?`, EXIT.failed)
  }
}

/** `[number, id, graph, extra data, outputs]`, as ComfyUI keeps a prompt. */
function textsOf(prompt: JsonValue): string[] {
  if (!Array.isArray(prompt)) return []
  const [, , graph, extra] = prompt
  const info = isJsonObject(extra) ? extra['extra_pnginfo'] : null
  const workflow = isJsonObject(info) ? info['workflow'] : null
  return [workflow, graph].flatMap((one) => (isJsonObject(one) ? [stringifyLosslessJson(one)] : []))
}
