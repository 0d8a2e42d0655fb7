/** Python source of one or more simple statements, cut into tokens. Line ends count only outside of brackets. */

import { readPythonInt } from '../../../lib/python/values.ts'
import { NodeError } from '../../node/node-error.ts'
import { inPython } from '../python-value.ts'

export type Token =
  | { readonly kind: 'name'; readonly text: string; readonly line: number }
  | { readonly kind: 'operator'; readonly text: string; readonly line: number }
  | { readonly kind: 'number'; readonly value: bigint | number; readonly text: string; readonly line: number }
  | { readonly kind: 'string'; readonly value: string; readonly text: string; readonly line: number }
  /** The end of a statement. */
  | { readonly kind: 'end'; readonly text: string; readonly line: number }

// What CPython's parser allows for brackets within brackets.
const MAX_BRACKETS = 200

const SKIPPED = /(?:[ \t\f]|\\\r?\n|#[^\r\n]*)*/y
const NAME = /[\p{XID_Start}_]\p{XID_Continue}*/uy
const RADIX = /0(?:[xX](?:_?[0-9a-fA-F])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+)/y
const DECIMAL = /(?:\d(?:_?\d)*)?(?:\.(?:\d(?:_?\d)*)?)?(?:[eE][-+]?\d(?:_?\d)*)?/y
const OPERATOR =
  /\*\*=|\/\/=|>>=|<<=|\.\.\.|\*\*|\/\/|>>|<<|<=|>=|==|!=|->|:=|\+=|-=|\*=|\/=|%=|@=|&=|\|=|\^=|[-+*/%@&|^~<>()[\]{},:.=]/y
const TEXT = /(?:'((?:[^'\\\r\n]|\\[\s\S])*)'|"((?:[^"\\\r\n]|\\[\s\S])*)")/y
const ESCAPE = /\\(?:\r?\n|([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([\s\S]))/g
const PLAIN_ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
}

export function syntaxError(line: number, message = 'invalid syntax'): NodeError {
  return new NodeError('SyntaxError', `${message} (<unknown>, line ${line})`)
}

function readEscapes(body: string): string {
  return body.replace(ESCAPE, (whole, octal?: string, hex?: string, unicode?: string, plain?: string) => {
    if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8))
    const digits = hex ?? unicode
    if (digits !== undefined) return String.fromCodePoint(Number.parseInt(digits, 16))
    if (plain === undefined) return ''
    return Object.hasOwn(PLAIN_ESCAPES, plain) ? PLAIN_ESCAPES[plain] : whole
  })
}

class Tokenizer {
  readonly #source: string
  readonly #tokens: Token[] = []
  #at = 0
  #line = 1
  #brackets = 0

  constructor(source: string) {
    this.#source = source
  }

  read(): Token[] {
    for (;;) {
      this.#line += this.#take(SKIPPED)?.[0].match(/\n/g)?.length ?? 0
      if (this.#at >= this.#source.length) {
        this.#push('end', '')
        return this.#tokens
      }
      if (!this.#takeLineEnd()) this.#takeToken()
    }
  }

  #take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#source)
    if (match === null || match[0] === '') return null
    this.#at += match[0].length
    return match
  }

  #push(kind: 'name' | 'operator' | 'end', text: string): void {
    this.#tokens.push({ kind, text, line: this.#line })
  }

  #takeLineEnd(): boolean {
    const character = this.#source[this.#at]
    if (character !== '\n' && character !== '\r' && character !== ';') return false
    this.#at += 1
    if (character === ';' || this.#brackets === 0) this.#push('end', character)
    if (character === '\n') this.#line += 1
    return true
  }

  #takeToken(): void {
    const line = this.#line
    const name = this.#take(NAME)
    if (name !== null) {
      this.#push('name', name[0])
      return
    }
    const start = this.#at
    const value = this.#takeNumber()
    if (value !== null) {
      const text = this.#source.slice(start, this.#at)
      this.#tokens.push({ kind: 'number', value, text, line })
      return
    }
    const string = this.#take(TEXT)
    if (string !== null) {
      this.#tokens.push({ kind: 'string', value: readEscapes(string[1] ?? string[2] ?? ''), text: string[0], line })
      return
    }
    const operator = this.#take(OPERATOR)
    if (operator === null) throw syntaxError(line)
    this.#countBrackets(operator[0])
    this.#push('operator', operator[0])
  }

  #takeNumber(): bigint | number | null {
    const line = this.#line
    if (!/[\d.]/.test(this.#source[this.#at])) return null
    const radix = this.#take(RADIX)
    if (radix !== null) return this.#endNumber(BigInt(radix[0].replaceAll('_', '')))
    const match = this.#take(DECIMAL)
    if (match === null) return null
    const [text] = match
    if (!/\d/.test(text)) {
      this.#at -= text.length
      return null
    }
    if (/[.eE]/.test(text)) return this.#endNumber(Number(text.replaceAll('_', '')))
    if (/^0[_0]*[1-9]/.test(text)) {
      throw syntaxError(
        line,
        'leading zeros in decimal integer literals are not permitted; use an 0o prefix for octal integers',
      )
    }
    return this.#endNumber(inPython(() => readPythonInt(text)))
  }

  /** A letter right behind a number belongs to it, and makes it wrong. */
  #endNumber<T>(value: T): T {
    if (/[\w]/.test(this.#source[this.#at] ?? ' ')) throw syntaxError(this.#line, 'invalid decimal literal')
    return value
  }

  #countBrackets(operator: string): void {
    if ('([{'.includes(operator)) this.#brackets += 1
    else if (')]}'.includes(operator)) this.#brackets = Math.max(0, this.#brackets - 1)
    if (this.#brackets > MAX_BRACKETS) throw syntaxError(this.#line, 'too many nested parentheses')
  }
}

export function readTokens(source: string): Token[] {
  return new Tokenizer(source).read()
}
