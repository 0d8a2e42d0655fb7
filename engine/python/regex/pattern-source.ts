/** Reads a pattern or a replacement token by token; a backslash and what follows it are one token. Positions are Python's. */
import { RegexError } from './pattern-syntax.ts'

export class PatternSource {
  readonly #characters: readonly string[]
  #index = 0
  /** The token that comes next; null at the end. */
  next: string | null = null

  constructor(text: string) {
    this.#characters = Array.from(text)
    this.#advance()
  }

  #advance(): void {
    const character = this.#characters[this.#index]
    if (character === undefined) {
      this.next = null
      return
    }
    this.#index += 1
    if (character !== '\\') {
      this.next = character
      return
    }
    const escaped = this.#characters[this.#index]
    if (escaped === undefined) throw this.errorAt('bad escape (end of pattern)', this.#characters.length - 1)
    this.#index += 1
    this.next = character + escaped
  }

  /** Takes the next token if it is this one. */
  match(token: string): boolean {
    if (this.next !== token) return false
    this.#advance()
    return true
  }

  get(): string | null {
    const token = this.next
    this.#advance()
    return token
  }

  /** Takes up to `count` tokens out of `allowed`. */
  getWhile(count: number, allowed: string): string {
    let taken = ''
    while (taken.length < count && this.next !== null && this.next.length === 1 && allowed.includes(this.next)) {
      taken += this.get()
    }
    return taken
  }

  /** What stands before `terminator`, which is taken too. */
  getUntil(terminator: string, what: string): string {
    let taken = ''
    for (;;) {
      const token = this.get()
      if (token === null) {
        if (taken === '') throw this.error(`missing ${what}`)
        throw this.error(`missing ${terminator}, unterminated name`, Array.from(taken).length)
      }
      if (token === terminator) {
        if (taken === '') throw this.error(`missing ${what}`, 1)
        return taken
      }
      taken += token
    }
  }

  tell(): number {
    return this.#index - (this.next === null ? 0 : Array.from(this.next).length)
  }

  seek(position: number): void {
    this.#index = position
    this.#advance()
  }

  slice(from: number, to: number): string {
    return this.#characters.slice(from, to).join('')
  }

  error(message: string, back = 0): RegexError {
    return this.errorAt(message, this.tell() - back)
  }

  errorAt(message: string, position: number): RegexError {
    const before = this.#characters.slice(0, position)
    if (!this.#characters.includes('\n')) return new RegexError(`${message} at position ${position}`)
    const line = before.filter((character) => character === '\n').length + 1
    const column = position - before.lastIndexOf('\n')
    return new RegexError(`${message} at position ${position} (line ${line}, column ${column})`)
  }
}
