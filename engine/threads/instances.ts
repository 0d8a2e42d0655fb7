/**
 * What a node keeps between the runs of one owner: five letters, and the last number of its preview names. Both live in
 * memory only, like the previews they name, and the least recently used go first.
 */
import { randomInt } from 'node:crypto'
import { BoundedMap } from '../../lib/bounded-map.ts'

// ComfyUI's own alphabet: it has `p` twice and no `w`.
const ALPHABET = 'abcdefghijklmnopqrstupvxyz'
const LETTER_COUNT = 5
const MAX_INSTANCES = 10_000

interface Instances {
  letters(owner: string, nodeId: string, classType: string): string
  /** The first of `count` consecutive numbers for temporary files of this name. */
  reserveTempNumbers(owner: string, name: string, count: number): number
}

export function randomLetters(): string {
  return Array.from({ length: LETTER_COUNT }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

export function createInstances(newLetters: () => string): Instances {
  const lettersByNode = new BoundedMap<string, string>(MAX_INSTANCES)
  const lastNumbers = new BoundedMap<string, number>(MAX_INSTANCES)
  return {
    letters(owner, nodeId, classType) {
      const key = JSON.stringify([owner, nodeId, classType])
      const letters = lettersByNode.get(key) ?? newLetters()
      lettersByNode.set(key, letters)
      return letters
    },
    reserveTempNumbers(owner, name, count) {
      const key = JSON.stringify([owner, name])
      const last = lastNumbers.get(key) ?? 0
      lastNumbers.set(key, last + count)
      return last + 1
    },
  }
}
