/** One block of all channels as a FLAC frame. Two channels are stored as they are, or as one of them and the difference. */
import type { BitWriter } from './bit-writer.ts'
import { type Plan, planSubframe, writeSubframe } from './subframe.ts'

export const SAMPLE_BITS = 16
export const BLOCK_SIZE = 4096

interface Layout {
  /** The field of the header that names it. */
  readonly code: number
  readonly channels: readonly { readonly samples: Int32Array; readonly plan: Plan; readonly sampleBits: number }[]
}

function planned(samples: Int32Array, sampleBits = SAMPLE_BITS) {
  return { samples, plan: planSubframe(samples, sampleBits), sampleBits }
}

const bitsOf = ({ channels }: Layout) => channels.reduce((sum, { plan }) => sum + plan.bits, 0)

function stereoLayouts(left: Int32Array, right: Int32Array): Layout[] {
  const [first, second] = [planned(left), planned(right)]
  // A difference may need one bit more than what it is made of.
  const side = planned(
    left.map((sample, i) => sample - right[i]),
    SAMPLE_BITS + 1,
  )
  const middle = planned(left.map((sample, i) => (sample + right[i]) >> 1))
  return [
    { code: 1, channels: [first, second] },
    { code: 8, channels: [first, side] },
    { code: 9, channels: [side, second] },
    { code: 10, channels: [middle, side] },
  ]
}

function chooseLayout(channels: readonly Int32Array[]): Layout {
  if (channels.length !== 2) return { code: channels.length - 1, channels: channels.map((part) => planned(part)) }
  return stereoLayouts(channels[0], channels[1]).reduce((best, next) => (bitsOf(next) < bitsOf(best) ? next : best))
}

/** The number of the frame, in the form that UTF-8 gave to character codes. */
function writeNumber(out: BitWriter, number: number): void {
  if (number < 0x80) {
    out.write(number, 8)
    return
  }
  const bits = 32 - Math.clz32(number)
  // n bytes hold 5n + 1 bits.
  const more = Math.ceil((bits - 1) / 5) - 1
  out.write((0xff00 >> (more + 1)) | (number >>> (6 * more)), 8)
  for (let left = more - 1; left >= 0; left--) out.write(0x80 | ((number >>> (6 * left)) & 0x3f), 8)
}

const COMMON_RATES: readonly number[] = [
  0, 88_200, 176_400, 192_000, 8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000,
]
const RATE_IN_HERTZ_CODE = 0b1101
const RATE_IN_TENS_CODE = 0b1110

/** Every frame names the rate, so that a reader may start anywhere; 0 refers to the header of the stream. */
function rateField(sampleRate: number): { code: number; value: number | null } {
  const code = COMMON_RATES.indexOf(sampleRate)
  if (code > 0) return { code, value: null }
  if (sampleRate < 65_536) return { code: RATE_IN_HERTZ_CODE, value: sampleRate }
  const tens = sampleRate / 10
  if (Number.isInteger(tens) && tens < 65_536) return { code: RATE_IN_TENS_CODE, value: tens }
  return { code: 0, value: null }
}

const FULL_BLOCK_CODE = 0b1100
const SHORT_BLOCK_CODE = 0b0111
const SAMPLE_BITS_CODE = 0b100

interface FrameFacts {
  readonly number: number
  readonly sampleRate: number
}

/** The frame's bytes; valid until the writer is used again. */
export function writeFrame(
  out: BitWriter,
  channels: readonly Int32Array[],
  { number, sampleRate }: FrameFacts,
): Uint8Array {
  const layout = chooseLayout(channels)
  const size = channels[0].length
  const rate = rateField(sampleRate)
  out.reset()
  out.write(0xfff8, 16)
  out.write(size === BLOCK_SIZE ? FULL_BLOCK_CODE : SHORT_BLOCK_CODE, 4)
  out.write(rate.code, 4)
  out.write(layout.code, 4)
  out.write(SAMPLE_BITS_CODE << 1, 4)
  writeNumber(out, number)
  if (size !== BLOCK_SIZE) out.write(size - 1, 16)
  if (rate.value !== null) out.write(rate.value, 16)
  out.write(crc8(out.bytes()), 8)
  for (const { samples, plan, sampleBits } of layout.channels) writeSubframe(out, samples, plan, sampleBits)
  out.align()
  out.write(crc16(out.bytes()), 16)
  return out.bytes()
}

/** A frame has two checksums: one byte over its header, two over all of it. */
function tableOf(polynomial: number, bits: 8 | 16): Uint16Array {
  const top = 1 << (bits - 1)
  return Uint16Array.from({ length: 256 }, (_, byte) => {
    let value = byte << (bits - 8)
    for (let bit = 0; bit < 8; bit++) value = value & top ? (value << 1) ^ polynomial : value << 1
    return value & (2 ** bits - 1)
  })
}

const CRC8 = tableOf(0x07, 8)
const CRC16 = tableOf(0x8005, 16)

function crc8(bytes: Uint8Array): number {
  let value = 0
  for (const byte of bytes) value = CRC8[value ^ byte]
  return value
}

function crc16(bytes: Uint8Array): number {
  let value = 0
  for (const byte of bytes) value = ((value << 8) & 0xffff) ^ CRC16[(value >> 8) ^ byte]
  return value
}
