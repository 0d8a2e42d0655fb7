/**
 * Keeps the credentials in the `extra_data` of jobs until they end. They live in memory only, by job id, bounded in count and
 * bytes; with a sealer they are kept encrypted in the store instead, so that an attempt after a restart has them too. They are
 * forgotten at every terminal state, and at the latest with the job's retention. They never reach a log or an error.
 */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  NumberText,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import type { Sealer } from '../../../../lib/sealer.ts'
import type { Work } from '../../../../lib/waiting/turns.ts'
import { KEY_IN_TEXT, KEY_PREFIX } from '../../accounts/keys/api-key.ts'
import { ServiceError } from '../../errors.ts'

export type ExtraData = Readonly<Record<string, unknown>>

export interface ExtraDataKeeper {
  /**
   * Call it before the job row is written. Returns what the store is to keep, or null. Throws `queue_full` when there is no room.
   * `text`: the data as JSON, where the caller has it already.
   */
  hold(jobId: string, data: ExtraData, until: Date, text?: string): Uint8Array | null
  /** For a claimed job; null when the data was lost. */
  take(jobId: string, sealed: Uint8Array | null): ExtraData | null
  forget(jobId: string): void
  /** Forgets data of jobs past their retention; returns how many. */
  sweep(now: Date): number
  count(): number
}

interface ExtraDataOptions {
  readonly sealer: Sealer | null
  readonly maxCount?: number
  readonly maxBytes?: number
}

interface Held {
  readonly data: ExtraData
  readonly bytes: number
  readonly until: Date
}

const DEFAULT_MAX_COUNT = 10_000
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024
const NO_ROOM_RETRY_SECONDS = 10

export function createExtraDataKeeper(options: ExtraDataOptions): ExtraDataKeeper {
  const { sealer, maxCount = DEFAULT_MAX_COUNT, maxBytes = DEFAULT_MAX_BYTES } = options
  const held = new Map<string, Held>()
  let heldBytes = 0

  function forget(jobId: string): void {
    const entry = held.get(jobId)
    if (entry === undefined) return
    held.delete(jobId)
    heldBytes -= entry.bytes
  }

  return {
    hold(jobId, data, until, text = stringifyLosslessJson(data as JsonObject)) {
      if (sealer !== null) return sealer.seal(Buffer.from(text), jobId)
      const bytes = Buffer.byteLength(text)
      if (held.size >= maxCount || heldBytes + bytes > maxBytes) {
        throw new ServiceError('queue_full', 'too many waiting jobs carry credentials in extra_data; try again later', {
          retryAfterSeconds: NO_ROOM_RETRY_SECONDS,
        })
      }
      forget(jobId)
      held.set(jobId, { data, bytes, until })
      heldBytes += bytes
      return null
    },
    take(jobId, sealed) {
      const inMemory = held.get(jobId)
      if (inMemory !== undefined) return inMemory.data
      return sealed === null || sealer === null ? null : readSealed(sealer, sealed, jobId)
    },
    forget,
    sweep(now) {
      const over = [...held].filter(([, entry]) => entry.until <= now)
      for (const [jobId] of over) forget(jobId)
      return over.length
    },
    count: () => held.size,
  }
}

/** What a run is given: the notes that were stored with its job, and the credentials. */
export function joinExtraData(notes: JsonValue, credentials: ExtraData | null): ExtraData | null {
  if (notes === null) return credentials
  // Credentials come last: data that an older version sealed contains the notes, too.
  return { ...(notes as JsonObject), ...credentials }
}

function readSealed(sealer: Sealer, sealed: Uint8Array, jobId: string): ExtraData | null {
  const plain = sealer.open(sealed, jobId)
  if (plain === null) return null
  const data = parseLosslessJson(Buffer.from(plain).toString('utf8'))
  return isJsonObject(data) ? data : null
}

/**
 * Separates credentials from the rest of `extra_data`. Credentials go to the keeper only. The rest, the notes, is stored with the
 * job; a credential that a caller left inside of it is blanked first, wherever it stands, so that notes are safe to show and log.
 */
interface SplitExtraData {
  /** null: the job carries no credential. */
  readonly credentials: ExtraData | null
  /** null: it carries nothing else. */
  readonly notes: JsonObject | null
}

/** Fields that are known to hold no credential. Every other field is treated as one. */
const NOTES: ReadonlySet<string> = new Set(['extra_pnginfo'])

// About a millisecond of looking between two yields.
const STEP_VALUES = 5000
const BLANKED = '[REDACTED]'

/** In steps: what an editor sends along may have hundreds of thousands of values. */
export function* splitExtraDataSteps(data: ExtraData | null): Work<SplitExtraData> {
  const entries = Object.entries(data ?? {})
  // Clients also send credential fields that they have no value for: an empty one need not be kept.
  const isNote = ([name, value]: [string, unknown]) => NOTES.has(name) || value === null || value === ''
  const credentials = entries.filter((entry) => !isNote(entry))
  const notes = entries.filter(isNote) as [string, JsonValue][]
  const known = credentials.map(([, value]) => value)
  return {
    credentials: credentials.length === 0 ? null : Object.fromEntries(credentials),
    notes: notes.length === 0 ? null : yield* blankCredentialSteps(Object.fromEntries(notes), { known }),
  }
}

interface BlankOptions {
  /** Credentials that came in the same submit: no text may repeat them. Anything but a text is ignored. */
  readonly known: readonly unknown[]
  /** Which names stand for a credential; by default only unmistakable ones, so that a saved graph stays as it is. */
  readonly isCredentialName?: (name: string) => boolean
}

// Shorter texts would blank out ordinary words.
const MIN_KNOWN_LENGTH = 6

/** A copy without credentials; the same value, uncopied, when there are none in it. */
export function* blankCredentialSteps<Value extends JsonValue>(value: Value, options: BlankOptions): Work<Value> {
  const isName = rememberAnswers(options.isCredentialName ?? isCredentialName)
  const known = options.known.filter(
    (text): text is string => typeof text === 'string' && text.length >= MIN_KNOWN_LENGTH,
  )
  const isCleanText = (text: string) => !text.includes(KEY_PREFIX) && !known.some((secret) => text.includes(secret))

  function* isClean(): Work<boolean> {
    const waiting: JsonValue[] = [value]
    let seen = 0
    for (let part = waiting.pop(); part !== undefined; part = waiting.pop()) {
      if (++seen % STEP_VALUES === 0) yield
      if (typeof part === 'string' && !isCleanText(part)) return false
      if (Array.isArray(part)) for (const item of part) waiting.push(item)
      else if (isJsonObject(part)) {
        for (const name of Object.keys(part)) {
          const member = part[name] as JsonValue
          if (!isCleanText(name) || (isName(name) && mayReveal(member))) return false
          waiting.push(member)
        }
      }
    }
    return true
  }

  function blankText(text: string): string {
    return known.reduce((result, secret) => result.replaceAll(secret, BLANKED), text.replaceAll(KEY_IN_TEXT, BLANKED))
  }

  let copied = 0
  function* blank(part: JsonValue): Work<JsonValue> {
    if (++copied % STEP_VALUES === 0) yield
    if (typeof part === 'string') return blankText(part)
    if (Array.isArray(part)) {
      const items: JsonValue[] = []
      for (const item of part) items.push(yield* blank(item))
      return items
    }
    if (!isJsonObject(part)) return part
    const members: [string, JsonValue][] = []
    for (const [name, member] of Object.entries(part)) {
      members.push([blankText(name), isName(name) && mayReveal(member) ? BLANKED : yield* blank(member)])
    }
    // Not by assignment: a member may be called `__proto__`.
    return Object.fromEntries(members)
  }

  return (yield* isClean()) ? value : ((yield* blank(value)) as Value)
}

const MAX_REMEMBERED = 10_000

/** A saved graph repeats a few dozen names up to a hundred thousand times. */
function rememberAnswers(ask: (name: string) => boolean): (name: string) => boolean {
  const answers = new Map<string, boolean>()
  return (name) => {
    const known = answers.get(name)
    if (known !== undefined) return known
    const answer = ask(name)
    if (answers.size < MAX_REMEMBERED) answers.set(name, answer)
    return answer
  }
}

/** A flag or an empty value under the name of a credential reveals nothing. */
function mayReveal(value: JsonValue): boolean {
  if (value === null || typeof value === 'boolean' || value === '') return false
  if (Array.isArray(value)) return value.some(mayReveal)
  return !isJsonObject(value) || value instanceof NumberText || Object.values(value).some(mayReveal)
}

// A cheap test that nearly every name of a saved graph fails.
const WORTH_A_LOOK = /key|token|secret|pass|pwd|credential|authorization|cookie|bearer/i
const CREDENTIAL_WORDS = new RegExp(
  [
    '(^|_)(api|access|auth|private|secret|signing|encryption|master|client|service|account|license|subscription)_?keys?(_|$)',
    '(^|_)(auth|access|refresh|session|api|bearer|security|id|user|csrf)_?tokens?(_|$)',
    '(^|_)token$',
    '(^|_)(secrets?|passwords?|passwd|pwd|passphrase|credentials?|authorization|cookies?|bearer)(_|$)',
  ].join('|'),
)

/** `apiKey`, `api-key`, `API_KEY_COMFY_ORG`, `hfToken`, `password`; not `keyframes`, `max_tokens` or `token_normalization`. */
export function isCredentialName(name: string): boolean {
  if (!WORTH_A_LOOK.test(name)) return false
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .toLowerCase()
  return CREDENTIAL_WORDS.test(words)
}
