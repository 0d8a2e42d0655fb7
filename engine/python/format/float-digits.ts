/**
 * Decimal digits of a float, rounded half to even on the exact value of the double, to any number of places. JavaScript's
 * own toFixed and toExponential round halves up and stop at a hundred digits.
 */
import { divideHalfToEven, toFraction } from '../../../lib/python/numbers.ts'

const TEN = 10n

/** `value` times ten to the `places`, rounded to a whole number. */
function scaled(value: number, places: number): bigint {
  const { numerator, denominator } = toFraction(value)
  return places >= 0
    ? divideHalfToEven(numerator * TEN ** BigInt(places), denominator)
    : divideHalfToEven(numerator, denominator * TEN ** BigInt(-places))
}

// The smallest double ends after this many decimal places: all that follow are zeros.
const MOST_PLACES = 1074

/** `12.345` with two places: `12.34`. */
export function fixedDigits(value: number, places: number): string {
  const real = Math.min(places, MOST_PLACES)
  const digits = scaled(value, real)
    .toString()
    .padStart(real + 1, '0')
  const whole = digits.slice(0, digits.length - real)
  return places === 0 ? whole : `${whole}.${digits.slice(digits.length - real).padEnd(places, '0')}`
}

interface Scientific {
  /** One digit before the point, the others after it. */
  readonly digits: string
  readonly exponent: number
}

/** `places` digits after the first one. */
export function scientificDigits(value: number, places: number): Scientific {
  if (value === 0) return { digits: '0'.repeat(places + 1), exponent: 0 }
  // The shortest text of a double may have been rounded up to a power of ten it does not reach.
  const guess = Number(value.toExponential().split('e')[1])
  const real = Math.min(places, MOST_PLACES)
  for (const exponent of [guess - 1, guess, guess + 1]) {
    const digits = scaled(value, real - exponent).toString()
    if (digits.length === real + 1) return { digits: digits.padEnd(places + 1, '0'), exponent }
  }
  throw new RangeError('a float without digits')
}
