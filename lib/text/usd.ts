/**
 * Money, counted in whole millionths of a US dollar, so that sums are exact. The bound keeps them within what a JavaScript
 * number holds exactly.
 */
export type Micros = number

export const MICROS_PER_USD = 1_000_000
/** A billion dollars. */
export const MAX_MICROS: Micros = 1_000_000_000 * MICROS_PER_USD

const USD = /^(-?)(\d{1,9})(?:\.(\d{1,6}))?$/

/** `12.5` as 12,500,000; null when the text is no amount of dollars with at most six decimals. Never rounds. */
export function readUsd(text: string): Micros | null {
  const match = USD.exec(text)
  if (match === null) return null
  const [, sign, whole, fraction = ''] = match
  const micros = Number(whole) * MICROS_PER_USD + Number(fraction.padEnd(6, '0'))
  return sign === '-' && micros !== 0 ? -micros : micros
}

/** The exact amount in dollars, at least two decimals: 12,500,000 is `12.50`. */
export function writeUsd(micros: Micros): string {
  const whole = Math.floor(Math.abs(micros) / MICROS_PER_USD)
  const fraction = String(Math.abs(micros) % MICROS_PER_USD).padStart(6, '0')
  const decimals = fraction.replace(/0{1,4}$/, '')
  return `${micros < 0 ? '-' : ''}${whole}.${decimals}`
}
