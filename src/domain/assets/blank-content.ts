/**
 * What is to be blanked in a file before somebody gets it who may not see how it was made: generators write whole workflows beside the
 * content. Of a kind whose hidden parts are not known here nothing is handed out.
 */
import { findMetadata } from '../../../lib/files/blank-metadata/blank-metadata.ts'
import type { Patch } from '../../../lib/files/blank-metadata/patches.ts'
import { toBareType } from '../../../lib/files/mime.ts'
import type { ByteRange } from './blob-store.ts'

interface MadeFile {
  readonly contentType: string
  readonly sizeBytes: number
  readonly open: (range?: ByteRange) => Promise<AsyncIterable<Uint8Array>>
}

const TEXTS: ReadonlySet<string> = new Set(['text/plain', 'text/markdown', 'text/csv', 'application/json'])
const MAX_TEXT_BYTES = 4 * 1024 * 1024
// In every graph, whatever its nodes, also in one that stands as a text in another; in what the editor saves.
const GRAPH_MARK = /class_type|last_(?:node|link)_id|widgets_values/

/** null: it must not be handed out. */
export async function findBlanks(file: MadeFile): Promise<readonly Patch[] | null> {
  if (await isPlainText(file)) return []
  return findMetadata(file.sizeBytes, async (start, length) =>
    readAll(await file.open({ start, end: start + length - 1 })),
  )
}

async function isPlainText({ contentType, sizeBytes, open }: MadeFile): Promise<boolean> {
  if (!TEXTS.has(toBareType(contentType)) || sizeBytes > MAX_TEXT_BYTES) return false
  return !GRAPH_MARK.test((await readAll(await open())).toString('utf8'))
}

async function readAll(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of source) pieces.push(piece)
  return Buffer.concat(pieces)
}
