/** Which jobs a list shows: the same words in the address, in the question to the service, and in a sentence to a person. */
import { JOB_STATUSES, type JobStatus, type Summary } from './summary.ts'

const WORDS = ['q', 'since', 'until', 'code', 'failure', 'class', 'weights', 'engine', 'pool'] as const
export type FilterWord = (typeof WORDS)[number]

export interface JobFilter {
  /** Empty: all. */
  readonly statuses: readonly JobStatus[]
  readonly words: Readonly<Partial<Record<FilterWord, string>>>
  readonly metadata: Readonly<Record<string, string>>
  readonly sort: 'newest' | 'oldest'
}

export function readFilter(query: URLSearchParams): JobFilter {
  const named = (query.get('status') ?? '').split(',')
  const metadata: Record<string, string> = {}
  for (const [name, value] of query) if (name.startsWith('meta.') && name.length > 5) metadata[name.slice(5)] = value
  const words: Partial<Record<FilterWord, string>> = {}
  for (const word of WORDS) {
    const value = query.get(word)
    if (value !== null && value !== '') words[word] = value
  }
  return {
    statuses: JOB_STATUSES.filter((status) => named.includes(status)),
    words,
    metadata,
    sort: query.get('sort') === 'oldest' ? 'oldest' : 'newest',
  }
}

export function writeFilter({ statuses, words, metadata, sort }: JobFilter): URLSearchParams {
  const query = new URLSearchParams()
  if (statuses.length > 0) query.set('status', statuses.join(','))
  for (const word of WORDS) {
    const value = words[word]
    if (value !== undefined) query.set(word, value)
  }
  for (const [key, value] of Object.entries(metadata)) query.set(`meta.${key}`, value)
  if (sort !== 'newest') query.set('sort', sort)
  return query
}

/** `today`, `1h`, `24h`, `7d` in the address stay true tomorrow; the service is asked for a moment. */
export function toMoment(text: string, now: number): string {
  const match = /^(\d{1,4})([mhd])$/.exec(text)
  if (match !== null) {
    const unit = { m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] as 'm' | 'h' | 'd']
    return new Date(now - Number(match[1]) * unit).toISOString()
  }
  if (text !== 'today') return text
  const day = new Date(now)
  day.setHours(0, 0, 0, 0)
  return day.toISOString()
}

const JOB_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i
const TERM = /^([^\s=]{1,64})=(\S+)$/

/**
 * Where a search leads: an id to its job; what lists show, such as `scene=4321` or `engine=gpu1 code=timeout`, to the jobs that have
 * it; anything else to the jobs that have the text. `base`: the list, such as `/jobs`.
 */
export function toSearchAddress(typed: string, base: string): string {
  const text = typed.trim()
  if (text === '') return base
  if (JOB_ID.test(text)) return `${base}/${text.toLowerCase()}`
  const query = new URLSearchParams()
  for (const term of text.split(/\s+/)) {
    const [, key, value] = TERM.exec(term) ?? []
    if (key === undefined || value === undefined) return `${base}?${new URLSearchParams({ q: text })}`
    const isWord = key === 'status' || (WORDS as readonly string[]).includes(key)
    query.set(isWord ? key : `meta.${key}`, value)
  }
  return `${base}?${query}`
}

/** The question to the service. */
export function toQuery(filter: JobFilter, now: number): URLSearchParams {
  const query = writeFilter(filter)
  for (const word of ['since', 'until'] as const) {
    const value = filter.words[word]
    if (value !== undefined) query.set(word, toMoment(value, now))
  }
  return query
}

/** `unknown`: only the service can tell, because summaries do not hold what the filter asks for. */
export function fits(job: Summary, filter: JobFilter, now: number): 'yes' | 'no' | 'unknown' {
  const { statuses, words, metadata } = filter
  if (statuses.length > 0 && !statuses.includes(job.status)) return 'no'
  if (words.engine !== undefined && job.engine !== words.engine) return 'no'
  if (words.pool !== undefined && job.pool !== words.pool) return 'no'
  if (words.code !== undefined && job.error?.code !== words.code) return 'no'
  if (words.failure !== undefined && job.error?.signature !== words.failure) return 'no'
  const createdAt = Date.parse(job.created_at)
  if (words.since !== undefined && createdAt < Date.parse(toMoment(words.since, now))) return 'no'
  if (words.until !== undefined && createdAt >= Date.parse(toMoment(words.until, now))) return 'no'
  const isDeep = words.q !== undefined || words.class !== undefined || words.weights !== undefined
  if (isDeep) return 'unknown'
  const pairs = Object.entries(metadata)
  if (pairs.every(([key, value]) => job.metadata[key] === value)) return 'yes'
  return 'unknown'
}

export function isEmptyFilter({ statuses, words, metadata }: JobFilter): boolean {
  return statuses.length === 0 && Object.keys(words).length === 0 && Object.keys(metadata).length === 0
}

const STATUS_WORD: Readonly<Record<JobStatus, string>> = {
  queued: 'waiting',
  running: 'running',
  canceling: 'canceling',
  succeeded: 'succeeded',
  failed: 'failed',
  canceled: 'canceled',
  expired: 'expired',
}

/** "failed jobs with user=7 since today". */
export function describeFilter({ statuses, words, metadata }: JobFilter): string {
  const kind = statuses.map((status) => STATUS_WORD[status]).join(' or ')
  const pairs = [
    ...Object.entries(metadata).map(([key, value]) => `${key}=${value}`),
    ...(['code', 'class', 'weights', 'engine', 'pool'] as const).flatMap((word) =>
      words[word] === undefined ? [] : [`${word} ${words[word]}`],
    ),
    ...(words.failure === undefined ? [] : ['one reason']),
    ...(words.q === undefined ? [] : [`“${words.q}”`]),
  ]
  return [
    kind === '' ? 'jobs' : `${kind} jobs`,
    pairs.length === 0 ? '' : `with ${pairs.join(' and ')}`,
    words.since === undefined ? '' : `since ${words.since}`,
    words.until === undefined ? '' : `until ${words.until}`,
  ]
    .filter((part) => part !== '')
    .join(' ')
}
