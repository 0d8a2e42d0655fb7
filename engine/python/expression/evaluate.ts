/**
 * Evaluates an expression as ComfyUI's evaluator does: names, operators and a fixed set of functions, nothing that could
 * reach outside. Work and memory are bounded by the operators, depth is bounded here.
 */
import { NodeError } from '../../node/node-error.ts'
import { isPyList, type PyValue, pyTruth, pyTypeName } from '../python-value.ts'
import { callFunction, hasFunction } from './functions.ts'
import { BINARY, COMPARE, notAvailable, typeError, UNARY } from './operators.ts'
import { type Expression, parseExpression } from './parse-expression.ts'

// CPython's recursion limit leaves room for about as many nested operations.
const MAX_DEPTH = 480

type Names = ReadonlyMap<string, PyValue>

/**
 * Throws NodeError when the source is no expression, or cannot be evaluated. `checkpoint` is called between operations; it throws
 * to stop.
 */
export function evaluateExpression(source: string, names: Names, checkpoint: () => void): PyValue {
  const expression = parseExpression(source)
  if (expression === null) {
    throw new NodeError('simpleeval.InvalidExpression', 'Sorry, cannot evaluate empty string')
  }
  return new Evaluator(source, names, checkpoint).evaluate(expression)
}

class Evaluator {
  readonly #source: string
  readonly #names: Names
  readonly #checkpoint: () => void
  #depth = 0

  constructor(source: string, names: Names, checkpoint: () => void) {
    this.#source = source
    this.#names = names
    this.#checkpoint = checkpoint
  }

  evaluate(expression: Expression): PyValue {
    this.#depth += 1
    if (this.#depth > MAX_DEPTH) throw new NodeError('RecursionError', 'maximum recursion depth exceeded')
    this.#checkpoint()
    const value = this.#valueOf(expression)
    this.#depth -= 1
    return value
  }

  #valueOf(expression: Expression): PyValue {
    switch (expression.kind) {
      case 'constant':
        return expression.value
      case 'name':
        return this.#name(expression.name)
      case 'unary':
        return UNARY[expression.operator](this.evaluate(expression.operand))
      case 'binary':
        return BINARY[expression.operator](this.evaluate(expression.left), this.evaluate(expression.right))
      case 'logical':
        return this.#logical(expression)
      case 'comparison':
        return this.#comparison(expression)
      case 'choice':
        return this.evaluate(pyTruth(this.evaluate(expression.test)) ? expression.yes : expression.no)
      case 'call':
        return this.#call(expression)
      case 'item':
        return itemAt(this.evaluate(expression.container), this.evaluate(expression.index))
      case 'slice':
        return this.#slice(expression)
      case 'attribute':
        throw this.#noAttribute(expression.name)
      case 'unavailable':
        throw notAvailable(expression.what)
    }
  }

  #name(name: string): PyValue {
    const value = this.#names.get(name)
    if (value !== undefined) return value
    if (hasFunction(name)) throw new NodeError('ValueError', `'${name}' is a function: call it with brackets`)
    const message = `'${name}' is not defined for expression '${this.#source}'`
    throw new NodeError('simpleeval.NameNotDefined', message)
  }

  /** `and` and `or` give the operand that decided. */
  #logical({ operator, operands }: Extract<Expression, { kind: 'logical' }>): PyValue {
    let value: PyValue = false
    for (const operand of operands) {
      value = this.evaluate(operand)
      if (pyTruth(value) === (operator === 'or')) break
    }
    return value
  }

  #comparison({ first, rest }: Extract<Expression, { kind: 'comparison' }>): boolean {
    let left = this.evaluate(first)
    for (const { operator, operand } of rest) {
      const right = this.evaluate(operand)
      if (!COMPARE[operator](left, right)) return false
      left = right
    }
    return true
  }

  #call({ callee, positional, named }: Extract<Expression, { kind: 'call' }>): PyValue {
    if (callee.kind === 'attribute') throw this.#noAttribute(callee.name)
    if (callee.kind !== 'name') {
      throw new NodeError('simpleeval.FeatureNotAvailable', 'Lambda Functions not implemented')
    }
    if (!hasFunction(callee.name)) {
      const message = `Function '${callee.name}' not defined, for expression '${this.#source}'.`
      throw new NodeError('simpleeval.FunctionNotDefined', message)
    }
    const values = positional.map((argument) => this.evaluate(argument))
    const keywords = named.map(({ name, value }) => [name, this.evaluate(value)] as const)
    return callFunction(callee.name, values, new Map(keywords))
  }

  #noAttribute(name: string): NodeError {
    const message = `Attribute '${name}' does not exist in expression '${this.#source}'`
    return new NodeError('simpleeval.AttributeDoesNotExist', message)
  }

  #slice({ container, start, stop, step }: Extract<Expression, { kind: 'slice' }>): PyValue {
    const row = this.evaluate(container)
    const bound = (part: Expression | null) => (part === null ? null : sliceBound(this.evaluate(part)))
    const [from, to, by] = [bound(start), bound(stop), bound(step) ?? 1]
    if (by === 0) throw new NodeError('ValueError', 'slice step cannot be zero')
    if (typeof row === 'string') return pick(Array.from(row), { from, to, by }).join('')
    if (isPyList(row)) return pick(row, { from, to, by })
    throw typeError(`'${pyTypeName(row)}' object is not subscriptable`)
  }
}

function sliceBound(value: PyValue): number | null {
  if (value === null) return null
  if (typeof value === 'bigint' || typeof value === 'boolean') return Number(value)
  throw typeError('slice indices must be integers or None or have an __index__ method')
}

/** The members that a slice selects, forwards or backwards. */
function pick<T>(row: readonly T[], slice: { from: number | null; to: number | null; by: number }): T[] {
  const { by } = slice
  const size = row.length
  const [low, high] = by > 0 ? [0, size] : [-1, size - 1]
  const indexOf = (bound: number | null, missing: number) =>
    bound === null ? missing : Math.min(high, Math.max(low, bound < 0 ? bound + size : bound))
  const start = indexOf(slice.from, by > 0 ? low : high)
  const stop = indexOf(slice.to, by > 0 ? high : low)
  const picked: T[] = []
  for (let at = start; by > 0 ? at < stop : at > stop; at += by) picked.push(row[at])
  return picked
}

function itemAt(container: PyValue, index: PyValue): PyValue {
  const row = typeof container === 'string' ? Array.from(container) : container
  if (!isPyList(row)) throw typeError(`'${pyTypeName(container)}' object is not subscriptable`)
  const kind = typeof container === 'string' ? 'string' : 'list'
  if (typeof index !== 'bigint' && typeof index !== 'boolean') {
    const shown = kind === 'list' ? ` or slices, not ${pyTypeName(index)}` : `, not '${pyTypeName(index)}'`
    throw typeError(`${kind} indices must be integers${shown}`)
  }
  const item = row.at(Number(index))
  if (item === undefined) throw new NodeError('IndexError', `${kind} index out of range`)
  return item
}
