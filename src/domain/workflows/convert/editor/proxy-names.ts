/** The names of shown widgets in files of older editors: `12: 7: seed` is the widget `seed` of node 7, which node 12 shows. */

// Longer ones are no names of widgets.
const MAX_NAME = 1_000

/** Read from one place on, and never gives back what it took: a name may be made to be hard to read. */
const PREFIX = /\s*(\d+)\s*:\s*/y

const BREAKS = ['\n', '\r', '\u2028', '\u2029']

/** The name without the ids before it, and the last of these. A name has one line, and at least one character. */
export function stripPrefixes(name: string): { readonly name: string; readonly innerId: string | null } {
  if (name.length > MAX_NAME) return { name, innerId: null }
  const lastBreak = Math.max(...BREAKS.map((each) => name.lastIndexOf(each)))
  let at = 0
  let innerId: string | null = null
  for (;;) {
    PREFIX.lastIndex = at
    const match = PREFIX.exec(name)
    if (match === null) break
    const after = at + match[0].length
    const end = after === name.length && !match[0].endsWith(':') ? after - 1 : after
    if (end === name.length || end <= lastBreak) break
    innerId = match[1]
    at = end
  }
  return { name: name.slice(at), innerId }
}
