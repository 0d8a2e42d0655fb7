/**
 * Python's expressions, by its precedence. Lists, tuples, dictionaries and lambdas are recognised in order to be refused.
 * Several statements may stand in one source; only the first counts, and an assignment counts as the value assigned.
 */
import type { PyValue } from '../python-value.ts'
import { readTokens, syntaxError, type Token } from './tokens.ts'

// An expression as a tree.

export type BinaryOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**' | '<<' | '>>' | '&' | '|' | '^' | '@'
export type UnaryOperator = '+' | '-' | '~' | 'not'
export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in' | 'is' | 'is not'

export type Expression =
  | { readonly kind: 'constant'; readonly value: PyValue }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'unary'; readonly operator: UnaryOperator; readonly operand: Expression }
  | {
      readonly kind: 'binary'
      readonly operator: BinaryOperator
      readonly left: Expression
      readonly right: Expression
    }
  | { readonly kind: 'logical'; readonly operator: 'and' | 'or'; readonly operands: readonly Expression[] }
  | {
      readonly kind: 'comparison'
      readonly first: Expression
      readonly rest: readonly { readonly operator: Comparison; readonly operand: Expression }[]
    }
  | { readonly kind: 'choice'; readonly test: Expression; readonly yes: Expression; readonly no: Expression }
  | {
      readonly kind: 'call'
      readonly callee: Expression
      readonly positional: readonly Expression[]
      readonly named: readonly { readonly name: string; readonly value: Expression }[]
    }
  | { readonly kind: 'item'; readonly container: Expression; readonly index: Expression }
  | {
      readonly kind: 'slice'
      readonly container: Expression
      readonly start: Expression | null
      readonly stop: Expression | null
      readonly step: Expression | null
    }
  | { readonly kind: 'attribute'; readonly owner: Expression; readonly name: string }
  /** Python, but not for expressions: a list, a lambda, an f-string … */
  | { readonly kind: 'unavailable'; readonly what: string }

const MAX_DEPTH = 200
const KEYWORDS: ReadonlySet<string> = new Set(
  'and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
)
const CONSTANTS: ReadonlyMap<string, boolean | null> = new Map([
  ['True', true],
  ['False', false],
  ['None', null],
])
/** From the weakest to the strongest; all of them group to the left. */
const LEVELS: readonly (readonly BinaryOperator[])[] = [
  ['|'],
  ['^'],
  ['&'],
  ['<<', '>>'],
  ['+', '-'],
  ['*', '/', '//', '%', '@'],
]
const COMPARISONS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>='])
const ASSIGNMENTS: ReadonlySet<string> = new Set('= += -= *= /= //= %= **= <<= >>= &= |= ^= @='.split(' '))

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0
  #depth = 0

  constructor(source: string) {
    this.#tokens = readTokens(source)
  }

  /** The first statement; the others are only checked. */
  parse(): Expression | null {
    let first: Expression | null = null
    while (this.#at < this.#tokens.length) {
      if (this.#isAtEnd()) {
        this.#at += 1
        continue
      }
      const statement = this.#statement()
      first ??= statement
      if (!this.#isAtEnd()) throw this.#error()
    }
    return first
  }

  get #token(): Token {
    return this.#tokens[this.#at] ?? this.#tokens[this.#tokens.length - 1]
  }

  #isAtEnd(): boolean {
    return this.#token.kind === 'end'
  }

  #error(): Error {
    return syntaxError(this.#token.line)
  }

  #is(text: string): boolean {
    const { kind } = this.#token
    return (kind === 'operator' || kind === 'name') && this.#token.text === text
  }

  #take(text: string): boolean {
    if (!this.#is(text)) return false
    this.#at += 1
    return true
  }

  #expect(text: string): void {
    if (!this.#take(text)) throw this.#error()
  }

  #statement(): Expression {
    let expression = this.#tuple()
    while (this.#token.kind === 'operator' && ASSIGNMENTS.has(this.#token.text)) {
      if (expression.kind !== 'name') throw syntaxError(this.#token.line, 'cannot assign to expression')
      this.#at += 1
      expression = this.#tuple()
    }
    return expression
  }

  #tuple(): Expression {
    const first = this.#expression()
    if (!this.#is(',')) return first
    while (this.#take(',')) {
      if (this.#token.kind === 'end' || this.#is(')')) break
      this.#expression()
    }
    return { kind: 'unavailable', what: 'Tuple' }
  }

  #expression(): Expression {
    this.#depth += 1
    if (this.#depth > MAX_DEPTH) throw syntaxError(this.#token.line, 'too many nested parentheses')
    try {
      if (this.#is('lambda')) return this.#lambda()
      const yes = this.#or()
      if (!this.#take('if')) return yes
      const test = this.#or()
      if (!this.#take('else')) throw syntaxError(this.#token.line, "expected 'else' after 'if' expression")
      return { kind: 'choice', test, yes, no: this.#expression() }
    } finally {
      this.#depth -= 1
    }
  }

  #lambda(): Expression {
    this.#at += 1
    while (!this.#is(':')) {
      if (this.#token.kind === 'end') throw this.#error()
      this.#at += 1
    }
    this.#at += 1
    this.#expression()
    return { kind: 'unavailable', what: 'Lambda' }
  }

  #or(): Expression {
    return this.#logical('or', () => this.#logical('and', () => this.#not()))
  }

  #logical(operator: 'and' | 'or', next: () => Expression): Expression {
    const operands = [next()]
    while (this.#take(operator)) operands.push(next())
    return operands.length === 1 ? operands[0] : { kind: 'logical', operator, operands }
  }

  #not(): Expression {
    if (!this.#take('not')) return this.#comparison()
    return this.#nested(() => ({ kind: 'unary', operator: 'not', operand: this.#not() }))
  }

  /** Signs can be stacked without brackets: they too must not exhaust the stack. */
  #nested(parse: () => Expression): Expression {
    this.#depth += 1
    if (this.#depth > MAX_DEPTH) throw syntaxError(this.#token.line, 'too many nested parentheses')
    const expression = parse()
    this.#depth -= 1
    return expression
  }

  #comparison(): Expression {
    const first = this.#binary(0)
    const rest: { operator: Comparison; operand: Expression }[] = []
    for (let operator = this.#comparator(); operator !== null; operator = this.#comparator()) {
      rest.push({ operator, operand: this.#binary(0) })
    }
    return rest.length === 0 ? first : { kind: 'comparison', first, rest }
  }

  #comparator(): Comparison | null {
    const { kind, text } = this.#token
    if (kind === 'operator' && COMPARISONS.has(text)) {
      this.#at += 1
      return text as Comparison
    }
    if (this.#take('in')) return 'in'
    if (this.#take('is')) return this.#take('not') ? 'is not' : 'is'
    if (!this.#take('not')) return null
    this.#expect('in')
    return 'not in'
  }

  #binary(level: number): Expression {
    if (level === LEVELS.length) return this.#unary()
    let left = this.#binary(level + 1)
    for (;;) {
      const operator = LEVELS[level].find((candidate) => this.#is(candidate))
      if (operator === undefined) return left
      this.#at += 1
      left = { kind: 'binary', operator, left, right: this.#binary(level + 1) }
    }
  }

  #unary(): Expression {
    for (const operator of ['-', '+', '~'] satisfies UnaryOperator[]) {
      if (this.#take(operator)) return this.#nested(() => ({ kind: 'unary', operator, operand: this.#unary() }))
    }
    const base = this.#postfix()
    if (!this.#take('**')) return base
    // Groups to the right, and binds stronger than a sign before it but weaker than one behind it.
    return this.#nested(() => ({ kind: 'binary', operator: '**', left: base, right: this.#unary() }))
  }

  #postfix(): Expression {
    let expression = this.#atom()
    for (;;) {
      if (this.#take('(')) expression = this.#call(expression)
      else if (this.#take('[')) expression = this.#subscript(expression)
      else if (this.#take('.')) expression = { kind: 'attribute', owner: expression, name: this.#name() }
      else return expression
    }
  }

  #name(): string {
    const { kind, text } = this.#token
    if (kind !== 'name' || KEYWORDS.has(text)) throw this.#error()
    this.#at += 1
    return text
  }

  #call(callee: Expression): Expression {
    const positional: Expression[] = []
    const named: { name: string; value: Expression }[] = []
    while (!this.#take(')')) {
      const next = this.#tokens[this.#at + 1]
      if (this.#token.kind === 'name' && next?.kind === 'operator' && next.text === '=') {
        const name = this.#name()
        this.#at += 1
        named.push({ name, value: this.#expression() })
      } else if (named.length === 0) positional.push(this.#expression())
      else throw syntaxError(this.#token.line, 'positional argument follows keyword argument')
      if (!this.#is(')')) this.#expect(',')
    }
    return { kind: 'call', callee, positional, named }
  }

  #subscript(container: Expression): Expression {
    const part = () => (this.#is(':') || this.#is(']') ? null : this.#expression())
    const start = part()
    if (this.#take(']')) {
      if (start === null) throw this.#error()
      return { kind: 'item', container, index: start }
    }
    this.#expect(':')
    const stop = part()
    const step = this.#take(':') ? part() : null
    this.#expect(']')
    return { kind: 'slice', container, start, stop, step }
  }

  #atom(): Expression {
    const token = this.#token
    if (token.kind === 'number' || token.kind === 'string') return this.#literal(token.value)
    if (token.kind === 'name') {
      const name = this.#name()
      const constant = CONSTANTS.get(name)
      return constant === undefined ? { kind: 'name', name } : { kind: 'constant', value: constant }
    }
    if (this.#take('(')) {
      if (this.#take(')')) return { kind: 'unavailable', what: 'Tuple' }
      const inner = this.#tuple()
      this.#expect(')')
      return inner
    }
    if (this.#take('[')) return this.#display(']', 'List')
    if (this.#take('{')) return this.#display('}', 'Dict')
    throw this.#error()
  }

  #literal(value: bigint | number | string): Expression {
    this.#at += 1
    if (typeof value !== 'string') return { kind: 'constant', value }
    // Texts side by side are one text.
    let text = value
    for (let next = this.#token; next.kind === 'string'; next = this.#token) {
      text += next.value
      this.#at += 1
    }
    return { kind: 'constant', value: text }
  }

  /** `[…]` and `{…}`: read for their syntax only. */
  #display(closing: string, what: string): Expression {
    while (!this.#take(closing)) {
      this.#expression()
      if (this.#take(':')) this.#expression()
      if (!this.#is(closing)) this.#expect(',')
    }
    return { kind: 'unavailable', what }
  }
}

/** null when there is nothing but comments. Throws NodeError for what Python would not accept. */
export function parseExpression(source: string): Expression | null {
  return new Parser(source).parse()
}
