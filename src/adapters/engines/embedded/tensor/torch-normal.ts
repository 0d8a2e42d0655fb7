/**
 * Normally distributed numbers as `torch.randn` draws them on a CPU, so that a seed gives the same picture here and there.
 * PyTorch has two ways: blocks of 16 for long tensors, pairs in double precision for short ones.
 */
import { BLOCK_ELEMENTS } from './map-pixels.ts'
import { createMt19937, type NextBits } from './mt19937.ts'

const BLOCK = 16
const HALF = BLOCK / 2
const TWO_PI = 2 * Math.PI
const FLOAT_BITS = 0xff_ffff
const FLOAT_STEP = 2 ** -24

function fillUniform(out: Float32Array, next: NextBits, { start, end }: { start: number; end: number }): void {
  for (let i = start; i < end; i++) out[i] = (next() & FLOAT_BITS) * FLOAT_STEP
}

/** Turns 16 uniform numbers into normal ones, in place: each of the first 8 with its partner 8 places on. */
function transformBlock(out: Float32Array, start: number): void {
  for (let i = start; i < start + HALF; i++) {
    const radius = Math.sqrt(-2 * Math.log(1 - out[i]))
    const angle = TWO_PI * out[i + HALF]
    out[i] = radius * Math.cos(angle)
    out[i + HALF] = radius * Math.sin(angle)
  }
}

function fillLong(out: Float32Array, next: NextBits, checkpoint: () => void): void {
  for (let start = 0; start < out.length; start += BLOCK_ELEMENTS) {
    checkpoint()
    fillUniform(out, next, { start, end: Math.min(start + BLOCK_ELEMENTS, out.length) })
  }
  for (let start = 0; start + BLOCK <= out.length; start += BLOCK) {
    if (start % BLOCK_ELEMENTS === 0) checkpoint()
    transformBlock(out, start)
  }
  if (out.length % BLOCK === 0) return
  // A remainder is not transformed alone: the last 16 places are drawn anew.
  const start = out.length - BLOCK
  fillUniform(out, next, { start, end: out.length })
  transformBlock(out, start)
}

/** A number of 53 bits in 0..1. The first draw gives the high bits. */
function nextDouble(next: NextBits): number {
  const high = next() & 0x1f_ffff
  return (high * 2 ** 32 + next()) * 2 ** -53
}

function fillShort(out: Float32Array, next: NextBits): void {
  for (let i = 0; i < out.length; i += 2) {
    const angle = TWO_PI * nextDouble(next)
    const radius = Math.sqrt(-2 * Math.log(1 - nextDouble(next)))
    out[i] = radius * Math.cos(angle)
    if (i + 1 < out.length) out[i + 1] = radius * Math.sin(angle)
  }
}

/** Fills `out` with mean 0 and deviation 1. */
export function fillNormal(out: Float32Array, seed: number | bigint, { checkpoint }: { checkpoint(): void }): void {
  const next = createMt19937(seed)
  if (out.length >= BLOCK) fillLong(out, next, checkpoint)
  else fillShort(out, next)
}
