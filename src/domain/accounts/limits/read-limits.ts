/** Reads tiers and the overrides of an account from JSON. Closed: a name that nobody knows is refused, never ignored. */
import { hasAtMost } from '../../../../lib/text/cut-text.ts'
import { MAX_MICROS } from '../../../../lib/text/usd.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import { type AccountLimits, BASE_LIMITS, type LimitOverrides, type Tiers } from './tiers.ts'

type Reader<Value> = (value: unknown) => Value

const MAX_COUNT = 1_000_000
const MAX_BYTES = 2 ** 46
const MAX_SECONDS = 365 * 86_400
const MAX_CLASSES = 10_000
const MAX_CLASS_LENGTH = 256
const MAX_MODELS = 1000
const MODEL_PATTERN = /^(?:\*|[a-z0-9._*-]{1,64}\/[a-z0-9._*-]{1,128})$/
const MAX_TIERS = 100
const TIER_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/

const READERS: { readonly [Name in keyof AccountLimits]: Reader<AccountLimits[Name]> } = {
  concurrentJobs: readInteger(0, MAX_COUNT),
  queuedJobs: readInteger(0, 10 * MAX_COUNT),
  sharePercent: readInteger(1, 10_000),
  requestsPerMinute: orNull(readInteger(1, 60 * MAX_COUNT)),
  requestBurst: readInteger(1, MAX_COUNT),
  routerConcurrency: readInteger(0, MAX_COUNT),
  committedSpendMicros: orNull(readInteger(0, MAX_MICROS)),
  streams: readInteger(0, MAX_COUNT),
  uploadBytes: orNull(readInteger(0, MAX_BYTES)),
  storageBytes: orNull(readInteger(0, MAX_BYTES)),
  runSeconds: orNull(readInteger(1, MAX_SECONDS)),
  allowNodes: orNull(readClasses),
  denyNodes: readClasses,
  allowModels: orNull(readModels),
  denyModels: readModels,
  reuseResults: readBoolean,
  subscriptionActive: readBoolean,
  creditFloorMicros: orNull(readInteger(-MAX_MICROS, 0)),
}

/** Throws invalid_field that names the limit. */
export function readOverrides(value: unknown): LimitOverrides {
  return Object.fromEntries(Object.entries(readObject(value, 'limits')).map(readLimit))
}

/** `{ "<name>": { "<limit>": value, … }, … }`; a limit that a tier leaves out has its default. The first tier is the default one. */
export function readTiers(value: unknown): Tiers {
  const named = Object.entries(readObject(value, 'tiers'))
  const [first] = named
  if (first === undefined || named.length > MAX_TIERS) throw invalidField('tiers', `must hold 1 to ${MAX_TIERS} tiers`)
  const byName = new Map(named.map(([name, limits]) => [readTierName(name), readTier(name, limits)]))
  return { byName, defaultName: first[0] }
}

function readTier(name: string, value: unknown): AccountLimits {
  try {
    return { ...BASE_LIMITS, ...readOverrides(value) }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw new ServiceError('invalid_field', `${name}: ${error.message}`, { details: { field: name } })
  }
}

function readTierName(name: string): string {
  if (TIER_NAME.test(name)) return name
  throw invalidField('tiers', `has the name ${JSON.stringify(name.slice(0, 64))}; use small letters, digits, _ and -`)
}

function readLimit([name, value]: [string, unknown]): [string, unknown] {
  if (!Object.hasOwn(READERS, name)) {
    throw invalidField(name.slice(0, 64), `is not a limit; the limits are ${Object.keys(READERS).join(', ')}`)
  }
  try {
    return [name, READERS[name as keyof AccountLimits](value)]
  } catch (error) {
    throw error instanceof LimitProblem ? invalidField(name, error.message) : error
  }
}

class LimitProblem extends Error {}

function readInteger(min: number, max: number): Reader<number> {
  return (value) => {
    if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return value as number
    throw new LimitProblem(`must be a whole number from ${min} to ${max}`)
  }
}

function orNull<Value>(read: Reader<Value>): Reader<Value | null> {
  return (value) => (value === null ? null : read(value))
}

function readBoolean(value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw new LimitProblem('must be true or false')
}

function readClasses(value: unknown): readonly string[] {
  const isClass = (item: unknown) => typeof item === 'string' && item !== '' && hasAtMost(item, MAX_CLASS_LENGTH)
  if (Array.isArray(value) && value.length <= MAX_CLASSES && value.every(isClass)) return [...new Set<string>(value)]
  throw new LimitProblem(`must be a list of at most ${MAX_CLASSES} node class names`)
}

function readModels(value: unknown): readonly string[] {
  const isPattern = (item: unknown) => typeof item === 'string' && MODEL_PATTERN.test(item)
  if (Array.isArray(value) && value.length <= MAX_MODELS && value.every(isPattern)) return [...new Set<string>(value)]
  throw new LimitProblem(
    `must be a list of at most ${MAX_MODELS} model ids or patterns, such as "bfl/flux-pro", "bfl/*" or "*"`,
  )
}

function readObject(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw invalidField(what, 'must be an object')
}
