/** How long a text is by the contracts: in characters, of which one beyond the basic plane is one and not two. */
export function hasAtMost(text: string, characters: number): boolean {
  if (text.length <= characters) return true
  if (text.length > 2 * characters) return false
  let count = 0
  for (const _ of text) if (++count > characters) return false
  return true
}
