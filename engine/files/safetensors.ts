/**
 * The safetensors format, as far as latents need it: a length, a JSON header that tells where each tensor lies, then the
 * tensors. A file is somebody's upload: nothing in its header is believed before it was checked against its size.
 */
import { type FileHandle, open } from 'node:fs/promises'
import { isJsonObject, type JsonObject, type JsonValue, parseLosslessJson } from '../../lib/json/lossless-json.ts'
import { NodeError } from '../node/node-error.ts'
import { elementCount, type PixelWork, type Tensor } from '../tensor/tensor.ts'
import type { FileTags } from './output-name.ts'

const LENGTH_BYTES = 8
// The format's own limit is a hundred megabytes; a latent's header holds little more than its workflow.
const MAX_HEADER_BYTES = 16_777_216
const MAX_RANK = 8
const READ_BYTES = 1_048_576

function damaged(problem: string): NodeError {
  return new NodeError('safetensors_rust.SafetensorError', `Error while deserializing header: ${problem}`)
}

interface Entry {
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly start: number
  readonly end: number
}

/** Half precision: one sign bit, five for the exponent, ten for the fraction. */
function readHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}

const widened = new DataView(new ArrayBuffer(4))

/** bfloat16 is the upper half of a float32. */
function readBrainFloat(bits: number): number {
  widened.setUint32(0, bits << 16)
  return widened.getFloat32(0)
}

const DTYPES = {
  F64: { bytes: 8, read: (view: DataView, at: number) => view.getFloat64(at, true) },
  F32: { bytes: 4, read: (view: DataView, at: number) => view.getFloat32(at, true) },
  F16: { bytes: 2, read: (view: DataView, at: number) => readHalf(view.getUint16(at, true)) },
  BF16: { bytes: 2, read: (view: DataView, at: number) => readBrainFloat(view.getUint16(at, true)) },
} as const
type Dtype = keyof typeof DTYPES

function isDtype(value: JsonValue | undefined): value is Dtype {
  return typeof value === 'string' && Object.hasOwn(DTYPES, value)
}

function isNatural(value: JsonValue): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function readEntry(value: JsonValue, dataBytes: number): Entry {
  const { dtype, shape, data_offsets: offsets } = isJsonObject(value) ? value : {}
  if (!isDtype(dtype)) throw damaged('a tensor has a type that cannot be read: use F64, F32, F16 or BF16')
  if (!Array.isArray(shape) || shape.length > MAX_RANK || !shape.every(isNatural)) throw damaged('InvalidShape')
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isNatural)) throw damaged('InvalidOffset')
  const [start, end] = offsets
  if (end < start || end > dataBytes) throw damaged('InvalidOffset')
  if (elementCount(shape) * DTYPES[dtype].bytes !== end - start) throw damaged('TensorInvalidInfo')
  return { dtype, shape, start, end }
}

async function readBytes(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  const { bytesRead } = await file.read(bytes, 0, length, position)
  if (bytesRead < length) throw damaged('MetadataIncompleteBuffer')
  return bytes
}

function parseHeader(bytes: Buffer): JsonObject {
  try {
    const header = parseLosslessJson(bytes.toString('utf8'))
    if (isJsonObject(header)) return header
  } catch {
    // falls through to the one failure for everything that is no JSON object
  }
  throw damaged('InvalidHeaderDeserialization')
}

interface OpenTensors extends AsyncDisposable {
  has(name: string): boolean
  /** As float32, whatever the file holds. Throws NodeError when there is no such tensor. */
  read(name: string, work: PixelWork): Promise<Tensor>
}

export async function openSafetensors(path: string): Promise<OpenTensors> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    if (size < LENGTH_BYTES) throw damaged('HeaderTooSmall')
    const headerBytes = Number((await readBytes(file, 0, LENGTH_BYTES)).readBigUInt64LE())
    if (headerBytes > MAX_HEADER_BYTES) throw damaged('HeaderTooLarge')
    const dataStart = LENGTH_BYTES + headerBytes
    if (dataStart > size) throw damaged('InvalidHeaderLength')
    const header = parseHeader(await readBytes(file, LENGTH_BYTES, headerBytes))
    return {
      has: (name) => Object.hasOwn(header, name),
      async read(name, { allocate, checkpoint }) {
        if (!Object.hasOwn(header, name)) throw new NodeError('KeyError', `'${name}'`)
        const { dtype, shape, start, end } = readEntry(header[name], size - dataStart)
        const result = allocate(shape)
        const { bytes: step, read } = DTYPES[dtype]
        for (let from = start, index = 0; from < end; from += READ_BYTES) {
          checkpoint()
          const part = await readBytes(file, dataStart + from, Math.min(READ_BYTES, end - from))
          const view = new DataView(part.buffer, part.byteOffset, part.length)
          for (let at = 0; at < part.length; at += step) result.data[index++] = read(view, at)
        }
        return result
      },
      [Symbol.asyncDispose]: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

interface SavedTensor {
  readonly name: string
  readonly shape: readonly number[]
  readonly data: Float32Array
}

/** A whole file; tensors lie in the order given. */
export function encodeSafetensors(tensors: readonly SavedTensor[], metadata: FileTags): Uint8Array<ArrayBuffer> {
  const header: Record<string, unknown> = metadata.length > 0 ? { __metadata__: Object.fromEntries(metadata) } : {}
  let offset = 0
  for (const { name, shape, data } of tensors) {
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, offset + data.byteLength] }
    offset += data.byteLength
  }
  const text = Buffer.from(JSON.stringify(header))
  // Spaces bring the tensors to a multiple of eight bytes, which readers that map the file rely on.
  const headerBytes = Math.ceil(text.length / LENGTH_BYTES) * LENGTH_BYTES
  const file = new Uint8Array(LENGTH_BYTES + headerBytes + offset)
  new DataView(file.buffer).setBigUint64(0, BigInt(headerBytes), true)
  file.fill(0x20, LENGTH_BYTES, LENGTH_BYTES + headerBytes)
  file.set(text, LENGTH_BYTES)
  let at = LENGTH_BYTES + headerBytes
  for (const { data } of tensors) {
    new Float32Array(file.buffer, at, data.length).set(data)
    at += data.byteLength
  }
  return file
}
