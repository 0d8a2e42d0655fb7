/**
 * The page of ComfyUI's editor and the policy under which a browser runs it: the scripts of its folder and those that stand in the page
 * itself, known by their digests; no other host, so that nothing is loaded from elsewhere and nothing is sent there.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { ServedFile, ServedFolder } from './served-folder.ts'

interface EditorPage {
  readonly bytes: Buffer
  /** Sources of `script-src` for the scripts in the page. */
  readonly scriptDigests: readonly string[]
}

interface EditorPages {
  /** null: the folder has no page any more. */
  current(): Promise<EditorPage | null>
}

const PAGE = 'index.html'
const MAX_PAGE_BYTES = 4 * 1024 * 1024
const SCRIPT = /<script\b([^>]*)>([\s\S]*?)<\/script\s*>/gi

/** The page is read again when it has changed, so that a newer copy in the folder needs no restart. */
export function createEditorPages(folder: ServedFolder): EditorPages {
  let known: { readonly mark: string; readonly page: EditorPage } | null = null
  return {
    async current() {
      const file = await folder.find(PAGE)
      if (file === null || file.sizeBytes > MAX_PAGE_BYTES) return null
      const mark = `${file.modifiedMs} ${file.sizeBytes}`
      if (known?.mark !== mark) known = { mark, page: await readPage(file) }
      return known.page
    },
  }
}

async function readPage(file: ServedFile): Promise<EditorPage> {
  const bytes = await readFile(file.path)
  const inline = [...bytes.toString('utf8').matchAll(SCRIPT)].filter(
    ([, attributes = '']) => !/\ssrc\s*=/i.test(attributes),
  )
  const scriptDigests = inline.map(
    ([, , text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  )
  return { bytes, scriptDigests: [...new Set(scriptDigests)] }
}

interface PolicyOptions {
  readonly scriptDigests: readonly string[]
  /** The page's own. */
  readonly origin: string
  /** Hosts other than ours that addresses of outputs lead to. */
  readonly contentOrigins: readonly string[]
}

export function toEditorPolicy({ scriptDigests, origin, contentOrigins }: PolicyOptions): string {
  const media = ["'self'", 'blob:', 'data:', ...contentOrigins].join(' ')
  const socket = origin.replace(/^http/, 'ws')
  return [
    "default-src 'none'",
    // The editor decodes some 3D files with compiled code; text is never run as a script.
    ["script-src 'self' 'wasm-unsafe-eval'", ...scriptDigests].join(' '),
    "worker-src 'self' blob:",
    // The editor sets styles from its scripts.
    "style-src 'self' 'unsafe-inline'",
    `img-src ${media}`,
    `media-src ${media}`,
    "font-src 'self' data:",
    `connect-src ${media} ${socket}`,
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}
