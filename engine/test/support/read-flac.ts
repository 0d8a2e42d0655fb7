/** A FLAC file read back: enough of the format for what our encoder writes, checksums and digest included. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'

export interface FlacFile {
  readonly sampleRate: number
  readonly channels: readonly (readonly number[])[]
  readonly comments: readonly string[]
}

class BitReader {
  readonly bytes: Buffer
  bit: number
  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    this.bit = at * 8
  }
  read(count: number): number {
    let value = 0
    for (let i = 0; i < count; i++, this.bit++) {
      value = value * 2 + ((this.bytes[this.bit >> 3] >> (7 - (this.bit & 7))) & 1)
    }
    return value
  }
  readSigned(count: number): number {
    const value = this.read(count)
    return value >= 2 ** (count - 1) ? value - 2 ** count : value
  }
  align(): number {
    this.bit = Math.ceil(this.bit / 8) * 8
    return this.bit / 8
  }
}

function remainder(bytes: Buffer, bits: 8 | 16, polynomial: number): number {
  let value = 0
  for (const byte of bytes) {
    value ^= byte << (bits - 8)
    for (let i = 0; i < 8; i++) value = value & (1 << (bits - 1)) ? (value << 1) ^ polynomial : value << 1
    value &= 2 ** bits - 1
  }
  return value
}

const FIXED = [[], [1], [2, -1], [3, -3, 1], [4, -6, 4, -1]]

function readResidual(bits: BitReader, order: number, size: number): number[] {
  assert.equal(bits.read(2), 0)
  const partitions = 2 ** bits.read(4)
  const residual: number[] = []
  for (let part = 0; part < partitions; part++) {
    const parameter = bits.read(4)
    const count = size / partitions - (part === 0 ? order : 0)
    for (let i = 0; i < count; i++) {
      let quotient = 0
      while (bits.read(1) === 0) quotient++
      const code = quotient * 2 ** parameter + bits.read(parameter)
      residual.push(code % 2 === 0 ? code / 2 : -(code + 1) / 2)
    }
  }
  return residual
}

function readSubframe(bits: BitReader, size: number, sampleBits: number): number[] {
  const type = bits.read(8) >> 1
  if (type === 0)
    return Array.from(
      { length: size },
      (
        (sample) => () =>
          sample
      )(bits.readSigned(sampleBits)),
    )
  if (type === 1) return Array.from({ length: size }, () => bits.readSigned(sampleBits))
  const order = type - 8
  const samples = Array.from({ length: order }, () => bits.readSigned(sampleBits))
  for (const left of readResidual(bits, order, size)) {
    const at = samples.length
    samples.push(left + FIXED[order].reduce((sum, weight, back) => sum + weight * samples[at - 1 - back], 0))
  }
  return samples
}

const BLOCK_SIZES: Readonly<Record<number, number>> = { 12: 4096 }
const EXTRA_RATE_BITS: Readonly<Record<number, number>> = { 13: 16, 14: 16 }

function readFrame(bytes: Buffer, at: number, number: number, count: number): { channels: number[][]; end: number } {
  const bits = new BitReader(bytes, at)
  assert.equal(bits.read(16), 0xfff8)
  const [sizeCode, rateCode, layout] = [bits.read(4), bits.read(4), bits.read(4)]
  bits.read(4)
  const lead = bits.read(8)
  const more = lead < 0x80 ? 0 : Math.clz32(~(lead << 24)) - 1
  let coded = more === 0 ? lead : lead & (0x3f >> more)
  for (let i = 0; i < more; i++) coded = coded * 64 + (bits.read(8) & 0x3f)
  assert.equal(coded, number)
  const size = BLOCK_SIZES[sizeCode] ?? bits.read(16) + 1
  bits.read(EXTRA_RATE_BITS[rateCode] ?? 0)
  assert.equal(remainder(bytes.subarray(at, bits.bit / 8), 8, 0x107), bits.read(8))
  const sideAt = { 8: 1, 9: 0, 10: 1 }[layout] ?? -1
  const raw = Array.from({ length: count }, (_, index) => readSubframe(bits, size, index === sideAt ? 17 : 16))
  const end = bits.align()
  assert.equal(remainder(bytes.subarray(at, end), 16, 0x18005), bytes.readUInt16BE(end))
  return { channels: unite(raw, layout), end: end + 2 }
}

function unite([a, b, ...others]: number[][], layout: number): number[][] {
  if (layout === 8) return [a, a.map((left, i) => left - b[i])]
  if (layout === 9) return [b.map((right, i) => right + a[i]), b]
  if (layout !== 10) return b === undefined ? [a] : [a, b, ...others]
  const doubled = a.map((middle, i) => middle * 2 + (b[i] & 1))
  return [doubled.map((sum, i) => (sum + b[i]) / 2), doubled.map((sum, i) => (sum - b[i]) / 2)]
}

function readComments(block: Buffer): string[] {
  let at = 0
  const text = () => {
    const length = block.readUInt32LE(at)
    at += 4 + length
    return block.toString('utf8', at - length, at)
  }
  text()
  const count = block.readUInt32LE(at)
  at += 4
  return Array.from({ length: count }, text)
}

export function readFlac(bytes: Buffer): FlacFile {
  assert.equal(bytes.toString('latin1', 0, 4), 'fLaC')
  let at = 4
  const blocks = new Map<number, Buffer>()
  for (let isLast = false; !isLast; ) {
    isLast = (bytes[at] & 0x80) !== 0
    const length = bytes.readUIntBE(at + 1, 3)
    blocks.set(bytes[at] & 0x7f, bytes.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  const info = blocks.get(0) as Buffer
  const facts = info.readBigUInt64BE(10)
  const count = Number((facts >> 41n) & 7n) + 1
  const channels: number[][] = Array.from({ length: count }, () => [])
  for (let number = 0; at < bytes.length; number++) {
    const frame = readFrame(bytes, at, number, count)
    frame.channels.forEach((samples, index) => {
      for (const sample of samples) channels[index].push(sample)
    })
    at = frame.end
  }
  assert.equal(channels[0].length, Number(facts & 0xf_ffff_ffffn))
  const pcm = Buffer.from(Int16Array.from(channels[0].flatMap((_, i) => channels.map((samples) => samples[i]))).buffer)
  assert.equal(createHash('md5').update(pcm).digest('hex'), info.toString('hex', 18, 34))
  return { sampleRate: Number(facts >> 44n), channels, comments: readComments(blocks.get(4) as Buffer) }
}
