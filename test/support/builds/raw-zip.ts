/** A zip archive field by field, so that any of them can lie. */
import { crc32, deflateRawSync } from 'node:zlib'

export interface RawEntry {
  readonly name: string
  readonly data: string | Buffer
  /** Of Unix; left out: a file. */
  readonly mode?: number
  readonly isDeflated?: boolean
  /** What the archive says instead of the truth. */
  readonly says?: { readonly sizeBytes?: number; readonly crc?: number }
}

export function rawZip(entries: readonly RawEntry[]): Buffer {
  const [files, directory]: [Buffer[], Buffer[]] = [[], []]
  let offset = 0
  for (const { name, data, mode = 0o100644, isDeflated = false, says = {} } of entries) {
    const bytes = Buffer.from(data)
    const packed = isDeflated ? deflateRawSync(bytes) : bytes
    const shared = Buffer.alloc(26)
    shared.writeUInt16LE(20, 0)
    shared.writeUInt16LE(isDeflated ? 8 : 0, 4)
    shared.writeUInt16LE(0x21, 8)
    shared.writeUInt32LE(says.crc ?? crc32(bytes), 10)
    shared.writeUInt32LE(packed.length, 14)
    shared.writeUInt32LE(says.sizeBytes ?? bytes.length, 18)
    shared.writeUInt16LE(Buffer.byteLength(name), 22)
    const tail = Buffer.alloc(14)
    tail.writeUInt32LE((mode << 16) >>> 0, 6)
    tail.writeUInt32LE(offset, 10)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), shared, Buffer.from(name), packed])
    files.push(local)
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.from([20, 3]), shared, tail, Buffer.from(name)]))
    offset += local.length
  }
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 0, 'latin1')
  end.writeUInt16LE(entries.length, 8)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(Buffer.concat(directory).length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...files, ...directory, end])
}
