/**
 * Another text as one member of an object, with every other byte as it came: a document of a hundred megabytes is neither read into values
 * nor written anew for it.
 */
import { BACKSLASH, CLOSING_BRACE, CLOSING_BRACKET, COMMA, OPENING_BRACE, OPENING_BRACKET, QUOTE } from './read-json.ts'

/** `json`: valid, and an object that has the member once, as a text. A mark of the byte order is left out. */
export function replaceText(json: Buffer, name: string, text: string): Buffer {
  const start = json.indexOf(OPENING_BRACE)
  let depth = 0
  let isName = false
  for (let at = start; at >= 0 && at < json.length; at++) {
    const byte = json[at]
    if (byte === OPENING_BRACE || byte === OPENING_BRACKET) isName = ++depth === 1
    else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) depth--
    else if (byte === COMMA) isName = depth === 1
    else if (byte === QUOTE) {
      const end = endOfString(json, at)
      if (isName && JSON.parse(json.toString('utf8', at, end)) === name) {
        const value = json.indexOf(QUOTE, end)
        const rest = json.subarray(endOfString(json, value))
        return Buffer.concat([json.subarray(start, value), Buffer.from(JSON.stringify(text)), rest])
      }
      isName = false
      at = end - 1
    }
  }
  throw new Error(`The object has no member ${name}.`)
}

/** Behind its closing quote. Texts are most of a large document, and are leapt over. */
function endOfString(json: Buffer, start: number): number {
  for (let at = json.indexOf(QUOTE, start + 1); at !== -1; at = json.indexOf(QUOTE, at + 1)) {
    let before = at - 1
    while (json[before] === BACKSLASH) before--
    // After an odd number of them it is a quote within the text.
    if ((at - before) % 2 === 1) return at + 1
  }
  throw new Error('The text has no end.')
}
