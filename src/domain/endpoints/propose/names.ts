/** Names of inputs and outputs: snake_case, ASCII, at most 64 characters, and words that say something to a stranger. */

export const NAME = /^[a-z][a-z0-9_]{0,63}$/
const MAX_NAME = 64

/** Words that a call has for itself. */
export const RESERVED: ReadonlySet<string> = new Set(['version', 'webhook', 'wait'])

// What a class or an editor calls a value when nobody gave it a name.
const GENERIC: ReadonlySet<string> = new Set(
  (
    'value values text string str input in int integer float number num boolean bool any option optional choice combo index ' +
    'primitive switch source node output out string_a string_b string_c text_a text_b text_c a b c x y on_true on_false ' +
    'input_text input_value text_multiline string_multiline multiline anything data var item from_url path step load select ' +
    'upload here this default untitled'
  ).split(' '),
)

/** Whether a name says nothing of what the value is for: `value`, `text_2`, `string_b_1`. */
export function isGeneric(name: string): boolean {
  const plain = withoutNumber(name)
  return plain === '' || GENERIC.has(plain) || GENERIC.has(name)
}

export function withoutNumber(name: string): string {
  return name.replace(/_?\d+$/, '')
}

/** Letters that do not come apart into one of ASCII and an accent. */
const LATIN: Readonly<Record<string, string>> = { ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', ł: 'l', đ: 'd' }

/** An empty text when too little of it can be written in ASCII: a title in Chinese, a lone number. */
export function toName(text: string): string {
  const plain = text
    .slice(0, 200)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[ßæœøłđ]/gi, (letter) => LATIN[letter.toLowerCase()])
  const letters = plain.match(/\p{L}/gu)?.length ?? 0
  const ascii = plain.match(/[a-z]/gi)?.length ?? 0
  if (ascii * 2 <= letters) return ''
  const words = plain
    .replace(/([a-z]{2})([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .replace(/['’]/g, '')
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
  // A name begins with a letter: `2x image` is `image_2x`.
  const first = words.findIndex((word) => /^[a-z]/.test(word))
  if (first === -1) return ''
  return [...words.slice(first), ...words.slice(0, first)].join('_').slice(0, MAX_NAME).replace(/_+$/, '')
}

const LEADING =
  /^(?:(?:step|part)\s*\d+|\d+|load(?:ing)?|upload|save|preview|enter|write|set|choose|select|your|the|an?|as)(?:[\s.:)\-–—_]+|$)/i

/** The name that a title gives; an empty text when it says nothing, or too little of it is ASCII. */
export function toNameOfTitle(title: string, classTitle: string | null): string {
  const name = toName(cleanTitle(title, classTitle))
  return isGeneric(name) ? '' : name
}

/**
 * What a title that the user gave a node says of its value. `classTitle` and what is only an instruction is left out:
 * `Load Image (Reference Image)`, `Step 1: upload your photo`.
 */
export function cleanTitle(title: string, classTitle: string | null): string {
  let rest = title
    .trim()
    .slice(0, 200)
    .replace(/\(\s*optional\s*\)/i, '')
    .trim()
  const inBraces = /^([^()（）]*)[(（]([^()（）]+)[)）]\s*$/.exec(rest)
  if (inBraces !== null && isHead(inBraces[1], classTitle)) rest = inBraces[2]
  else if (classTitle !== null && rest.toLowerCase().startsWith(classTitle.toLowerCase())) {
    const behind = rest.slice(classTitle.length)
    if (/^\s*[-–—:_|#]/.test(behind)) rest = behind.replace(/^[\s\-–—:_|#]+/, '')
  }
  for (let round = 0; round < 4; round++) {
    const shorter = rest.replace(LEADING, '')
    if (shorter === rest || shorter === '') break
    rest = shorter
  }
  return rest
}

/** The part before the brackets is what the class is called, today or in another version of the editor. */
function isHead(head: string, classTitle: string | null): boolean {
  const said = head.trim().toLowerCase()
  if (said === '' || said === classTitle?.toLowerCase()) return true
  return isGeneric(toName(said)) || /^(?:load|save|preview)\b.{0,24}$|text encode|^(?:text|string|clip)\b/.test(said)
}

const NEGATIVE = /(?:^|_)neg(?:ative)?(?:_|$)/
const POSITIVE = /^(?:pos(?:itive)?|positive_text|text_prompt|prompt_text|input_prompt|prompts|prompt_here)$/

/** The usual words for the two prompts. */
export function toNameOfText(name: string): string {
  if (NEGATIVE.test(name)) return 'negative_prompt'
  const plain = name.replace(/(?:main_|text_)?positive_prompt|prompt_positive/, 'prompt')
  return POSITIVE.test(plain) ? 'prompt' : plain
}

/** `Negative prompt` of `negative_prompt`; what has capitals or blanks of its own stays. */
export function toWords(name: string): string {
  const words = /^[a-z0-9_]+$/.test(name) ? name.replaceAll('_', ' ') : name
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Gives each name once. */
interface NameBook {
  /** `prefix`: what tells it from another of the same name, if something does. */
  take(wanted: string, prefix?: string): string
}

export function createNameBook(): NameBook {
  const taken = new Set<string>()
  // Up to which number each name is taken, so that many equal names cost no more than many different ones.
  const counts = new Map<string, number>()
  return {
    take(wanted, prefix = '') {
      const free = RESERVED.has(wanted) ? `${wanted}_value` : wanted
      const prefixed = prefix === '' ? free : prefix.endsWith(free) ? prefix : `${prefix}_${free}`
      const base = taken.has(free) && prefixed.length <= MAX_NAME ? prefixed : free
      let count = counts.get(base) ?? 1
      const at = () => (count === 1 ? base : `${base.slice(0, MAX_NAME - 7).replace(/_+$/, '')}_${count}`)
      while (taken.has(at())) count++
      const name = at()
      counts.set(base, count)
      taken.add(name)
      return name
    },
  }
}
