/**
 * Runs a program on a text, by backtracking as CPython does, so that every capture comes out the same. Between steps it asks
 * whether to go on, so a pattern that would take forever can be cancelled, and ends with the processor time of its node.
 */
import { NodeError } from '../../node/node-error.ts'
import { FOLDINGS, OP, type Program } from './compile.ts'
import { fold, isAtPosition, UNBOUNDED } from './pattern-syntax.ts'

// What a matcher can go back to, newest last: an alternative not tried yet, the old value of a register, a run of single
// characters. One
// flat array instead of the thread's stack, so that a long text cannot overflow it.

/** [where to go on, position] */
const ALTERNATIVE = 0
/** [register, old value] */
const UNDO = 1
/** [where to go on, lowest end, present end] */
const GREEDY_RUN = 2
/** [instruction, end so far, how many more it may take] */
const LAZY_RUN = 3

const ENTRY_SIZE = 4
const INITIAL_SIZE = 1024
// 128 MiB; a pattern that keeps more alternatives than that will not come to an end.
const MAX_SIZE = 2 ** 25

class BacktrackStack {
  entries = new Int32Array(INITIAL_SIZE)
  top = 0

  push(type: number, a: number, b: number, c: number): void {
    const { top } = this
    if (top + ENTRY_SIZE > this.entries.length) this.#grow()
    const { entries } = this
    entries[top] = type
    entries[top + 1] = a
    entries[top + 2] = b
    entries[top + 3] = c
    this.top = top + ENTRY_SIZE
  }

  #grow(): void {
    if (this.entries.length >= MAX_SIZE) {
      throw new NodeError('MemoryError', 'the regular expression needs too much memory on this text; use a simpler one')
    }
    const grown = new Int32Array(this.entries.length * 2)
    grown.set(this.entries)
    this.entries = grown
  }

  /** Forgets alternatives added since `base`, but keeps what restores the registers. */
  keepUndo(base: number): void {
    let kept = base
    for (let entry = base; entry < this.top; entry += ENTRY_SIZE) {
      if (this.entries[entry] !== UNDO) continue
      this.entries.copyWithin(kept, entry, entry + ENTRY_SIZE)
      kept += ENTRY_SIZE
    }
    this.top = kept
  }
}

const NEWLINE = 10
const CHECKPOINT_STEPS = 2 ** 16

const NO_MATCH = -1
const UNSET = -1
// Steps are counted in small batches; what is left of the last one is not counted.
const STEPS_AT_ONCE = 64
const REGISTERS_PER_STEP = 8

export class Matcher {
  readonly #program: Program
  readonly #text: Int32Array
  readonly #checkpoint: () => void
  readonly registers: Int32Array
  readonly #stack = new BacktrackStack()
  #sinceCheckpoint = 0
  /** Set by `#backtrack`: where to go on. */
  #pc = 0
  #at = 0
  #mayNotEndAt = NO_MATCH

  constructor(program: Program, text: Int32Array, checkpoint: () => void) {
    this.#program = program
    this.#text = text
    this.#checkpoint = checkpoint
    this.registers = new Int32Array(program.registerCount).fill(UNSET)
  }

  /** Where a match that begins at `start` ends, or -1. With `mustAdvance` it may not be empty. */
  matchAt(start: number, mustAdvance: boolean): number {
    // An attempt costs something even where its first step fails.
    this.#count(1 + this.registers.length / REGISTERS_PER_STEP)
    this.registers.fill(UNSET)
    this.#stack.top = 0
    this.#mayNotEndAt = mustAdvance ? start : NO_MATCH
    return this.#run(0, start, true)
  }

  #count(steps: number): void {
    this.#sinceCheckpoint += steps
    if (this.#sinceCheckpoint < CHECKPOINT_STEPS) return
    this.#sinceCheckpoint = 0
    this.#checkpoint()
  }

  #set(register: number, value: number): void {
    this.#stack.push(UNDO, register, this.registers[register], 0)
    this.registers[register] = value
  }

  #run(startPc: number, start: number, isOuter: boolean): number {
    const { code, tests } = this.#program
    const text = this.#text
    const end = text.length
    const base = this.#stack.top
    let pc = startPc
    let at = start
    let steps = 0
    for (;;) {
      steps += 1
      if (steps === STEPS_AT_ONCE) {
        this.#count(steps)
        steps = 0
      }
      let isOk = true
      switch (code[pc]) {
        case OP.character:
          isOk = at < end && text[at] === code[pc + 1]
          at += 1
          pc += 2
          break
        case OP.test:
          isOk = at < end && tests[code[pc + 1]](text[at])
          at += 1
          pc += 2
          break
        case OP.anything:
        case OP.notNewline:
          isOk = at < end && (code[pc] === OP.anything || text[at] !== NEWLINE)
          at += 1
          pc += 1
          break
        case OP.split:
          this.#stack.push(ALTERNATIVE, code[pc + 1], at, 0)
          pc += 2
          break
        case OP.jump:
          pc = code[pc + 1]
          break
        case OP.save:
          this.#set(code[pc + 1], at)
          pc += 2
          break
        case OP.match:
          if (!isOuter || at !== this.#mayNotEndAt) return at
          isOk = false
          break
        default:
          isOk = this.#perform(pc, at)
          pc = this.#pc
          at = this.#at
      }
      if (isOk) continue
      if (!this.#backtrack(base)) return NO_MATCH
      pc = this.#pc
      at = this.#at
    }
  }

  /** The rarer instructions. Sets where to go on; false when they do not match. */
  #perform(pc: number, at: number): boolean {
    const { code } = this.#program
    this.#at = at
    switch (code[pc]) {
      case OP.at:
        this.#pc = pc + 2
        return isAtPosition(code[pc + 1], this.#text, at)
      case OP.repeatOne:
        return this.#repeatOne(pc, at)
      case OP.loopStart:
        this.#set(code[pc + 1], -1)
        this.#set(code[pc + 1] + 1, UNSET)
        this.#pc = pc + 2
        return true
      case OP.loopGreedy:
        return this.#loop(pc, at, false)
      case OP.loopLazy:
        return this.#loop(pc, at, true)
      case OP.loopMore:
        return this.#loopMore(pc, at)
      case OP.look:
        return this.#look(pc, at)
      case OP.atomic:
        return this.#atomic(pc, at)
      case OP.reference:
        return this.#reference(pc, at)
      default:
        this.#pc = this.#hasGroup(code[pc + 1]) ? pc + 3 : code[pc + 2]
        return true
    }
  }

  /** Undoes and unwinds to the latest alternative. */
  #backtrack(base: number): boolean {
    const stack = this.#stack
    while (stack.top > base) {
      stack.top -= ENTRY_SIZE
      const { top, entries } = stack
      const type = entries[top]
      if (type === UNDO) {
        this.registers[entries[top + 1]] = entries[top + 2]
        continue
      }
      if (type === ALTERNATIVE) {
        this.#pc = entries[top + 1]
        this.#at = entries[top + 2]
        return true
      }
      const run = [entries[top + 1], entries[top + 2], entries[top + 3]] as const
      if (type === GREEDY_RUN ? this.#shortenRun(...run) : this.#lengthenRun(...run)) return true
    }
    return false
  }

  /** A greedy run gives back one character. */
  #shortenRun(next: number, lowest: number, present: number): boolean {
    this.#pc = next
    this.#at = present - 1
    if (this.#at > lowest) this.#stack.push(GREEDY_RUN, next, lowest, this.#at)
    return true
  }

  /** A lazy run takes one more. */
  #lengthenRun(pc: number, at: number, left: number): boolean {
    if (left === 0 || this.#runLength(pc + 4, at, 1) === 0) return false
    this.#stack.push(LAZY_RUN, pc, at + 1, left - 1)
    this.#pc = this.#afterOne(pc + 4)
    this.#at = at + 1
    return true
  }

  #afterOne(pc: number): number {
    const op = this.#program.code[pc]
    return op === OP.character || op === OP.test ? pc + 2 : pc + 1
  }

  #repeatOne(pc: number, at: number): boolean {
    const { code } = this.#program
    const [min, max, isLazy] = [code[pc + 1], code[pc + 2], code[pc + 3] === 1]
    const length = this.#runLength(pc + 4, at, isLazy ? min : max)
    this.#pc = this.#afterOne(pc + 4)
    this.#at = at + length
    if (length < min) return false
    if (isLazy) {
      // No text is longer than 2^31 characters, so the bound fits the stack.
      this.#stack.push(LAZY_RUN, pc, at + length, Math.min(max - min, this.#text.length))
    } else if (length > min) this.#stack.push(GREEDY_RUN, this.#pc, at + min, at + length)
    return true
  }

  /** How many characters from `at` on the instruction takes, at most `max`. */
  #runLength(pc: number, at: number, max: number): number {
    const { code, tests } = this.#program
    const text = this.#text
    const end = Math.min(text.length, at + max)
    let stop = at
    if (code[pc] === OP.character) while (stop < end && text[stop] === code[pc + 1]) stop += 1
    else if (code[pc] === OP.anything) stop = end
    else if (code[pc] === OP.notNewline) while (stop < end && text[stop] !== NEWLINE) stop += 1
    else {
      const test = tests[code[pc + 1]]
      while (stop < end && test(text[stop])) stop += 1
    }
    this.#count(stop - at)
    return stop - at
  }

  #enterRound(pc: number, at: number, isBounded: boolean): void {
    const { code } = this.#program
    const register = code[pc + 1]
    const count = this.registers[register] + 1
    this.#set(register, count)
    if (isBounded) this.#set(register + 1, at)
    this.#pc = code[pc + 4]
  }

  /** Another round is allowed, and the last one was not empty. */
  #mayGoOn(pc: number, at: number): boolean {
    const { code } = this.#program
    const [register, max] = [code[pc + 1], code[pc + 3]]
    const hasRoom = max === UNBOUNDED || this.registers[register] + 1 < max
    return hasRoom && at !== this.registers[register + 1]
  }

  #loop(pc: number, at: number, isLazy: boolean): boolean {
    const { code } = this.#program
    if (this.registers[code[pc + 1]] + 1 < code[pc + 2]) {
      this.#enterRound(pc, at, false)
      return true
    }
    const after = pc + 5
    this.#pc = after
    if (isLazy) {
      // Behind a lazy loop stand a jump (two numbers) and the instruction for one round more.
      this.#stack.push(ALTERNATIVE, after + 2, at, 0)
    } else if (this.#mayGoOn(pc, at)) {
      this.#stack.push(ALTERNATIVE, after, at, 0)
      this.#enterRound(pc, at, true)
    }
    return true
  }

  #loopMore(pc: number, at: number): boolean {
    if (!this.#mayGoOn(pc, at)) return false
    this.#enterRound(pc, at, true)
    return true
  }

  #look(pc: number, at: number): boolean {
    const { code } = this.#program
    const isNegated = code[pc + 3] === 1
    const start = at - code[pc + 2]
    const base = this.#stack.top
    const isFound = start >= 0 && this.#run(pc + 4, start, false) !== NO_MATCH
    if (isFound && isNegated) this.#unwind(base)
    else this.#stack.keepUndo(base)
    this.#pc = code[pc + 1]
    this.#at = at
    return isFound !== isNegated
  }

  #atomic(pc: number, at: number): boolean {
    const base = this.#stack.top
    const end = this.#run(pc + 2, at, false)
    this.#stack.keepUndo(base)
    this.#pc = this.#program.code[pc + 1]
    this.#at = end
    return end !== NO_MATCH
  }

  #unwind(base: number): void {
    this.#stack.keepUndo(base)
    this.#backtrack(base)
  }

  #hasGroup(group: number): boolean {
    return this.registers[2 * group] !== UNSET && this.registers[2 * group + 1] !== UNSET
  }

  #reference(pc: number, at: number): boolean {
    const { code } = this.#program
    const group = code[pc + 1]
    const folding = FOLDINGS[code[pc + 2]]
    this.#pc = pc + 3
    if (!this.#hasGroup(group)) return false
    const text = this.#text
    const start = this.registers[2 * group]
    const length = this.registers[2 * group + 1] - start
    if (length < 0 || at + length > text.length) return false
    this.#count(length)
    for (let index = 0; index < length; index += 1) {
      if (fold(text[start + index], folding) !== fold(text[at + index], folding)) return false
    }
    this.#at = at + length
    return true
  }
}
