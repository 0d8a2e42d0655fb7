/** Finds the word that a mistyped one was meant to be. */

/** How many letters have to be added, removed or replaced to turn one text into the other. */
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

// The cost grows with the square of the length, and no name is that long.
const MAX_LENGTH = 64

// Two swapped letters count as two, and must be allowed in short words too.
const ALWAYS_TOLERATED = 2

/** null when no word is near. A third of the letters may differ, or two if that is more, but never all of them. */
export function closestWord(word: string, words: Iterable<string>): string | null {
  const text = word.toLowerCase().slice(0, MAX_LENGTH)
  let best: string | null = null
  let nearest = Math.min(Math.max(ALWAYS_TOLERATED, Math.floor(text.length / 3)), text.length - 1) + 1
  for (const candidate of words) {
    const distance = editDistance(text, candidate.toLowerCase())
    if (distance >= nearest) continue
    best = candidate
    nearest = distance
  }
  return best
}
