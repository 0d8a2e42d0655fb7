/**
 * A regular expression as a program for the matcher: a flat list of numbers, each instruction followed by its operands.
 * Repeats become loops with counters, so a program is never much longer than its pattern.
 */
import {
  type CharacterTest,
  equivalentsOf,
  fold,
  type ParsedRegex,
  positionNumber,
  type RegexNode,
  setTest,
} from './pattern-syntax.ts'

export const OP = {
  /** code */
  character: 0,
  /** test */
  test: 1,
  anything: 2,
  notNewline: 3,
  /** position */
  at: 4,
  /** Tries what follows, then `target`. */
  split: 5,
  /** target */
  jump: 6,
  /** register */
  save: 7,
  /** The next instruction, which takes one character: min, max, isLazy */
  repeatOne: 8,
  /** register of the counter; the next one holds where the last round began */
  loopStart: 9,
  /** register, min, max, body */
  loopGreedy: 10,
  /** register, min, max, body */
  loopLazy: 11,
  /** The same operands: another round, after what follows the loop has failed. */
  loopMore: 12,
  /** end, characters to step back, isNegated */
  look: 13,
  /** end */
  atomic: 14,
  /** group, isFolded (1 Unicode, 2 ASCII) */
  reference: 15,
  /** group, target when the group took no part */
  unlessGroup: 16,
  match: 17,
} as const

export const FOLDINGS = ['none', 'unicode', 'ascii'] as const

export interface Program {
  readonly code: readonly number[]
  readonly tests: readonly CharacterTest[]
  readonly groupCount: number
  readonly groupNames: ReadonlyMap<string, number>
  /** Two per group (start, end), then two per loop. */
  readonly registerCount: number
  /** Every match begins with such a character; null when that is not known. */
  readonly first: CharacterTest | null
}

export function compileRegex({ root, groupCount, groupNames }: ParsedRegex): Program {
  const compiler = new Compiler(2 * (groupCount + 1))
  compiler.emit(root)
  compiler.code.push(OP.match)
  const { code, tests, registerCount } = compiler
  return { code, tests, groupCount, groupNames, registerCount, first: firstTest(code, tests) }
}

function firstTest(code: readonly number[], tests: readonly CharacterTest[]): CharacterTest | null {
  let pc = 0
  while (code[pc] === OP.save) pc += 2
  if (code[pc] === OP.repeatOne && code[pc + 1] > 0) pc += 4
  if (code[pc] === OP.test) return tests[code[pc + 1]]
  const wanted = code[pc + 1]
  return code[pc] === OP.character ? (character) => character === wanted : null
}

class Compiler {
  readonly code: number[] = []
  readonly tests: CharacterTest[] = []
  registerCount: number

  constructor(registerCount: number) {
    this.registerCount = registerCount
  }

  emit(node: RegexNode): void {
    switch (node.kind) {
      case 'literal':
      case 'set':
      case 'any':
        this.#emitOne(node)
        break
      case 'at':
        this.code.push(OP.at, positionNumber(node.position))
        break
      case 'sequence':
        for (const part of node.nodes) this.emit(part)
        break
      case 'branch':
        this.#emitBranch(node.options)
        break
      case 'group':
        this.code.push(OP.save, 2 * node.index)
        this.emit(node.body)
        this.code.push(OP.save, 2 * node.index + 1)
        break
      case 'repeat':
        this.#emitRepeat(node)
        break
      case 'look':
        this.#emitInner([OP.look, 0, node.behind ?? 0, Number(node.isNegated)], node.body)
        break
      case 'atomic':
        this.#emitInner([OP.atomic, 0], node.body)
        break
      case 'reference':
        this.code.push(OP.reference, node.group, FOLDINGS.indexOf(node.folding))
        break
      case 'conditional':
        this.#emitConditional(node)
    }
  }

  #emitOne(node: Extract<RegexNode, { kind: 'literal' | 'set' | 'any' }>): void {
    if (node.kind === 'any') this.code.push(node.withNewline ? OP.anything : OP.notNewline)
    else if (node.kind === 'set') this.#emitTest(setTest(node.items, node.isNegated, node.folding))
    else if (node.folding === 'none') this.code.push(OP.character, node.code)
    else {
      const lower = fold(node.code, node.folding)
      const equals = node.folding === 'unicode' ? equivalentsOf(lower) : [lower]
      const items = equals.map((code) => ({ kind: 'range', low: code, high: code }) as const)
      this.#emitTest(setTest(items, false, node.folding))
    }
  }

  #emitTest(test: CharacterTest): void {
    this.code.push(OP.test, this.tests.length)
    this.tests.push(test)
  }

  /** Reserves an operand that is filled in once its target is known. */
  #later(): (target?: number) => void {
    const index = this.code.push(0) - 1
    return (target = this.code.length) => {
      this.code[index] = target
    }
  }

  #emitBranch(options: readonly RegexNode[]): void {
    const ends: (() => void)[] = []
    for (const [index, option] of options.entries()) {
      const isLast = index === options.length - 1
      let setNext: (() => void) | null = null
      if (!isLast) {
        this.code.push(OP.split)
        setNext = this.#later()
      }
      this.emit(option)
      if (!isLast) {
        this.code.push(OP.jump)
        ends.push(this.#later())
      }
      setNext?.()
    }
    for (const setEnd of ends) setEnd()
  }

  #emitRepeat(node: Extract<RegexNode, { kind: 'repeat' }>): void {
    const { min, max, mode, body } = node
    if (mode === 'possessive') this.#emitInner([OP.atomic, 0], { ...node, mode: 'greedy' })
    else if (body.kind === 'literal' || body.kind === 'set' || body.kind === 'any') {
      this.code.push(OP.repeatOne, min, max, Number(mode === 'lazy'))
      this.#emitOne(body)
    } else this.#emitLoop(node)
  }

  #emitLoop({ min, max, mode, body }: Extract<RegexNode, { kind: 'repeat' }>): void {
    const register = this.registerCount
    this.registerCount += 2
    this.code.push(OP.loopStart, register, OP.jump)
    const setLoop = this.#later()
    const bodyStart = this.code.length
    this.emit(body)
    setLoop()
    const operands = [register, min, max, bodyStart]
    this.code.push(mode === 'lazy' ? OP.loopLazy : OP.loopGreedy, ...operands)
    if (mode === 'lazy') this.#emitLoopMore(operands)
  }

  /** Reached by backtracking only: the way on leads past it. */
  #emitLoopMore(operands: readonly number[]): void {
    this.code.push(OP.jump)
    const setEnd = this.#later()
    this.code.push(OP.loopMore, ...operands)
    setEnd()
  }

  /** A part that is matched for itself, up to its own end; `head[1]` becomes the address behind it. */
  #emitInner(head: readonly number[], body: RegexNode): void {
    const start = this.code.length
    this.code.push(...head)
    this.emit(body)
    this.code.push(OP.match)
    this.code[start + 1] = this.code.length
  }

  #emitConditional({ group, yes, no }: Extract<RegexNode, { kind: 'conditional' }>): void {
    this.code.push(OP.unlessGroup, group)
    const setElse = this.#later()
    this.emit(yes)
    this.code.push(OP.jump)
    const setEnd = this.#later()
    setElse()
    this.emit(no)
    setEnd()
  }
}
