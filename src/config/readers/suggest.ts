/** What a mistyped name of a setting was meant to be. */
import { closestWord } from '../../../lib/text/closest-word.ts'

/** `; did you mean "port"?`, or nothing when no known name is near. Ends a message. */
export function suggest(word: string, known: Iterable<string>): string {
  const meant = closestWord(word, known)
  return meant === null ? '' : `; did you mean "${meant}"?`
}
