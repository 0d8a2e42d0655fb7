/** How many letters lie between two texts, and which of several words a mistyped one was meant to be. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j] + 1, next[j - 1] + 1))
    }
    row = next
  }
  return row[b.length]
}

// The cost grows with the square of the length, and nobody mistypes that much.
const MAX_LENGTH = 64

/** null when none is near: a third of the letters at most may differ. */
export function closestWord(word: string, words: readonly string[]): string | null {
  const text = word.toLowerCase().slice(0, MAX_LENGTH)
  const [best] = words
    .map((candidate) => ({ candidate, distance: editDistance(text, candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => distance * 3 <= Math.max(text.length, candidate.length))
    .toSorted((a, b) => a.distance - b.distance)
  return best?.candidate ?? null
}
