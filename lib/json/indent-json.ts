/** JSON laid out over lines without touching a value: numbers, escapes and order stay as they are. Pure. */
export function indentJson(text: string): string {
  let out = ''
  let depth = 0
  let at = 0
  const line = () => `\n${'  '.repeat(depth)}`
  while (at < text.length) {
    const character = text[at]
    if (character === '"') {
      const end = endOfString(text, at)
      out += text.slice(at, end)
      at = end
      continue
    }
    if (character === '{' || character === '[') {
      const close = character === '{' ? '}' : ']'
      const next = skipSpace(text, at + 1)
      if (text[next] === close) {
        out += character + close
        at = next + 1
        continue
      }
      depth++
      out += character + line()
    } else if (character === '}' || character === ']') {
      depth = Math.max(0, depth - 1)
      out += line() + character
    } else if (character === ',') out += `,${line()}`
    else if (character === ':') out += ': '
    else if (!/\s/.test(character)) out += character
    at++
  }
  return out
}

function endOfString(text: string, from: number): number {
  let at = from + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return Math.min(text.length, at + 1)
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && /\s/.test(text[at])) at++
  return at
}
