/** A regular expression as a tree. Flags are settled while parsing: every node says for itself how it compares. */

export interface RegexFlags {
  readonly ignoreCase: boolean
  readonly multiline: boolean
  readonly dotAll: boolean
  readonly verbose: boolean
  /** `\w`, `\d`, `\s`, `\b` and case know ASCII only. */
  readonly ascii: boolean
}

/** How characters are compared: as they are, or by their lower case. */
export type Folding = 'none' | 'unicode' | 'ascii'

export type Category = 'digit' | 'space' | 'word'

export type SetItem =
  | { readonly kind: 'range'; readonly low: number; readonly high: number }
  | { readonly kind: 'category'; readonly category: Category; readonly isNegated: boolean; readonly ascii: boolean }

export type Position =
  | 'text start'
  | 'text end'
  | 'line start'
  | 'line end'
  | 'last line end'
  | 'boundary'
  | 'inside'
  | 'ascii boundary'
  | 'ascii inside'

export type RepeatMode = 'greedy' | 'lazy' | 'possessive'

/** Stands for "no upper bound", as in CPython. */
export const UNBOUNDED = 2 ** 32 - 1

export type RegexNode =
  | { readonly kind: 'literal'; readonly code: number; readonly folding: Folding }
  | { readonly kind: 'set'; readonly items: readonly SetItem[]; readonly isNegated: boolean; readonly folding: Folding }
  | { readonly kind: 'any'; readonly withNewline: boolean }
  | { readonly kind: 'at'; readonly position: Position }
  | { readonly kind: 'sequence'; readonly nodes: readonly RegexNode[] }
  | { readonly kind: 'branch'; readonly options: readonly RegexNode[] }
  | { readonly kind: 'group'; readonly index: number; readonly body: RegexNode }
  | {
      readonly kind: 'repeat'
      readonly min: number
      readonly max: number
      readonly mode: RepeatMode
      readonly body: RegexNode
    }
  | {
      readonly kind: 'look'
      /** Characters to step back first; null looks ahead. */
      readonly behind: number | null
      readonly isNegated: boolean
      readonly body: RegexNode
    }
  | { readonly kind: 'atomic'; readonly body: RegexNode }
  | { readonly kind: 'reference'; readonly group: number; readonly folding: Folding }
  | { readonly kind: 'conditional'; readonly group: number; readonly yes: RegexNode; readonly no: RegexNode }

export interface ParsedRegex {
  readonly root: RegexNode
  readonly groupCount: number
  readonly groupNames: ReadonlyMap<string, number>
}

/** The pattern or the replacement is wrong: Python's `re.error`. */
export class RegexError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'RegexError'
  }
}

export interface Width {
  readonly min: number
  readonly max: number
}

const NOTHING: Width = { min: 0, max: 0 }
const ONE: Width = { min: 1, max: 1 }

const capped = (width: number) => Math.min(width, UNBOUNDED)

/**
 * How many characters a node can match; a look-behind needs a fixed number of them. `groupWidths` holds the groups that
 * are closed already.
 */
export function widthOf(node: RegexNode, groupWidths: ReadonlyMap<number, Width>): Width {
  const of = (part: RegexNode) => widthOf(part, groupWidths)
  switch (node.kind) {
    case 'literal':
    case 'set':
    case 'any':
      return ONE
    case 'at':
    case 'look':
      return NOTHING
    case 'sequence':
      return node.nodes.map(of).reduce((a, b) => ({ min: capped(a.min + b.min), max: capped(a.max + b.max) }), NOTHING)
    case 'branch':
      return either(node.options.map(of))
    case 'conditional':
      return either([of(node.yes), of(node.no)])
    case 'repeat': {
      const body = of(node.body)
      return { min: capped(body.min * node.min), max: capped(body.max * node.max) }
    }
    case 'group':
    case 'atomic':
      return of(node.body)
    case 'reference':
      return groupWidths.get(node.group) ?? NOTHING
  }
}

function either(widths: readonly Width[]): Width {
  return { min: Math.min(...widths.map(({ min }) => min)), max: Math.max(...widths.map(({ max }) => max)) }
}
