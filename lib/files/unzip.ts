/**
 * Unpacks a zip archive that came from outside. Every entry must stay in its folder, be a file or a folder, and have the size and
 * the check sum that the archive says; names, counts and sizes are bounded before anything is written. Links, encrypted entries and
 * archives beyond 4 GiB are refused. What was written before a fault is left to the caller to remove.
 */
import { createWriteStream } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { crc32, createInflateRaw } from 'node:zlib'

export class ZipError extends Error {}

interface UnzipLimits {
  readonly maxFiles: number
  readonly maxBytes: number
}

interface Entry {
  readonly name: string
  readonly method: number
  readonly crc: number
  readonly packedBytes: number
  readonly sizeBytes: number
  readonly offset: number
}

const END_BYTES = 22
const MAX_COMMENT = 65_535
const END_MARK = 0x06054b50
const CENTRAL_MARK = 0x02014b50
const CENTRAL_BYTES = 46
const LOCAL_MARK = 0x04034b50
const LOCAL_BYTES = 30
const MAX_DIRECTORY_BYTES = 64 * 1024 * 1024
const MAX_NAME = 1024
const ENCRYPTED = 0x1
const [STORED, DEFLATED] = [0, 8]
const [FILE_TYPE, DIRECTORY, REGULAR] = [0o170000, 0o040000, 0o100000]

/** Into `folder`, which exists. A single folder around everything is left out when `unwrap` says so. Throws ZipError. */
export async function unzip(
  path: string,
  folder: string,
  { limits, unwrap }: { readonly limits: UnzipLimits; readonly unwrap: (names: readonly string[]) => boolean },
): Promise<void> {
  await using file = await open(path, 'r')
  const entries = await readEntries(file, limits)
  const names = entries.map(({ name }) => name)
  const around = unwrap(names) ? commonFolder(names) : ''
  for (const entry of entries) {
    const inside = entry.name.slice(around.length)
    if (inside === '') continue
    const to = join(folder, inside)
    try {
      await mkdir(inside.endsWith('/') ? to : dirname(to), { recursive: true })
      if (!inside.endsWith('/')) await writeEntry(file, entry, to)
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : ''
      if (['EEXIST', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG'].includes(code))
        throw new ZipError(
          `${JSON.stringify(entry.name)} cannot be a file there: it is a folder, too, or its name is too long`,
        )
      throw error
    }
  }
}

/** `name/` when all entries lie in one folder, else nothing. */
function commonFolder(names: readonly string[]): string {
  const first = `${names[0]?.split('/')[0]}/`
  return names.every((name) => name.startsWith(first)) ? first : ''
}

async function readEntries(file: FileHandle, { maxFiles, maxBytes }: UnzipLimits): Promise<readonly Entry[]> {
  const { size } = await file.stat()
  const tail = await readAt(file, Math.max(0, size - END_BYTES - MAX_COMMENT), Math.min(size, END_BYTES + MAX_COMMENT))
  let at = tail.length - END_BYTES
  while (at >= 0 && tail.readUInt32LE(at) !== END_MARK) at--
  if (at < 0) throw new ZipError('it is no zip archive, or a part of one')
  const [count, bytes, start] = [tail.readUInt16LE(at + 10), tail.readUInt32LE(at + 12), tail.readUInt32LE(at + 16)]
  if (count === 0xffff || start === 0xffffffff) throw new ZipError('it is larger than the 4 GiB that are taken')
  if (count > maxFiles) throw new ZipError(`it has ${count} entries; at most ${maxFiles} are taken`)
  if (bytes > MAX_DIRECTORY_BYTES || start + bytes > size) throw new ZipError('its list of files is not whole')
  const directory = await readAt(file, start, bytes)
  const entries: Entry[] = []
  let [offset, total] = [0, 0]
  const seen = new Set<string>()
  for (let index = 0; index < count; index++) {
    const { entry, next } = readEntry(directory, offset)
    offset = next
    total += entry.sizeBytes
    if (total > maxBytes) throw new ZipError(`it would unpack to more than the ${maxBytes} bytes that are taken`)
    const key = entry.name.toLowerCase()
    if (seen.has(key)) throw new ZipError(`it has ${JSON.stringify(entry.name)} twice`)
    seen.add(key)
    entries.push(entry)
  }
  return entries
}

function readEntry(directory: Buffer, at: number): { readonly entry: Entry; readonly next: number } {
  if (at + CENTRAL_BYTES > directory.length || directory.readUInt32LE(at) !== CENTRAL_MARK)
    throw new ZipError('its list of files is not whole')
  const nameBytes = directory.readUInt16LE(at + 28)
  const next = at + CENTRAL_BYTES + nameBytes + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32)
  const name = directory.toString('utf8', at + CENTRAL_BYTES, at + CENTRAL_BYTES + nameBytes)
  mustStayInside(name)
  const shown = JSON.stringify(name)
  if ((directory.readUInt16LE(at + 8) & ENCRYPTED) !== 0) throw new ZipError(`${shown} is encrypted`)
  const method = directory.readUInt16LE(at + 10)
  if (method !== STORED && method !== DEFLATED) throw new ZipError(`${shown} is packed in a way that is not taken`)
  // The mode of systems with links stands in the upper half; archives of others have nothing there.
  const type = (directory.readUInt32LE(at + 38) >>> 16) & FILE_TYPE
  if (type !== 0 && type !== REGULAR && type !== DIRECTORY) throw new ZipError(`${shown} is a link or a device`)
  return {
    entry: {
      ...{ name, method },
      crc: directory.readUInt32LE(at + 16),
      packedBytes: directory.readUInt32LE(at + 20),
      sizeBytes: directory.readUInt32LE(at + 24),
      offset: directory.readUInt32LE(at + 42),
    },
    next,
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const UNSAFE = /[\u0000-\u001f\u007f\\:]/

function mustStayInside(name: string): void {
  const segments = name.replace(/\/$/, '').split('/')
  const isUnsafe =
    name.length > MAX_NAME || UNSAFE.test(name) || segments.some((part) => part === '' || part === '.' || part === '..')
  if (isUnsafe) throw new ZipError(`${JSON.stringify(name.slice(0, 100))} is no name of a file inside the archive`)
}

async function writeEntry(file: FileHandle, entry: Entry, to: string): Promise<void> {
  const shown = JSON.stringify(entry.name)
  const head = await readAt(file, entry.offset, LOCAL_BYTES)
  if (head.readUInt32LE(0) !== LOCAL_MARK) throw new ZipError(`${shown} is not where the archive says`)
  const start = entry.offset + LOCAL_BYTES + head.readUInt16LE(26) + head.readUInt16LE(28)
  const packed = Readable.from(readRange(file, start, entry.packedBytes))
  let [written, crc] = [0, 0]
  const check = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      written += chunk.length
      crc = crc32(chunk, crc)
      // A bomb unpacks to more than it says.
      done(written > entry.sizeBytes ? new ZipError(`${shown} is larger than the archive says`) : null, chunk)
    },
  })
  const out = createWriteStream(to, { flags: 'wx', mode: 0o644 })
  try {
    if (entry.method === DEFLATED) await pipeline(packed, createInflateRaw(), check, out)
    else await pipeline(packed, check, out)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    throw code.startsWith('Z_') ? new ZipError(`${shown} is damaged`) : error
  }
  if (written !== entry.sizeBytes || crc !== entry.crc) throw new ZipError(`${shown} is damaged`)
}

const CHUNK_BYTES = 256 * 1024

async function* readRange(file: FileHandle, start: number, length: number): AsyncGenerator<Buffer> {
  for (let done = 0; done < length; ) {
    const chunk = await readAt(file, start + done, Math.min(CHUNK_BYTES, length - done))
    yield chunk
    done += chunk.length
  }
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position)
  if (bytesRead < length) throw new ZipError('it ends too early')
  return buffer
}
