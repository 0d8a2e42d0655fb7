/**
 * The formulas behind the scheduler nodes. PyTorch computes them in single precision, so every intermediate result is
 * rounded where it rounds: a power of seven would otherwise show the difference.
 */
import { NodeError } from '../../node/node-error.ts'

const { fround } = Math

/** `torch.linspace`: counted from the nearer end, so that both ends are exact. */
export function linspace(from: number, to: number, count: number): Float32Array {
  const values = new Float32Array(count)
  if (count === 1) {
    values[0] = from
    return values
  }
  const [start, end] = [fround(from), fround(to)]
  const step = fround(fround(end - start) / (count - 1))
  const half = Math.floor(count / 2)
  for (let i = 0; i < count; i++) {
    values[i] = i < half ? start + fround(step * i) : end - fround(step * (count - i - 1))
  }
  return values
}

/** `math.log`. */
function log(value: number): number {
  if (value > 0) return Math.log(value)
  throw new NodeError('ValueError', 'math domain error')
}

const withZero = (levels: Float32Array) => [...levels, 0]

interface Range {
  readonly steps: number
  readonly max: number
  readonly min: number
}

export function karras({ steps, max, min }: Range, rho: number): number[] {
  if (rho === 0) throw new NodeError('ZeroDivisionError', 'float division by zero')
  const [low, high] = [min ** (1 / rho), max ** (1 / rho)]
  const difference = fround(low - high)
  const levels = linspace(0, 1, steps).map((t) => fround(fround(high) + fround(t * difference)) ** rho)
  return withZero(levels)
}

export function exponential({ steps, max, min }: Range): number[] {
  return withZero(linspace(log(max), log(min), steps).map(Math.exp))
}

export function polyexponential({ steps, max, min }: Range, rho: number): number[] {
  const [low, high] = [log(min), log(max)]
  const levels = linspace(1, 0, steps).map((t) => {
    const ramp = fround(t ** rho)
    return Math.exp(fround(fround(ramp * fround(high - low)) + fround(low)))
  })
  return withZero(levels)
}

interface VpOptions {
  readonly steps: number
  readonly betaD: number
  readonly betaMin: number
  readonly epsilon: number
}

export function variancePreserving({ steps, betaD, betaMin, epsilon }: VpOptions): number[] {
  const levels = linspace(1, epsilon, steps).map((t) => {
    const exponent = fround(fround(fround(fround(betaD) * fround(t * t)) / 2) + fround(fround(betaMin) * t))
    return Math.sqrt(fround(Math.expm1(exponent)))
  })
  return withZero(levels)
}

// Keeps the logarithm below away from 0.
const LAPLACE_MARGIN = 1e-5

/** The only schedule that does not end in 0. */
export function laplace({ steps, max, min }: Range, { mu, beta }: { mu: number; beta: number }): number[] {
  const levels = linspace(0, 1, steps).map((x) => {
    const distance = fround(0.5 - x)
    const spread = fround(Math.log(fround(fround(1 - 2 * Math.abs(distance)) + LAPLACE_MARGIN)))
    const level = fround(Math.exp(fround(mu - fround(fround(beta * Math.sign(distance)) * spread))))
    return Math.min(Math.max(level, min), max)
  })
  return [...levels]
}
