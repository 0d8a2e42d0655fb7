/**
 * Python's syntax of regular expressions, with its errors and their positions. Nothing is matched here. Not supported: names
 * of characters (`\N{…}`).
 */
import { pythonReprText } from '../../../lib/python/text.ts'
import { NodeError } from '../../node/node-error.ts'
import {
  applyFlags,
  categoryEscape,
  characterEscape,
  DIGITS,
  hexEscape,
  isFlagLetter,
  OCTAL_DIGITS,
  octalCode,
  PatternSource,
  parseSet,
  plainEscape,
  readInlineFlags,
} from './pattern-source.ts'
import {
  type Folding,
  type ParsedRegex,
  type Position,
  RegexError,
  type RegexFlags,
  type RegexNode,
  type RepeatMode,
  UNBOUNDED,
  type Width,
  widthOf,
} from './pattern-syntax.ts'

// CPython's parser recurses too and stops at about this depth.
const MAX_NESTING = 400
const REPEATS = '*+?{'
const IDENTIFIER = /^[\p{XID_Start}_]\p{XID_Continue}*$/u

const EMPTY: RegexNode = { kind: 'sequence', nodes: [] }

export function isIdentifier(name: string): boolean {
  return IDENTIFIER.test(name)
}

export function parseRegex(pattern: string, flags: RegexFlags): ParsedRegex {
  return new Parser(pattern, flags).parse()
}

/** Where a group begins: its position in the pattern and how deep it is nested. */
interface Opening {
  readonly start: number
  readonly depth: number
}

interface SequenceOpening extends Opening {
  readonly nodes: RegexNode[]
  /** Nothing but flags has been read so far. */
  readonly isFirst: boolean
}

class Parser {
  readonly #source: PatternSource
  readonly #names = new Map<string, number>()
  readonly #openGroups = new Set<number>()
  readonly #widths = new Map<number, Width>()
  #flags: RegexFlags
  #groupCount = 0
  /** Groups from this number on were opened inside the look-behind being read. */
  #behindFrom: number | null = null
  /** Some look behind has no fixed width. Reported last and without a position: CPython finds it only when it compiles. */
  #hasOpenWidth = false
  /** Numbers that conditions name; such a group may come later. */
  readonly #conditions: { readonly group: number; readonly position: number }[] = []

  constructor(pattern: string, flags: RegexFlags) {
    this.#source = new PatternSource(pattern)
    this.#flags = flags
  }

  parse(): ParsedRegex {
    const root = this.#parseOptions(0)
    if (this.#source.next !== null) throw this.#source.error('unbalanced parenthesis')
    for (const { group, position } of this.#conditions) {
      if (group > this.#groupCount) throw this.#source.errorAt(`invalid group reference ${group}`, position)
    }
    if (this.#hasOpenWidth) throw new RegexError('look-behind requires fixed-width pattern')
    return { root, groupCount: this.#groupCount, groupNames: this.#names }
  }

  #parseOptions(depth: number): RegexNode {
    if (depth > MAX_NESTING) throw new NodeError('RecursionError', 'maximum recursion depth exceeded')
    const options: RegexNode[] = []
    do options.push(this.#parseSequence(depth, depth === 0 && options.length === 0))
    while (this.#source.match('|'))
    return options.length === 1 ? options[0] : { kind: 'branch', options }
  }

  #parseSequence(depth: number, isFirst: boolean): RegexNode {
    const source = this.#source
    const nodes: RegexNode[] = []
    while (source.next !== null && source.next !== '|' && source.next !== ')') {
      const start = source.tell()
      const token = source.get() as string
      if (this.#flags.verbose && this.#skipVerbose(token)) continue
      if (REPEATS.includes(token) && token.length === 1) this.#parseRepeat(token, { nodes, start })
      else if (token === '(') this.#parseGroup({ nodes, start, depth, isFirst })
      else nodes.push(this.#parseAtom(token, start))
    }
    return { kind: 'sequence', nodes }
  }

  /** Whether the token is white space or begins a comment, which is then skipped. */
  #skipVerbose(token: string): boolean {
    if (/^[ \t\n\r\v\f]$/.test(token)) return true
    if (token !== '#') return false
    for (let skipped = this.#source.get(); skipped !== null && skipped !== '\n'; ) skipped = this.#source.get()
    return true
  }

  get #folding(): Folding {
    if (!this.#flags.ignoreCase) return 'none'
    return this.#flags.ascii ? 'ascii' : 'unicode'
  }

  #parseAtom(token: string, start: number): RegexNode {
    if (token.startsWith('\\') && token.length > 1) return this.#parseEscape(token)
    if (token === '[') return { kind: 'set', ...parseSet(this.#source, this.#flags, start), folding: this.#folding }
    if (token === '.') return { kind: 'any', withNewline: this.#flags.dotAll }
    if (token === '^') return { kind: 'at', position: this.#flags.multiline ? 'line start' : 'text start' }
    if (token === '$') return { kind: 'at', position: this.#flags.multiline ? 'line end' : 'last line end' }
    return { kind: 'literal', code: token.codePointAt(0) ?? 0, folding: this.#folding }
  }

  #parseEscape(token: string): RegexNode {
    const source = this.#source
    const letter = token.slice(1)
    const position = this.#positionOf(letter)
    if (position !== null) return { kind: 'at', position }
    const category = categoryEscape(letter, this.#flags)
    if (category !== null) return { kind: 'set', items: [category], isNegated: false, folding: 'none' }
    if (letter !== '0' && DIGITS.includes(letter)) return this.#parseNumber(letter)
    const code =
      letter === '0'
        ? Number.parseInt(letter + source.getWhile(2, OCTAL_DIGITS), 8)
        : (characterEscape(letter) ?? hexEscape(source, letter) ?? plainEscape(source, letter))
    return { kind: 'literal', code, folding: this.#folding }
  }

  #positionOf(letter: string): Position | null {
    const { ascii } = this.#flags
    if (letter === 'A') return 'text start'
    if (letter === 'Z') return 'text end'
    if (letter === 'b') return ascii ? 'ascii boundary' : 'boundary'
    if (letter === 'B') return ascii ? 'ascii inside' : 'inside'
    return null
  }

  /** A backslash and a digit: a group, or a character by its octal code when there are three octal digits. */
  #parseNumber(first: string): RegexNode {
    const source = this.#source
    const second = source.getWhile(1, DIGITS)
    const digits = first + second
    if (second !== '' && OCTAL_DIGITS.includes(first) && OCTAL_DIGITS.includes(second)) {
      const third = source.getWhile(1, OCTAL_DIGITS)
      if (third !== '') return { kind: 'literal', code: octalCode(source, digits + third), folding: this.#folding }
    }
    const group = Number(digits)
    if (group > this.#groupCount) throw source.error(`invalid group reference ${group}`, digits.length)
    return this.#referTo(group, digits.length + 1)
  }

  #referTo(group: number, back: number): RegexNode {
    if (this.#openGroups.has(group)) throw this.#source.error('cannot refer to an open group', back)
    this.#checkBehind(group)
    return { kind: 'reference', group, folding: this.#folding }
  }

  #checkBehind(group: number): void {
    if (this.#behindFrom === null) return
    const isClosed = group <= this.#groupCount && !this.#openGroups.has(group)
    if (!isClosed) throw this.#source.error('cannot refer to an open group')
    if (group >= this.#behindFrom) {
      throw this.#source.error('cannot refer to group defined in the same lookbehind subpattern')
    }
  }

  #parseRepeat(token: string, { nodes, start }: { nodes: RegexNode[]; start: number }): void {
    const source = this.#source
    const bounds = this.#parseBounds(token)
    if (bounds === null) {
      nodes.push({ kind: 'literal', code: 0x7b, folding: this.#folding })
      return
    }
    const item = nodes.at(-1)
    const back = source.tell() - start
    if (item === undefined || item.kind === 'at') throw source.error('nothing to repeat', back)
    if (item.kind === 'repeat') throw source.error('multiple repeat', back)
    const mode: RepeatMode = source.match('?') ? 'lazy' : source.match('+') ? 'possessive' : 'greedy'
    nodes[nodes.length - 1] = { kind: 'repeat', ...bounds, mode, body: item }
  }

  /** null: a brace that begins no repetition stands for itself. */
  #parseBounds(token: string): { min: number; max: number } | null {
    if (token === '*') return { min: 0, max: UNBOUNDED }
    if (token === '+') return { min: 1, max: UNBOUNDED }
    if (token === '?') return { min: 0, max: 1 }
    const source = this.#source
    if (source.next === '}') return null
    const start = source.tell()
    const low = source.getWhile(Number.POSITIVE_INFINITY, DIGITS)
    const high = source.match(',') ? source.getWhile(Number.POSITIVE_INFINITY, DIGITS) : low
    if (!source.match('}')) {
      source.seek(start)
      return null
    }
    const min = low === '' ? 0 : this.#repeatCount(low)
    const max = high === '' ? UNBOUNDED : this.#repeatCount(high)
    if (max < min) throw source.error('min repeat greater than max repeat', source.tell() - start)
    return { min, max }
  }

  #repeatCount(digits: string): number {
    const count = Number(digits)
    if (count >= UNBOUNDED) throw new NodeError('OverflowError', 'the repetition number is too large')
    return count
  }

  #parseGroup(at: SequenceOpening): void {
    const source = this.#source
    if (!source.match('?')) {
      at.nodes.push(this.#parseCapture(null, at))
      return
    }
    const token = source.get()
    if (token === null) throw source.error('unexpected end of pattern')
    const node = this.#parseExtension(token, at)
    if (node !== null) at.nodes.push(node)
  }

  /** null: a comment, or flags for the whole pattern; neither matches anything. */
  #parseExtension(token: string, at: SequenceOpening): RegexNode | null {
    if (token === '#') return this.#skipComment(at.start)
    if (token === 'P') return this.#parseNamed(at)
    if (token === ':') return this.#parseBody(at)
    if (token === '>') return { kind: 'atomic', body: this.#parseBody(at) }
    if (token === '(') return this.#parseConditional(at)
    if (token === '=' || token === '!' || token === '<') return this.#parseLook(token, at)
    if (token === '-' || isFlagLetter(token)) return this.#parseFlags(token, at)
    throw this.#source.error(`unknown extension ?${token}`, Array.from(token).length + 1)
  }

  #skipComment(start: number): null {
    const source = this.#source
    while (!source.match(')')) {
      if (source.get() === null) throw source.error('missing ), unterminated comment', source.tell() - start)
    }
    return null
  }

  /** What stands in a group, up to and with its closing parenthesis. */
  #parseBody({ start, depth }: Opening): RegexNode {
    const body = this.#parseOptions(depth + 1)
    this.#closeGroup(start)
    // Wrapped, so that a repeat of a group that holds a repeat is no repeat of a repeat.
    return { kind: 'sequence', nodes: [body] }
  }

  #closeGroup(start: number): void {
    const source = this.#source
    if (!source.match(')')) throw source.error('missing ), unterminated subpattern', source.tell() - start)
  }

  #parseCapture(name: string | null, at: Opening): RegexNode {
    this.#groupCount += 1
    const index = this.#groupCount
    if (name !== null) this.#nameGroup(name, index)
    this.#openGroups.add(index)
    const body = this.#parseBody(at)
    this.#openGroups.delete(index)
    this.#widths.set(index, widthOf(body, this.#widths))
    return { kind: 'group', index, body }
  }

  #nameGroup(name: string, index: number): void {
    const taken = this.#names.get(name)
    if (taken !== undefined) {
      const shown = `redefinition of group name ${pythonReprText(name)} as group ${index}; was group ${taken}`
      throw this.#source.error(shown, Array.from(name).length + 1)
    }
    this.#names.set(name, index)
  }

  #parseNamed(at: Opening): RegexNode {
    const source = this.#source
    if (source.match('<')) {
      const name = this.#readName('>')
      return this.#parseCapture(name, at)
    }
    if (source.match('=')) {
      const name = this.#readName(')')
      return this.#referTo(this.#groupNamed(name, 1), Array.from(name).length + 1)
    }
    const token = source.get()
    if (token === null) throw source.error('unexpected end of pattern')
    throw source.error(`unknown extension ?P${token}`, Array.from(token).length + 2)
  }

  #readName(terminator: string): string {
    const name = this.#source.getUntil(terminator, 'group name')
    if (isIdentifier(name)) return name
    throw this.#source.error(`bad character in group name ${pythonReprText(name)}`, Array.from(name).length + 1)
  }

  #groupNamed(name: string, extra: number): number {
    const group = this.#names.get(name)
    if (group !== undefined) return group
    throw this.#source.error(`unknown group name ${pythonReprText(name)}`, Array.from(name).length + extra)
  }

  #parseLook(token: string, at: Opening): RegexNode {
    const source = this.#source
    if (token !== '<') {
      return { kind: 'look', behind: null, isNegated: token === '!', body: this.#parseBody(at) }
    }
    const sign = source.get()
    if (sign === null) throw source.error('unexpected end of pattern')
    if (sign !== '=' && sign !== '!') throw source.error(`unknown extension ?<${sign}`, Array.from(sign).length + 2)
    const outer = this.#behindFrom
    this.#behindFrom ??= this.#groupCount + 1
    const body = this.#parseBody(at)
    this.#behindFrom = outer
    const { min, max } = widthOf(body, this.#widths)
    if (min !== max) this.#hasOpenWidth = true
    return { kind: 'look', behind: min, isNegated: sign === '!', body }
  }

  #parseFlags(token: string, at: SequenceOpening): RegexNode | null {
    const source = this.#source
    const inline = readInlineFlags(source, token)
    const outer = this.#flags
    this.#flags = applyFlags(outer, inline)
    if (inline.appliesTo === 'group') {
      const body = this.#parseBody(at)
      this.#flags = outer
      return body
    }
    if (at.isFirst && at.nodes.length === 0) return null
    throw source.error('global flags not at the start of the expression', source.tell() - at.start)
  }

  #parseConditional({ start, depth }: Opening): RegexNode {
    const source = this.#source
    const name = source.getUntil(')', 'group name')
    const group = isIdentifier(name) ? this.#groupNamed(name, 1) : this.#groupNumbered(name)
    this.#checkBehind(group)
    const options = this.#parseOptions(depth + 1)
    if (options.kind === 'branch' && options.options.length > 2) {
      throw source.error('conditional backref with more than two branches')
    }
    this.#closeGroup(start)
    const [yes, no] = options.kind === 'branch' ? options.options : [options, EMPTY]
    return { kind: 'conditional', group, yes, no }
  }

  #groupNumbered(name: string): number {
    const source = this.#source
    const length = Array.from(name).length
    if (!/^\d+$/.test(name)) throw source.error(`bad character in group name ${pythonReprText(name)}`, length + 1)
    const group = Number(name)
    if (group === 0) throw source.error('bad group number', length + 1)
    if (group >= UNBOUNDED) throw source.error(`invalid group reference ${name}`, length + 1)
    this.#conditions.push({ group, position: source.tell() - length - 1 })
    return group
  }
}
