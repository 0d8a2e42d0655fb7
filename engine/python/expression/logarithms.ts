/**
 * Logarithms rounded once, computed in fixed point. JavaScript's are off by one in the last place often enough that
 * `int(log(243, 3))` would not be Python's; and ints may be larger than any float.
 */
import type { PyNumber } from '../python-value.ts'
import { bitLength, type Fraction, nearest, toFraction } from './exact-float.ts'

// Bits behind the point: enough that what is cut off never decides how a double is rounded.
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
