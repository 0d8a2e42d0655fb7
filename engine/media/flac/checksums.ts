/** The two checksums of a FLAC frame: one byte over its header, two over all of it. */
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

export function crc8(bytes: Uint8Array): number {
  let value = 0
  for (const byte of bytes) value = CRC8[value ^ byte]
  return value
}

export function crc16(bytes: Uint8Array): number {
  let value = 0
  for (const byte of bytes) value = ((value << 8) & 0xffff) ^ CRC16[(value >> 8) ^ byte]
  return value
}
