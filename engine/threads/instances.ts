/**
 * What a node of an account keeps between runs: five letters, and the last number of its preview names. Both live in
 * memory only, like the previews they name, and the least recently used go first.
 */
import { randomInt } from 'node:crypto'

// ComfyUI's own alphabet: it has `p` twice and no `w`.
const ALPHABET = 'abcdefghijklmnopqrstupvxyz'
const LETTER_COUNT = 5
const MAX_INSTANCES = 10_000

export interface Instances {
  letters(accountId: string, nodeId: string, classType: string): string
  /** The first of `count` consecutive numbers for temporary files of this name. */
  reserveTempNumbers(accountId: string, name: string, count: number): number
}

export function randomLetters(): string {
  return Array.from({ length: LETTER_COUNT }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

function createBoundedMap<T>() {
  const entries = new Map<string, T>()
  return {
    get: (key: string) => entries.get(key),
    set(key: string, value: T): void {
      entries.delete(key)
      entries.set(key, value)
      if (entries.size <= MAX_INSTANCES) return
      for (const oldest of entries.keys()) {
        entries.delete(oldest)
        return
      }
    },
  }
}

export function createInstances(newLetters: () => string): Instances {
  const lettersByNode = createBoundedMap<string>()
  const lastNumbers = createBoundedMap<number>()
  return {
    letters(accountId, nodeId, classType) {
      const key = JSON.stringify([accountId, nodeId, classType])
      const letters = lettersByNode.get(key) ?? newLetters()
      lettersByNode.set(key, letters)
      return letters
    },
    reserveTempNumbers(accountId, name, count) {
      const key = JSON.stringify([accountId, name])
      const last = lastNumbers.get(key) ?? 0
      lastNumbers.set(key, last + count)
      return last + 1
    },
  }
}
