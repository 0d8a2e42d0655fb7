/** Small real PNG files: one colour, one size. The same picture always has the same bytes. */
import { crc32, deflateSync } from 'node:zlib'

export interface Picture {
  readonly width: number
  readonly height: number
  readonly color: number
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const head = Buffer.alloc(4)
  head.writeUInt32BE(data.length)
  const tail = Buffer.alloc(4)
  tail.writeUInt32BE(crc32(body))
  return Buffer.concat([head, body, tail])
}

/** `text`: written into it as ComfyUI writes the prompt. */
export function toPng({ width, height, color }: Picture, text?: string): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const row = Buffer.alloc(1 + width * 3)
  for (let x = 0; x < width; x++) row.writeUIntBE(color & 0xffffff, 1 + x * 3, 3)
  const pixels = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)), { level: 1 })
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  const texts = text === undefined ? [] : [chunk('tEXt', Buffer.from(`prompt\0${text}`, 'latin1'))]
  const parts = [chunk('IHDR', header), ...texts, chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([signature, ...parts])
}
