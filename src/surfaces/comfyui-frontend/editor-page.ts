/**
 * The page of ComfyUI's editor and the policy under which a browser runs it: the scripts of its folder and those that stand in the page
 * itself, known by their digests; no other host, so that nothing is loaded from elsewhere and nothing is sent there.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { ServedFile, ServedFolder } from './send-file.ts'

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

/**
 * A script for the editor's page, of the kind that node packs add: where the engines lack classes of the graph that the editor opens at
 * first, which would then be red all over, it opens a small one that they can run, or an empty one.
 */
export const FIRST_GRAPH_PATH = '/extensions/atelier/first-graph.js'

const node = (id: number, type: string, rest: object) => ({
  ...{
    id,
    type,
    pos: [100 + 320 * (id - 1), 160],
    size: [270, 130],
    flags: {},
    order: id - 1,
    mode: 0,
    properties: {},
  },
  ...rest,
})

const GRAPH = {
  last_node_id: 3,
  last_link_id: 2,
  nodes: [
    node(1, 'EmptyImage', {
      outputs: [{ name: 'IMAGE', type: 'IMAGE', links: [1] }],
      widgets_values: [512, 512, 1, 0x33_66_99],
    }),
    node(2, 'ImageInvert', {
      inputs: [{ name: 'image', type: 'IMAGE', link: 1 }],
      outputs: [{ name: 'IMAGE', type: 'IMAGE', links: [2] }],
    }),
    node(3, 'PreviewImage', { inputs: [{ name: 'images', type: 'IMAGE', link: 2 }] }),
  ],
  links: [
    [1, 1, 0, 2, 0, 'IMAGE'],
    [2, 2, 0, 3, 0, 'IMAGE'],
  ],
  groups: [],
}

/** The editor's own modules are reached as packs reach them; an editor that keeps them elsewhere is left as it is. */
export const FIRST_GRAPH_SCRIPT = `const { app, defaultGraph } = window.comfyAPI ?? {}
const first = defaultGraph?.defaultGraph
const graph = ${JSON.stringify(GRAPH)}
const isKnown = (nodes, classes) => nodes.every(({ type }) => type in classes)
app?.app?.registerExtension({
  name: 'Atelier.FirstGraph',
  addCustomNodeDefs(classes) {
    if (first?.nodes === undefined || isKnown(first.nodes, classes)) return
    Object.assign(first, isKnown(graph.nodes, classes) ? graph : { ...graph, nodes: [], links: [] })
  },
})
`
