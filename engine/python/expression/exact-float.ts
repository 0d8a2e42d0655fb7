/**
 * Quotients, powers and logarithms rounded once, from the exact value: what CPython gets from big integers and from a good
 * libm. JavaScript's logarithms are off by one in the last digit often enough that `int(log(243, 3))` would not be Python's;
 * and ints may be larger than any float.
 */
import { type Fraction, toFraction } from '../../../lib/python/values.ts'
import { NodeError } from '../../node/node-error.ts'
import type { PyNumber } from '../python-value.ts'

const MANTISSA_BITS = 53
// Two bits more than a double holds: one to round by, one to remember that something was cut off.
const WORKING_BITS = MANTISSA_BITS + 2
const MAX_EXPONENT = 1023
const HALF_RANGE = 500

export function bitLength(value: bigint): number {
  const hex = (value < 0n ? -value : value).toString(16)
  return hex === '0' ? 0 : (hex.length - 1) * 4 + (32 - Math.clz32(Number.parseInt(hex[0], 16)))
}

const shifted = (value: bigint, bits: number) => (bits >= 0 ? value << BigInt(bits) : value >> BigInt(-bits))

/** `value` times two to the `exponent`, in steps that stay in the range of a double. */
function scale(value: number, exponent: number): number {
  let [scaled, left] = [value, exponent]
  while (Math.abs(left) > HALF_RANGE) {
    const step = Math.sign(left) * HALF_RANGE
    scaled *= 2 ** step
    left -= step
  }
  return scaled * 2 ** left
}

/** The double nearest to a fraction of positive integers; infinite when there is none. */
function nearest(numerator: bigint, denominator: bigint): number {
  const shift = WORKING_BITS + bitLength(denominator) - bitLength(numerator)
  if (-shift > MAX_EXPONENT) return Number.POSITIVE_INFINITY
  const [top, bottom] =
    shift >= 0 ? [shifted(numerator, shift), denominator] : [numerator, shifted(denominator, -shift)]
  const quotient = top / bottom
  const withRest = top % bottom === 0n ? quotient : quotient | 1n
  return scale(Number(withRest), -shift)
}

/** `a / b` of ints; the divisor is not zero. */
export function divideInts(dividend: bigint, divisor: bigint): number {
  const [a, b] = [Number(dividend), Number(divisor)]
  if (Number.isSafeInteger(a) && Number.isSafeInteger(b)) return a === 0 ? 0 : a / b
  const isNegative = dividend < 0n !== divisor < 0n
  const absolute = (value: bigint) => (value < 0n ? -value : value)
  const quotient = dividend === 0n ? 0 : nearest(absolute(dividend), absolute(divisor))
  if (!Number.isFinite(quotient)) {
    throw new NodeError('OverflowError', 'integer division result too large for a float')
  }
  return isNegative ? -quotient : quotient
}

const MAX_EXACT_POWER = 64

/** `base ** exponent` of floats, where the result is real. */
export function powFloat(base: number, exponent: number): number {
  // As in C: one to any power is one, also where JavaScript has NaN.
  if (base === 1 || (base === -1 && !Number.isFinite(exponent) && !Number.isNaN(exponent))) return 1
  const isExact = Number.isFinite(base) && base !== 0 && Number.isInteger(exponent)
  if (!isExact || Math.abs(exponent) > MAX_EXACT_POWER) return base ** exponent
  const { numerator, denominator } = toFraction(Math.abs(base))
  const count = BigInt(Math.abs(exponent))
  const [top, bottom] = exponent < 0 ? [denominator, numerator] : [numerator, denominator]
  const power = nearest(top ** count, bottom ** count)
  return base < 0 && count % 2n === 1n ? -power : power
}

// Logarithms are computed in fixed point. Bits behind the point: enough that what is cut off never decides how a double is rounded.
const BITS = 192n
const ONE = 1n << BITS

/** 2 atanh(z), z in fixed point and below a fifth: the series gains five bits with every step. */
function twiceAtanh(z: bigint): bigint {
  const square = (z * z) >> BITS
  let [sum, power] = [0n, z]
  for (let divisor = 1n; power !== 0n; divisor += 2n) {
    sum += power / divisor
    power = (power * square) >> BITS
    // Shifting rounds towards minus infinity: a negative power would never become zero.
    if (power === -1n) break
  }
  return 2n * sum
}

const LN_2 = twiceAtanh(ONE / 3n)
const LN_10 = naturalLog({ numerator: 10n, denominator: 1n })

/** ln of a positive fraction, in fixed point. */
function naturalLog({ numerator, denominator }: Fraction): bigint {
  // Scaled by a power of two into the range from 2/3 to 4/3, where the series is short.
  let twos = bitLength(numerator) - bitLength(denominator)
  const scaled = (exponent: number) => (exponent >= 0 ? denominator << BigInt(exponent) : denominator)
  const raised = (exponent: number) => (exponent < 0 ? numerator << BigInt(-exponent) : numerator)
  if (3n * raised(twos) > 4n * scaled(twos)) twos += 1
  const [top, bottom] = [raised(twos), scaled(twos)]
  return twiceAtanh(((top - bottom) << BITS) / (top + bottom)) + BigInt(twos) * LN_2
}

function fractionOf(value: PyNumber): Fraction {
  return typeof value === 'bigint' ? { numerator: value, denominator: 1n } : toFraction(value)
}

/** ln of a positive number over a positive fixed-point number. */
function logOver(value: PyNumber, divisor: bigint): number {
  if (value === Number.POSITIVE_INFINITY || Number.isNaN(Number(value))) return Number(value)
  const fixed = naturalLog(fractionOf(value))
  if (fixed === 0n) return 0
  return fixed < 0n ? -nearest(-fixed, divisor) : nearest(fixed, divisor)
}

/** The argument is positive. */
export const exactLog = (value: PyNumber) => logOver(value, ONE)
export const exactLog2 = (value: PyNumber) => logOver(value, LN_2)
export const exactLog10 = (value: PyNumber) => logOver(value, LN_10)
