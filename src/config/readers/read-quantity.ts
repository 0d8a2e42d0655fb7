/**
 * Readers for counts, durations ('7d', '90s'), sizes ('10GiB') and amounts of money. Each takes the text and returns the value, or
 * throws an Error whose message continues the sentence "port = "x" …" and ends with an example that works.
 */
import { readUsd } from '../../../lib/text/usd.ts'

interface Bounds {
  readonly min: number
  readonly max: number
}

interface CountBounds extends Bounds {
  readonly example?: number
}

// What bounds of durations (in milliseconds) and of sizes (in bytes) are written with.
export const SECOND = 1000
export const DAY = 86_400_000
export const YEAR = 365 * DAY
const KIB = 2 ** 10
export const MIB = 2 ** 20
export const GIB = 2 ** 30
export const TIB = 2 ** 40

const WHOLE = /^\d{1,16}$/

export function readCount({ min, max, example = Math.max(min, 1) }: CountBounds): (text: string) => number {
  return function readCountWithin(text) {
    const value = Number(text)
    if (WHOLE.test(text) && value >= min && value <= max) return value
    throw new Error(`is not a whole number from ${min} to ${max}; give for example ${example}`)
  }
}

const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: SECOND, m: 60 * SECOND, h: 3600 * SECOND, d: DAY }
const DURATION = /^(\d{1,12})(ms|s|m|h|d)$/

/** Bounds in milliseconds. A number without a unit is refused, because it is ambiguous. */
export function readDurationMs({ min, max }: Bounds): (text: string) => number {
  return function readDurationWithin(text) {
    const parts = DURATION.exec(text)
    if (parts === null)
      throw new Error('is not a duration; write a number and a unit (ms, s, m, h, d), for example 90s or 7d')
    const value = Number(parts[1]) * MS_PER_UNIT[parts[2]]
    if (value >= min && value <= max) return value
    throw new Error(`must lie between ${toDurationText(min)} and ${toDurationText(max)}`)
  }
}

/** The shortest exact spelling: 90000 gives '90s'. */
export function toDurationText(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's']) {
    if (ms >= MS_PER_UNIT[unit] && ms % MS_PER_UNIT[unit] === 0) return `${ms / MS_PER_UNIT[unit]}${unit}`
  }
  return `${ms}ms`
}

const BYTES_PER_UNIT: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: KIB,
  MiB: MIB,
  GiB: GIB,
  TiB: TIB,
}
const SIZE = /^(\d{1,15}(?:\.\d{1,3})?) ?(B|[KMGT]i?B)$/i

/** Bounds in bytes. Accepts 'GiB' (powers of 1024) and 'GB' (powers of 1000), in any case. */
export function readBytes({ min, max }: Bounds): (text: string) => number {
  return function readBytesWithin(text) {
    const parts = SIZE.exec(text)
    const unit =
      parts === null
        ? undefined
        : Object.keys(BYTES_PER_UNIT).find((name) => name.toLowerCase() === parts[2].toLowerCase())
    if (parts === null || unit === undefined) {
      throw new Error('is not a size; write a number and a unit (B, KiB, MiB, GiB, TiB), for example 512MiB or 10GiB')
    }
    const value = Math.round(Number(parts[1]) * BYTES_PER_UNIT[unit])
    if (value >= min && value <= max) return value
    throw new Error(`must lie between ${toSizeText(min)} and ${toSizeText(max)}`)
  }
}

export function toSizeText(bytes: number): string {
  for (const unit of ['TiB', 'GiB', 'MiB', 'KiB']) {
    if (bytes >= BYTES_PER_UNIT[unit] && bytes % BYTES_PER_UNIT[unit] === 0)
      return `${bytes / BYTES_PER_UNIT[unit]}${unit}`
  }
  return `${bytes}B`
}

/** An amount of US dollars, in whole millionths. */
export function readUsdMicros(text: string): number {
  const micros = text.startsWith('-') ? null : readUsd(text)
  if (micros === null) throw new Error('is not an amount of US dollars; give for example 25 or 0.50')
  return micros
}

export interface Recycling {
  readonly jobs?: number
  readonly memoryBytes?: number
  readonly ageMs?: number
}

export const readRecycleJobs = readCount({ min: 1, max: 1_000_000_000, example: 500 })
export const readRecycleMemory = readBytes({ min: 64 * MIB, max: 64 * TIB })
export const readRecycleAge = readDurationMs({ min: SECOND, max: YEAR })

/** Limits of different kinds, told apart by how they are written: `500` jobs, `24GiB` of memory, `1d` of age. */
export function readRecycling(text: string): Recycling {
  const limits = text.split(',').map((item) => readLimit(item.trim()))
  const kinds = limits.flatMap((limit) => Object.keys(limit))
  if (new Set(kinds).size === kinds.length) return Object.assign({}, ...limits)
  throw new Error('has two limits of one kind; give each kind once, for example 500,24GiB,1d')
}

function readLimit(item: string): Recycling {
  if (/^\d+$/.test(item)) return { jobs: readRecycleJobs(item) }
  if (/b$/i.test(item)) return { memoryBytes: readRecycleMemory(item) }
  if (DURATION.test(item)) return { ageMs: readRecycleAge(item) }
  throw new Error('has an item that is no number of jobs, size or duration; give for example 500,24GiB,1d')
}

/** What one account may do with the router. */
export const ROUTER_LIMITS = {
  maxCalls: readCount({ min: 1, max: 1_000_000 }),
  spendCeiling: readUsdMicros,
  rate: readCount({ min: 1, max: 10_000_000 }),
} as const
