/**
 * The fenced blocks of a Markdown page, and what is to be done with each. Readers see only the blocks; what a test must know
 * beyond them stands in an HTML comment on the line above a fence:
 *
 *   <!-- not run: needs a certificate -->     nobody runs it, for this reason
 *   <!-- file: my-models/local/x.json -->     the reader saves it under this name, as the text beside it says
 *   <!-- config: cloud -->                    it is a config file of a service of this kind
 *   <!-- same as: examples/nodes/x.ts -->     it shows this file, whole
 */
const FENCE = /^( *)(`{3,})([a-z]*)\s*$/
const MARK = /^<!-- (not run|file|config|same as): (.+) -->$/

export type Use =
  | { readonly kind: 'shell' | 'sample' | 'python' | 'json' | 'picture' }
  | { readonly kind: 'not run'; readonly reason: string }
  | { readonly kind: 'file' | 'same as'; readonly path: string }
  | { readonly kind: 'config'; readonly deployment: string }

export interface Block {
  /** Of the first line inside the fence, counted from 1. */
  readonly line: number
  readonly language: string
  readonly text: string
  readonly use: Use
}

export function readBlocks(markdown: string): Block[] {
  const lines = markdown.split('\n')
  const blocks: Block[] = []
  for (let at = 0; at < lines.length; at++) {
    const opening = FENCE.exec(lines[at])
    if (opening === null) continue
    const [, indent, ticks, language] = opening
    const end = lines.indexOf(indent + ticks, at + 1)
    if (end === -1) throw new Error(`line ${at + 1}: a fence that nothing closes`)
    const text = lines
      .slice(at + 1, end)
      .map((line) => line.slice(indent.length))
      .join('\n')
    blocks.push({ line: at + 2, language, text, use: toUse(language, lines[at - 1] ?? '', at + 1) })
    at = end
  }
  return blocks
}

function toUse(language: string, lineAbove: string, line: number): Use {
  const mark = MARK.exec(lineAbove.trim())
  if (mark !== null) {
    const [, kind, value] = mark
    if (kind === 'not run') return { kind, reason: value }
    if (kind === 'config') return { kind, deployment: value }
    return { kind: kind as 'file' | 'same as', path: value }
  }
  if (language === 'sh') return { kind: 'shell' }
  if (language === 'ts') return { kind: 'sample' }
  if (language === 'py') return { kind: 'python' }
  if (language === 'json') return { kind: 'json' }
  if (language === '') return { kind: 'picture' }
  throw new Error(
    `line ${line}: nothing runs a block of ${language}; if nothing can, say why above it: <!-- not run: … -->`,
  )
}
