/** Reads as much of PromQL as our dashboards and alerts use, and refuses everything else: which series are asked for, with which labels. */

export interface Selector {
  readonly metric: string
  readonly labels: readonly string[]
  /** `[5m]` follows. */
  readonly isRange: boolean
}

export interface Query {
  readonly selectors: readonly Selector[]
  /** Each grouping, with the series under it. */
  readonly groups: readonly { readonly labels: readonly string[]; readonly metrics: readonly string[] }[]
}

const AGGREGATIONS: ReadonlySet<string> = new Set(['sum', 'max', 'min', 'avg', 'count'])
/** By name, whether it takes a range. */
const FUNCTIONS: Readonly<Record<string, boolean>> = {
  ...{ rate: true, increase: true, absent: false, histogram_quantile: false },
}
const TOKEN = /\s*(?:(\$?[A-Za-z_][\w:]*)|(\d+(?:\.\d+)?)|("(?:[^"\\]|\\.)*")|(=~|!~|!=|==|>=|<=|[-+*/<>=(){}[\],]))/y
const OPERATORS: ReadonlySet<string> = new Set(['+', '-', '*', '/', '>', '<', '==', '!=', '>=', '<='])
const MATCHERS: ReadonlySet<string> = new Set(['=', '!=', '=~', '!~'])
const NAME = /^[A-Za-z_][\w:]*$/

export function readPromql(text: string): Query {
  const tokens = tokenize(text)
  let at = 0
  const selectors: Selector[] = []
  const groups: { labels: readonly string[]; metrics: readonly string[] }[] = []

  const peek = () => tokens[at] ?? ''
  const next = () => tokens[at++] ?? ''
  function expect(wanted: string): void {
    const found = next()
    if (found !== wanted) throw new Error(`${wanted} expected, and not ${found || 'the end'}, in: ${text}`)
  }

  function readNames(): string[] {
    expect('(')
    const names: string[] = []
    while (peek() !== ')') {
      const name = next()
      if (!NAME.test(name)) throw new Error(`a label expected, and not ${name}, in: ${text}`)
      names.push(name)
      if (peek() === ',') next()
    }
    expect(')')
    return names
  }

  function readExpression(): void {
    readOperand()
    while (OPERATORS.has(peek())) {
      next()
      readOperand()
    }
  }

  function readOperand(): void {
    const token = next()
    if (/^\d/.test(token)) return
    if (token === '(') {
      readExpression()
      expect(')')
    } else if (AGGREGATIONS.has(token)) readAggregation()
    else if (Object.hasOwn(FUNCTIONS, token)) readCall(token)
    else if (NAME.test(token)) readSelector(token)
    else throw new Error(`a series expected, and not ${token || 'the end'}, in: ${text}`)
  }

  function readAggregation(): void {
    const isGrouped = peek() === 'by'
    if (isGrouped) next()
    const labels = isGrouped ? readNames() : []
    const from = selectors.length
    expect('(')
    readExpression()
    expect(')')
    groups.push({ labels, metrics: selectors.slice(from).map(({ metric }) => metric) })
  }

  function readCall(name: string): void {
    const from = selectors.length
    expect('(')
    readExpression()
    while (peek() === ',') {
      next()
      readExpression()
    }
    expect(')')
    if (FUNCTIONS[name] && !selectors.slice(from).every(({ isRange }) => isRange))
      throw new Error(`${name} takes a range, in: ${text}`)
  }

  function readSelector(metric: string): void {
    const labels: string[] = []
    if (peek() === '{') {
      next()
      while (peek() !== '}') {
        labels.push(next())
        const matcher = next()
        const value = next()
        if (!MATCHERS.has(matcher) || !value.startsWith('"')) throw new Error(`a matcher is broken in: ${text}`)
        if (matcher.includes('~')) new RegExp(JSON.parse(value))
        if (peek() === ',') next()
      }
      expect('}')
    }
    const isRange = peek() === '['
    if (isRange) {
      next()
      // A duration, or Grafana's own word for one: `5m` is two tokens.
      if (/^\d+$/.test(peek())) next()
      if (!/^(?:[smhd]|\$__rate_interval)$/.test(next())) throw new Error(`a duration is broken in: ${text}`)
      expect(']')
    }
    selectors.push({ metric, labels, isRange })
  }

  readExpression()
  if (at < tokens.length) throw new Error(`${peek()} is too much in: ${text}`)
  return { selectors, groups }
}

function tokenize(text: string): string[] {
  const tokens: string[] = []
  TOKEN.lastIndex = 0
  const trimmed = text.trimEnd()
  while (TOKEN.lastIndex < trimmed.length) {
    const from = TOKEN.lastIndex
    const match = TOKEN.exec(trimmed)
    if (match === null) throw new Error(`${trimmed.slice(from, from + 10)} is not understood in: ${text}`)
    tokens.push(match.slice(1).find((part) => part !== undefined) ?? '')
  }
  return tokens
}
