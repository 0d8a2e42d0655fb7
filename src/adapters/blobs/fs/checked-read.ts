/**
 * Reads stored bytes and compares them with their hash on the way. The last chunk is let through only when all of them were
 * right: whoever reads bytes that were damaged on the disk sees a stream that breaks off, never a whole one that is wrong.
 */
import fs from 'node:fs'
import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { promisify } from 'node:util'
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Blake3 } from '../../../../lib/files/blake3.ts'
import type { ByteRange } from '../../../domain/assets/blob-store.ts'
import { ServiceError } from '../../../domain/errors.ts'

const readFile = promisify(fs.readFile)
// Read ahead of a client; it bounds what a stalled download holds.
const READ_BYTES = 256 * 1024
// Up to this size bytes are compared with every read; hashing them costs less than sending them.
const SMALL_BYTES = 16 * 1024 * 1024
// Larger ones are not compared again for a while, unless their file was touched.
const TRUSTED_FOR_MS = 3_600_000
const MAX_TRUSTED = 4_096

export interface StoredFile {
  readonly path: string
  readonly fd: number
  readonly hash: string
  readonly sizeBytes: number
  /** Changes whenever the file does. */
  readonly mark: string
}

interface CheckedReads {
  /** Takes the open file over. Throws when the bytes are known to be damaged before the first of them is needed. */
  open(file: StoredFile, range?: ByteRange): Promise<Readable>
}

interface CheckedReadDeps {
  readonly blake3: Blake3
  onDamage(hash: string): void
  /** Called for every chunk that was read from a file larger than one chunk. */
  onTransferred(bytes: number): void
  readonly nowMs?: () => number
}

export function createCheckedReads(deps: CheckedReadDeps): CheckedReads {
  const { blake3, onDamage, onTransferred, nowMs = Date.now } = deps
  const trusted = new BoundedMap<string, { readonly mark: string; readonly untilMs: number }>(MAX_TRUSTED)

  function isTrusted({ hash, mark }: StoredFile): boolean {
    const known = trusted.get(hash)
    return known !== undefined && known.mark === mark && known.untilMs > nowMs()
  }

  function trust({ hash, mark }: StoredFile): void {
    trusted.set(hash, { mark, untilMs: nowMs() + TRUSTED_FOR_MS })
  }

  /** One read, judged before anybody gets the first byte. */
  async function readAtOnce({ fd, hash, sizeBytes }: StoredFile, range?: ByteRange): Promise<Readable> {
    let bytes: Buffer
    try {
      bytes = await readFile(fd)
    } finally {
      fs.closeSync(fd)
    }
    if (bytes.length !== sizeBytes || blake3.hash(bytes) !== hash) {
      onDamage(hash)
      throw damaged()
    }
    return Readable.from([range === undefined ? bytes : bytes.subarray(range.start, range.end + 1)], {
      objectMode: false,
    })
  }

  const check = (file: StoredFile) =>
    readChecked(file, {
      blake3,
      onDamage,
      onTransferred,
      onWhole: () => (file.sizeBytes > SMALL_BYTES ? trust(file) : undefined),
    })

  function readPlain({ path, fd }: StoredFile, range?: ByteRange): Readable {
    const stream = fs.createReadStream(path, { fd, ...range, highWaterMark: READ_BYTES })
    stream.on('data', (chunk) => onTransferred(chunk.length))
    return stream.pause()
  }

  return {
    async open(file, range) {
      if (file.sizeBytes > SMALL_BYTES)
        return range !== undefined || isTrusted(file) ? readPlain(file, range) : check(file)
      if (file.sizeBytes <= READ_BYTES) return readAtOnce(file, range)
      if (range === undefined) return check(file)
      // A part says nothing about the whole, so the whole is looked at first.
      await finished(check({ ...file, fd: fs.openSync(file.path, 'r') }).resume())
      return readPlain(file, range)
    },
  }
}

function damaged(): ServiceError {
  return new ServiceError('output_unavailable', 'the stored bytes are damaged; trying again does not help')
}

interface CheckOptions extends Omit<CheckedReadDeps, 'nowMs'> {
  onWhole(): void
}

function readChecked({ path, fd, hash, sizeBytes }: StoredFile, options: CheckOptions): Readable {
  const { blake3, onDamage, onTransferred, onWhole } = options
  const stream = fs.createReadStream(path, { fd, highWaterMark: READ_BYTES })
  const hasher = blake3.createHasher()
  let leftBytes = sizeBytes

  function breakOff(): false {
    onDamage(hash)
    stream.destroy(damaged())
    return false
  }

  // Every chunk of the file passes through here on its way to the reader.
  const passOn = stream.push.bind(stream)
  const check = (chunk: Buffer | null): boolean => {
    if (chunk === null) return leftBytes > 0 ? breakOff() : passOn(null)
    onTransferred(chunk.length)
    hasher.update(chunk)
    leftBytes -= chunk.length
    if (leftBytes > 0) return passOn(chunk)
    if (leftBytes < 0 || hasher.digest() !== hash) return breakOff()
    onWhole()
    return passOn(chunk)
  }
  stream.push = check
  return stream
}
