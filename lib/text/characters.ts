/** Whether a text has at most this many characters, counted in code points as the API contracts do, not in UTF-16 units. */
export function hasAtMost(text: string, characters: number): boolean {
  if (text.length <= characters) return true
  if (text.length > 2 * characters) return false
  let count = 0
  for (const _ of text) if (++count > characters) return false
  return true
}
