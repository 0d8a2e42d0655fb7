/**
 * A form as it is filled in, as text for the address: a reload, going back and a link that is sent on show it again. It stands in the
 * fragment, which no server and no log is told. What is too long for an address is kept by saving the form.
 */
import type { BatchWay } from '../../form/batch.ts'

export interface Draft {
  /** null: the address names the job or the saved form that has it. */
  readonly workflowText: string | null
  readonly name: string
  /** By `node input`. */
  readonly typed: readonly (readonly [key: string, text: string])[]
  readonly files: readonly (readonly [key: string, files: readonly DraftFile[]])[]
  readonly several: readonly string[]
  readonly way: BatchWay
}

type DraftFile = readonly [assetId: string, name: string, type: string]

// Browsers, chat programs and proxies cut what is much longer.
const MAX_TEXT = 16_000
/** Whoever sends a link may have packed anything into it. */
const MAX_BYTES = 2_000_000
const MAX_ENTRIES = 10_000

export function isEmptyDraft({ workflowText, typed, files, several }: Draft): boolean {
  return workflowText === null && typed.length === 0 && files.length === 0 && several.length === 0
}

/** null: it is too long. */
export async function packDraft(draft: Draft): Promise<string | null> {
  const { workflowText, name, typed, files, several, way } = draft
  const json = JSON.stringify([workflowText, name, typed, files, several, way])
  const packed = await readAll(new Blob([json]).stream().pipeThrough(new CompressionStream('deflate-raw')), MAX_BYTES)
  if (packed === null || packed.length > MAX_TEXT) return null
  let text = ''
  for (const byte of packed) text += String.fromCharCode(byte)
  const base64 = btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  return base64.length > MAX_TEXT ? null : base64
}

/** null: this is no draft. */
export async function unpackDraft(text: string): Promise<Draft | null> {
  if (text.length > MAX_TEXT || !/^[\w-]+$/.test(text)) return null
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (mark) => mark.charCodeAt(0))
    const json = await readAll(
      new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw')),
      MAX_BYTES,
    )
    return json === null ? null : readDraft(JSON.parse(new TextDecoder().decode(json)))
  } catch {
    return null
  }
}

async function readAll(stream: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array | null> {
  const reader = stream.getReader()
  const parts: Uint8Array<ArrayBuffer>[] = []
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    length += value.length
    if (length > maxBytes) {
      await reader.cancel()
      return null
    }
    parts.push(Uint8Array.from(value))
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer())
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value) && value.length <= MAX_ENTRIES

function isTyped(value: unknown): value is readonly [string, string] {
  return isList(value) && value.length === 2 && value.every(isText)
}

/** An id is put into the workflow: it is nothing but an id. */
function isFile(value: unknown): value is DraftFile {
  return isList(value) && value.length === 3 && value.every(isText) && /^[\w:-]{1,100}$/.test(String(value[0]))
}

function isFiles(value: unknown): value is readonly [string, readonly DraftFile[]] {
  return isList(value) && value.length === 2 && isText(value[0]) && isList(value[1]) && value[1].every(isFile)
}

function readDraft(value: unknown): Draft | null {
  if (!isList(value)) return null
  const [workflowText, name, typed, files, several, way] = value
  if ((workflowText !== null && !isText(workflowText)) || !isText(name)) return null
  if (!isList(typed) || !typed.every(isTyped) || !isList(files) || !files.every(isFiles)) return null
  if (!isList(several) || !several.every(isText)) return null
  const known = way === 'side by side' ? way : 'combinations'
  return { workflowText, name: name.slice(0, 80), typed, files, several, way: known }
}

/** The fragment of the page: whether the JSON is shown, and the draft. */
export function readRunHash(hash: string): { readonly isJson: boolean; readonly draft: string | null } {
  const parts = hash.split('&')
  const draft = parts.find((part) => part.startsWith('draft='))?.slice('draft='.length) ?? null
  return { isJson: parts.includes('json'), draft }
}

export function writeRunHash({ isJson, draft }: ReturnType<typeof readRunHash>): string {
  return [...(isJson ? ['json'] : []), ...(draft === null ? [] : [`draft=${draft}`])].join('&')
}
