/** `text.replace(find, replacement)`: literal, every occurrence; an empty `find` stands between all characters. */
import { refuseLongText } from './text-limit.ts'

export function pyReplace(text: string, find: string, replacement: string): string {
  if (find === '') {
    const characters = Array.from(text)
    refuseLongText(text.length + (characters.length + 1) * replacement.length)
    return ['', ...characters, ''].join(replacement)
  }
  const parts = text.split(find)
  refuseLongText(text.length + (parts.length - 1) * (replacement.length - find.length))
  return parts.join(replacement)
}
