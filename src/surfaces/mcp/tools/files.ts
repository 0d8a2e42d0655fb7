/** Tools about files: what goes into workflows, and what comes out. */
import { randomUUID } from 'node:crypto'
import { typeFromName } from '../../../../lib/files/mime.ts'
import { DEFAULT_PIXELS, MAX_SOURCE_BYTES, OUTPUT_URI, showPicture } from '../job-text.ts'
import { toFields } from '../service-api.ts'
import { json, type Tool, type ToolCall, type ToolContent, ToolError, type ToolInput, text } from '../tool.ts'

const MAX_TEXT_BYTES = 65_536
const MAX_PIXELS = 2048
// A request has at most 4 MiB, and base64 makes three bytes four.
const MAX_BASE64_CHARS = 4_000_000
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

const getOutput: Tool = {
  name: 'get_output',
  title: 'Show an output',
  description:
    'Gives an output of a job, or any other asset: a picture to look at (made smaller if it is large), short texts as text, and always a link to the whole file.',
  properties: {
    asset_id: { type: 'string', maxLength: 64, description: 'As the outputs of a job name it.' },
    max_pixels: {
      type: 'integer',
      minimum: 128,
      maximum: MAX_PIXELS,
      description: `The longer side of the picture; ${DEFAULT_PIXELS} if left out.`,
    },
  },
  required: ['asset_id'],
  isReadOnly: true,
  async run(input, call) {
    const { api, signal } = call
    const path = `/api/v2/assets/${encodeURIComponent(String(input['asset_id']))}`
    const asset = toFields(await (await api.call(path, { signal })).json())
    return showAsset({ ...asset, name: asset['file_path'] }, call, { pixels: readPixels(input) })
  },
}

interface Showing {
  readonly pixels?: number
  /** false: only the link. */
  readonly isShown?: boolean
}

/** A picture or a short text to look at, where it is one, and a link to the whole file. */
export async function showAsset(
  { id, content_type: type, size_bytes: size, name, url }: Readonly<Record<string, unknown>>,
  { api, pictures, signal }: ToolCall,
  { pixels, isShown = true }: Showing,
): Promise<readonly ToolContent[]> {
  const link: ToolContent = {
    ...{ type: 'resource_link', uri: `${OUTPUT_URI}${id}`, name: String(name ?? id) },
    ...{ mimeType: String(type), size: Number(size) },
    description: `Download: ${api.toPublicUrl(String(url))}`,
  }
  const isText = /^text\/|\bjson\b/.test(String(type))
  if (!isShown || Number(size) > (isText ? MAX_TEXT_BYTES : MAX_SOURCE_BYTES)) return [link]
  if (!isText && !String(type).startsWith('image/')) return [link]
  const bytes = await api.download(String(id), MAX_SOURCE_BYTES, signal)
  if (bytes === null) return [link]
  const shown = isText ? text(bytes.toString('utf8')) : await showPicture(bytes, pictures, pixels)
  return shown === null ? [link] : [shown, link]
}

function readPixels({ max_pixels: pixels }: ToolInput): number | undefined {
  return typeof pixels === 'number' ? pixels : undefined
}

const ANYWHERE: Tool = {
  name: 'upload_file',
  title: 'Upload a file',
  description:
    'Stores a small file (at most about 3 MB) for use in workflows and gives the value that stands for it as an input. Larger files are sent to POST /api/v2/assets.',
  properties: {
    name: { type: 'string', minLength: 1, maxLength: 200, description: 'The file name, such as cat.png.' },
    data: { type: 'string', maxLength: MAX_BASE64_CHARS, description: 'Its bytes in base64.' },
  },
  required: ['name', 'data'],
  isReadOnly: false,
  async run(input, call) {
    const data = String(input['data'])
    if (!BASE64.test(data)) throw new ToolError('data must be base64')
    const content = new Blob([Buffer.from(data, 'base64')])
    return upload(String(input['name']), content, call)
  },
}

/** Where the agent is on the machine of its files, it may name them instead. */
const ON_THIS_MACHINE: Tool = {
  ...ANYWHERE,
  description:
    'Stores a file for use in workflows and gives the value that stands for it as an input. Give the path of a file in a folder that this connection may read, or name and data.',
  properties: {
    ...ANYWHERE.properties,
    path: {
      type: 'string',
      minLength: 1,
      maxLength: 4096,
      description: 'Instead of name and data: a file of this machine.',
    },
  },
  required: [],
  async run(input, call) {
    const { path } = input
    if (path === undefined) {
      if (input['name'] === undefined || input['data'] === undefined) throw new ToolError('give path, or name and data')
      return ANYWHERE.run(input, call)
    }
    if (call.openFile === null) throw new ToolError('no file of this machine may be sent')
    const { name, content } = await call.openFile(String(path))
    return upload(name, content, call)
  },
}

async function upload(name: string, content: Blob, { api, signal }: ToolCall): Promise<readonly ToolContent[]> {
  const contentType = typeFromName(name) ?? 'application/octet-stream'
  const form = new FormData()
  form.set('content_type', contentType)
  form.set('file_path', name)
  form.set('file', content, name)
  const headers = { 'Idempotency-Key': randomUUID() }
  const response = await api.call('/api/v2/assets', { method: 'POST', headers, body: form, signal })
  const { id, hash, size_bytes } = toFields(await response.json())
  const value = { __type: 'core/ASSET', info: { id, hash, file_path: name } }
  return [json({ asset_id: id, size_bytes, content_type: contentType, workflow_input: value })]
}

export function fileTools(isOnThisMachine: boolean): readonly Tool[] {
  return [getOutput, isOnThisMachine ? ON_THIS_MACHINE : ANYWHERE]
}
