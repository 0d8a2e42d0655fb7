/** Edit distance between two short words, letters in swapped order counting as two. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replace = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replace, row[j] + 1, next[j - 1] + 1))
    }
    row = next
  }
  return row[b.length]
}

// The longest name is about twenty letters; a longer word is no typing mistake of one.
const MAX_WORD = 64

/** `; did you mean "port"?`, or nothing when no known name is near. Ends a message. */
export function suggest(word: string, known: Iterable<string>): string {
  if (word.length > MAX_WORD) return ''
  let best: string | null = null
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1
  for (const name of known) {
    const found = distance(word.toLowerCase(), name.toLowerCase())
    if (found < bestDistance) {
      best = name
      bestDistance = found
    }
  }
  return best === null ? '' : `; did you mean "${best}"?`
}
