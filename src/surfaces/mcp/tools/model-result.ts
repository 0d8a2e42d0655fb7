/** What a model gave, as an agent can use it: pictures are shown, also those that stand as base64 within a JSON answer. */
import { readBytes } from '../service-api.ts'
import { MAX_SOURCE_BYTES, showPicture } from '../show-picture.ts'
import { json, type ToolContent, type ToolHost } from '../tool.ts'

interface TellOptions extends Pick<ToolHost, 'pictures'> {
  /** Where the whole result is. */
  readonly url: string
}

// Shorter texts are hardly files; longer ones that are no files stay as they are.
const MIN_FILE_CHARS = 256
const MAX_SHOWN = 8
const DATA_URI = /^data:[\w.+/-]{1,100}(?:;[\w=-]{1,100}){0,4},/

export async function tellResult(response: Response, { pictures, url }: TellOptions): Promise<readonly ToolContent[]> {
  const type = response.headers.get('Content-Type') ?? ''
  const cost = creditsOf(response.headers)
  const bytes = await readBytes(response, MAX_SOURCE_BYTES)
  if (bytes === null) return [json({ ...cost, content_type: type, result: 'too large to be told here', url })]
  const value = /\bjson\b/.test(type) ? JSON.parse(bytes.toString('utf8')) : null
  if (value === null) {
    const shown = await showPicture(bytes, pictures)
    return [json({ ...cost, content_type: type, size_bytes: bytes.length, url }), ...(shown === null ? [] : [shown])]
  }
  const shown: ToolContent[] = []
  const result = await replaceFiles(value, async (file) => {
    const picture = shown.length < MAX_SHOWN ? await showPicture(file, pictures) : null
    if (picture !== null) shown.push(picture)
    return picture === null ? `a file of ${file.length} bytes; see url` : `picture ${shown.length} below`
  })
  return [json({ ...cost, result, url }), ...shown]
}

/** The header bears the name of the service's brand. */
function creditsOf(headers: Headers): { readonly credits_used?: string } {
  for (const [name, value] of headers) if (name.endsWith('-credits-used')) return { credits_used: value }
  return {}
}

async function replaceFiles(value: unknown, name: (file: Buffer) => Promise<string>): Promise<unknown> {
  if (typeof value === 'string') {
    const file = readFile(value)
    return file === null ? value : name(file)
  }
  if (Array.isArray(value)) {
    const items: unknown[] = []
    for (const item of value) items.push(await replaceFiles(item, name))
    return items
  }
  if (typeof value !== 'object' || value === null) return value
  const members: [string, unknown][] = []
  for (const [key, item] of Object.entries(value)) members.push([key, await replaceFiles(item, name)])
  return Object.fromEntries(members)
}

/** Base64 alone or as a data URI; null for any other text. */
function readFile(value: string): Buffer | null {
  if (value.length < MIN_FILE_CHARS) return null
  const start = DATA_URI.exec(value.slice(0, 600))?.[0].length ?? 0
  const isBase64 = /^[A-Za-z0-9+/]{200}/.test(value.slice(start)) && /^[A-Za-z0-9+/]{50,}={0,2}$/.test(value.slice(-60))
  return isBase64 ? Buffer.from(value.slice(start), 'base64') : null
}
