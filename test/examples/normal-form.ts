/**
 * What an answer is apart from when and where it was given: ids, times, hashes, secrets and addresses by kind. In the examples each of them is
 * written as one that always looks the same; a later answer is like an example when it is equal in this form.
 */

export const SHOWN_URL = 'http://127.0.0.1:8189'
const SHOWN_NOW = '2026-11-19T09:00:00.000Z'
const SHOWN_LATER = '2026-12-19T09:00:00.000Z'
const LATER_MS = 30 * 60_000
const SHOWN_LENGTH = 3

interface Kind {
  readonly name: string
  readonly pattern: RegExp
  /** As the examples show it; `at` counts the different ones of a kind. */
  show(text: string, at: number): string
}

/** Ids without any form, by the members that hold them. */
const PLAIN_IDS: Readonly<Record<string, string>> = {
  created_by: 'k3yOfAcme001',
  key_id: 'k3yOfAcme001',
  runs_as_key: 'k3yOfAcme001',
}

const hex = (at: number, length: number) => at.toString(16).padStart(length, '0')

/** In this order: what one kind has taken is no other kind's. */
const KINDS: readonly Kind[] = [
  {
    name: 'signature',
    pattern: /\?X-Goog-Date=\S+/g,
    show: () => '?X-Goog-Date=20261119T090000Z&X-Goog-Expires=86400&account=acme&key=EXAMPLE&signature=EXAMPLE',
  },
  { name: 'address', pattern: /http:\/\/(?:127\.0\.0\.1|localhost):\d+/g, show: () => SHOWN_URL },
  {
    name: 'uuid',
    pattern: /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g,
    show: (_, at) => `7d9f${hex(at, 4)}-5a1e-4b0c-9d2f-0a1b2c3d4e5f`,
  },
  { name: 'share', pattern: /(?<=\/share\/)[\w-]{24,}/g, show: () => 'an-example-and-never-a-link-of-anybody' },
  { name: 'duration', pattern: /\d+(?:\.\d+)? seconds/g, show: (text) => text },
  { name: 'hash', pattern: /(?:blake3:|sha256:)?\b[0-9a-f]{64}\b/g, show: (text) => text },
  {
    name: 'secret',
    pattern: /whsec_[A-Za-z0-9+/]{20,}={0,2}/g,
    show: (_, at) => `whsec_${Buffer.from(`an example, never a secret: ${at}`.padEnd(32, '.')).toString('base64')}`,
  },
  {
    name: 'time',
    pattern: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g,
    show: (text) => {
      const shown = Date.parse(text) > Date.now() + LATER_MS ? SHOWN_LATER : SHOWN_NOW
      return text.includes('.') ? shown : shown.replace('.000', '')
    },
  },
  { name: 'day', pattern: /\b20\d\d-\d\d-\d\d\b/g, show: (text) => (text > today() ? '2026-12-19' : '2026-11-19') },
  { name: 'month', pattern: /\b20\d\d-\d\d\b/g, show: () => '2026-11' },
  {
    name: 'key',
    pattern: /\b(?:ak|wk|sk)_[A-Za-z0-9_-]{8,}/g,
    show: (text, at) => `${text.slice(0, 3)}example${hex(at, 4)}`,
  },
  {
    name: 'id',
    pattern: /\b(?:[a-z]{2,6}_|(?:rel|bld|blob|dep|art)-)[A-Za-z0-9]{12,}\b/g,
    show: (text, at) => {
      const [lead = ''] = /^[a-z]+[_-]/.exec(text) ?? []
      return lead + hex(at, text.length - lead.length)
    },
  },
  {
    name: 'cursor',
    pattern: /\beyJ[A-Za-z0-9_-]{12,}|(?<=cursor=)[A-Za-z0-9_-]{12,}/g,
    show: () => 'eyJleGFtcGxlIjp0cnVlfQ',
  },
]

function today(): string {
  return new Date().toISOString().slice(0, 10)
}

/** Remembers how each thing of a service is shown, in both directions. */
export class ShownNames {
  readonly #shown = new Map<string, string>()
  readonly #counts = new Map<string, number>()

  show(value: unknown, most = Number.POSITIVE_INFINITY): unknown {
    if (typeof value === 'string') return this.showText(value)
    if (Array.isArray(value)) return value.slice(0, most).map((each) => this.show(each, most))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [
        this.showText(name),
        typeof each === 'string' && name in PLAIN_IDS ? PLAIN_IDS[name] : this.show(each, most),
      ]),
    )
  }

  /** Of long lists the beginning. */
  showAnswer(value: unknown): unknown {
    return this.show(value, SHOWN_LENGTH)
  }

  showText(text: string): string {
    let rest = text
    for (const kind of KINDS) rest = rest.replace(kind.pattern, (found) => this.#nameOf(kind, found))
    return rest
  }

  #nameOf(kind: Kind, found: string): string {
    const known = this.#shown.get(found)
    if (known !== undefined) return known
    const at = (this.#counts.get(kind.name) ?? 0) + 1
    this.#counts.set(kind.name, at)
    const shown = kind.show(found, at)
    this.#shown.set(found, shown)
    return shown
  }
}

function formOf(text: string): string {
  return KINDS.reduce((rest, { name, pattern }) => rest.replace(pattern, `<${name}>`), text)
}

/** Where an answer differs from its example; null: nowhere. Numbers may differ, and lists may be longer. */
export function findDifference(example: unknown, answer: unknown, where = 'answer'): string | null {
  if (Array.isArray(example)) {
    if (!Array.isArray(answer)) return `${where} is no list`
    if (example.length > 0 && answer.length === 0) return `${where} is empty`
    return firstOf(example.slice(0, answer.length), (each, at) => findDifference(each, answer[at], `${where}[${at}]`))
  }
  if (typeof example === 'object' && example !== null) {
    if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return `${where} is no object`
    const [old, now] = [example, answer].map((each) => new Map(Object.entries(each).map(([k, v]) => [formOf(k), v])))
    const odd = [...new Set([...old.keys(), ...now.keys()])].filter((name) => !old.has(name) || !now.has(name))
    if (odd.length > 0) return `${where} differs in ${odd.join(', ')}`
    return firstOf([...old], ([name, each]) =>
      name in PLAIN_IDS && typeof each === typeof now.get(name)
        ? null
        : findDifference(each, now.get(name), `${where}.${name}`),
    )
  }
  if (typeof example === 'string' && typeof answer === 'string')
    return formOf(example) === formOf(answer)
      ? null
      : `${where} is ${JSON.stringify(answer)}, not ${JSON.stringify(example)}`
  if (typeof example !== typeof answer || (example === null) !== (answer === null))
    return `${where} is ${JSON.stringify(answer)}, not ${JSON.stringify(example)}`
  return typeof example === 'number' || example === answer ? null : `${where} is ${String(answer)}`
}

function firstOf<T>(list: readonly T[], find: (each: T, at: number) => string | null): string | null {
  for (const [at, each] of list.entries()) {
    const found = find(each, at)
    if (found !== null) return found
  }
  return null
}
