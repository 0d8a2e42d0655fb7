/** What a mistyped name of a setting was meant to be. */
import { editDistance } from '../../../lib/closest-word.ts'

// The longest name is about twenty letters; a longer word is no typing mistake of one.
const MAX_WORD = 64

/** `; did you mean "port"?`, or nothing when no known name is near. Ends a message. */
export function suggest(word: string, known: Iterable<string>): string {
  if (word.length > MAX_WORD) return ''
  let best: string | null = null
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1
  for (const name of known) {
    const found = editDistance(word.toLowerCase(), name.toLowerCase())
    if (found < bestDistance) {
      best = name
      bestDistance = found
    }
  }
  return best === null ? '' : `; did you mean "${best}"?`
}
