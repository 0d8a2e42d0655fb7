/**
 * The texts that the editor fills in when it makes a prompt: `%date:yyyy-MM-dd%` and `%Node.widget%` in the names of files, and
 * `{day|night}` in prompts, of which one is picked.
 */
import { type JsonValue, NumberText } from '../../../../../lib/json/lossless-json.ts'
import type { Spend } from '../../graph-refusals.ts'
import { type EditorNode, findWidget } from '../editor/editor-graph.ts'

/** The classes whose `filename_prefix` is filled in. */
const SAVING: ReadonlySet<string> = new Set([
  'SaveImage',
  'SaveImageAdvanced',
  'SaveSVGNode',
  'SaveVideo',
  'SaveAnimatedWEBP',
  'SaveWEBM',
  'SaveAudio',
  'SaveAudioMP3',
  'SaveAudioOpus',
  'SaveAudioAdvanced',
  'SaveGLB',
  'Save3DAdvanced',
  'SaveGaussianSplat',
  'SavePointCloud',
  'SaveAnimatedPNG',
  'CLIPSave',
  'VAESave',
  'ModelSave',
  'LoraSave',
  'SaveLatent',
])

export function isFileName(node: EditorNode, widgetName: string): boolean {
  return widgetName === 'filename_prefix' && SAVING.has(node.type)
}

// Characters that no file system takes in a name.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
const UNSAFE = /[/?<>\\:*|"\x00-\x1F\x7F]/g

export type ReplaceText = (text: string) => string

interface ReplaceOptions {
  readonly now: Date
  /** Called with the length of every text that is read or put in: texts that take in others could double with each. */
  readonly spend: Spend
}

/** `nodes`: of the whole workflow, subgraphs included; of several with one name the first counts. */
export function createReplaceText(nodes: readonly EditorNode[], { now, spend }: ReplaceOptions): ReplaceText {
  const byAlias = new Map<JsonValue, EditorNode>()
  const byTitle = new Map<string, EditorNode>()
  for (const node of nodes) {
    const alias = aliasOf(node)
    if (alias !== undefined && !byAlias.has(alias)) byAlias.set(alias, node)
    if (!byTitle.has(node.title)) byTitle.set(node.title, node)
  }
  return (text) => {
    spend(text.length)
    return text.replace(/%([^%]+)%/g, (match, inner: string) => {
      const parts = inner.split('.')
      if (parts.length !== 2) {
        return parts[0].startsWith('date:') ? formatDate(parts[0].slice('date:'.length), now) : match
      }
      const node = byAlias.get(parts[0]) ?? byTitle.get(parts[0])
      if (node === undefined) return match
      const widget = findWidget(node, parts[1])
      const value = widget === undefined ? null : toText(widget.value)
      spend(node.widgets.length + node.inputs.length + (value?.length ?? 0))
      return value === null ? match : value.replace(UNSAFE, '_')
    })
  }
}

const ALIAS = 'Node name for S&R'

function aliasOf({ kind, type, properties }: EditorNode): JsonValue | undefined {
  if (Object.hasOwn(properties, ALIAS)) return properties[ALIAS]
  return kind === 'class' && !SAVING.has(type) ? type : undefined
}

/** null for lists and objects, which are nothing to put into a name. */
function toText(value: JsonValue | undefined): string | null {
  if (value === null || value === undefined) return ''
  if (value instanceof NumberText) return String(value.value)
  return typeof value === 'object' ? null : String(value)
}

const DATE_PARTS: Readonly<Record<string, (date: Date) => number>> = {
  d: (date) => date.getDate(),
  M: (date) => date.getMonth() + 1,
  h: (date) => date.getHours(),
  m: (date) => date.getMinutes(),
  s: (date) => date.getSeconds(),
}

function formatDate(pattern: string, date: Date): string {
  return pattern.replace(/dd?|MM?|hh?|mm?|ss?|yyy?y?/g, (part) => {
    if (part === 'yy') return String(date.getFullYear()).slice(2)
    if (part === 'yyyy') return String(date.getFullYear())
    const read = Object.hasOwn(DATE_PARTS, part[0]) ? DATE_PARTS[part[0]] : undefined
    return read === undefined ? part : String(read(date)).padStart(part.length, '0')
  })
}

const ESCAPED = /\\([{}|])/g
const SPECIAL = /[\\{}|]/g

// Real prompts nest two or three deep; deeper braces stay as they are.
const MAX_NESTING = 100

interface Block {
  /** The alternatives that are complete. */
  readonly options: string[]
  text: string
}

/** `pick(count)` says which of so many alternatives is taken. Braces without alternatives just vanish, as comments do. */
export function resolveWildcards(text: string, pick: (count: number) => number): string {
  const input = withoutComments(text)
  const outer: Block = { options: [], text: '' }
  const open: Block[] = []
  let current = outer
  const close = () => {
    const options = [...current.options, current.text]
    open.pop()
    current = open.at(-1) ?? outer
    current.text += options.length === 1 ? options[0] : options[pick(options.length)]
  }
  let at = 0
  while (at < input.length) {
    SPECIAL.lastIndex = at
    const next = SPECIAL.test(input) ? SPECIAL.lastIndex - 1 : input.length
    if (next > at) current.text += input.slice(at, next)
    if (next === input.length) break
    const character = input[next]
    at = next + 1
    if (character === '\\') current.text += `\\${input[at++]}`
    else if (character === '{' && open.length < MAX_NESTING) {
      current = { options: [], text: '' }
      open.push(current)
    } else if (character === '}' && open.length > 0) close()
    else if (character === '|' && open.length > 0) {
      current.options.push(current.text)
      current.text = ''
    } else current.text += character
  }
  // A brace that is never closed ends with the text.
  while (open.length > 0) close()
  return outer.text.replace(ESCAPED, '$1')
}

const LINE_END = /[\n\r\u2028\u2029]/g

/** By hand and not by a pattern: a pattern takes quadratic time for openings that are never closed. */
function withoutComments(text: string): string {
  let kept = ''
  let from = 0
  let hasEnd = true
  for (let at = text.indexOf('/'); at !== -1; at = text.indexOf('/', at)) {
    const next = text[at + 1]
    const end = next === '*' && hasEnd ? text.indexOf('*/', at + 2) : -1
    if (next === '*' && end === -1) hasEnd = false
    if (next !== '/' && end === -1) {
      at++
      continue
    }
    kept += text.slice(from, at)
    from = next === '/' ? endOfLine(text, at) : end + 2
    at = from
  }
  return kept + text.slice(from)
}

function endOfLine(text: string, start: number): number {
  LINE_END.lastIndex = start
  return LINE_END.exec(text)?.index ?? text.length
}
