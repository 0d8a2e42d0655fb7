/** The arithmetic of number widgets, step by step as the editor does it: results must agree to the last digit. */
import { type JsonValue, NumberText } from '../../../../../lib/json/lossless-json.ts'
import type { EditorInput } from './editor-input.ts'

type Settle = (value: JsonValue | undefined) => JsonValue | undefined

function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  return value instanceof NumberText ? value.value : undefined
}

/** What JavaScript makes of a value where it needs a number. Lists and objects are none, whatever they hold. */
function coerce(value: JsonValue | undefined): number {
  const number = toNumber(value)
  if (number !== undefined) return number
  const isScalar = value === null || typeof value === 'string' || typeof value === 'boolean'
  return isScalar ? Number(value) : Number.NaN
}

/** JSON has no other numbers. */
const finite = (value: number): JsonValue => (Number.isFinite(value) ? value : null)

/** An integer beyond 2^53 stays as it is: no step or bound of a widget is worth a seed. */
const isLarge = (value: JsonValue | undefined): boolean => typeof value === 'bigint'

export function settleInteger({ options }: EditorInput): Settle {
  const step = toNumber(options.step) || 1
  const min = toNumber(options.min) ?? 0
  return (value) => {
    if (isLarge(value)) return value
    const given = coerce(value)
    if (step === 1) return finite(Math.round(given))
    const offset = min % step
    return finite(Math.round((given - offset) / step) * step + offset)
  }
}

export function settleFloat({ options }: EditorInput): Settle {
  const step = toNumber(options.step) ?? 0.5
  const precision = Math.max(0, -Math.floor(Math.log10(step)))
  const round = precision > 0 && !options.round ? 10 ** -precision : toNumber(options.round)
  const min = toNumber(options.min) ?? 0
  const max = toNumber(options.max) ?? 2048
  return (value) => {
    if (isLarge(value) || !round) return value
    const rounded = Math.round(coerce(value) / round) * round
    if (!Number.isFinite(rounded)) return finite(rounded)
    return Math.min(Math.max(Number(rounded.toFixed(Math.min(precision, 100))), min), max)
  }
}

export function clampNumber(value: JsonValue | undefined, { options }: EditorInput): JsonValue | undefined {
  if (isLarge(value)) return value
  const given = coerce(value)
  const min = toNumber(options.min)
  const max = toNumber(options.max)
  if (min !== undefined && given < min) return finite(min)
  if (max !== undefined && given > max) return finite(max)
  return value
}

/** Whether a value may differ between inputs that share one Primitive node. */
const IGNORED: ReadonlySet<string> = new Set([
  'default',
  'forceInput',
  'defaultInput',
  'control_after_generate',
  'multiline',
  'tooltip',
  'dynamicPrompts',
])

/** The numbers that two inputs both take; null when their declarations do not go together. */
export function mergeNumberInputs(one: EditorInput, other: EditorInput): EditorInput | null {
  if (one.type !== other.type || one.name !== other.name || one.isOptional !== other.isOptional) return null
  const low = Math.max(toNumber(one.options.min) ?? -Infinity, toNumber(other.options.min) ?? -Infinity)
  const high = Math.min(toNumber(one.options.max) ?? Infinity, toNumber(other.options.max) ?? Infinity)
  if (low > high) return null
  const steps = [toNumber(one.options.step) ?? 1, toNumber(other.options.step) ?? 1] as const
  const common = { min: low, max: high, step: Math.abs(steps[0] * steps[1]) / greatestCommonDivisor(...steps) }
  const merged = [
    { ...one.options, ...common },
    { ...other.options, ...common },
  ] as const
  const keys = new Set([...Object.keys(merged[0]), ...Object.keys(merged[1])].filter((key) => !IGNORED.has(key)))
  const agrees = (key: string) => {
    const [a, b] = [(merged[0] as Record<string, unknown>)[key], (merged[1] as Record<string, unknown>)[key]]
    return a === b || (a ?? null) === (b ?? null)
  }
  return [...keys].every(agrees) ? { ...one, options: { ...merged[0], ...merged[1] } } : null
}

const EPSILON = 1e-10
const MAX_ROUNDS = 100

function greatestCommonDivisor(a: number, b: number): number {
  let [x, y] = [Math.abs(a), Math.abs(b)]
  if (x === 0) return y
  if (y === 0) return x
  for (let round = 0; y > EPSILON && round < MAX_ROUNDS; round++) [x, y] = [y, x % y]
  return x
}
