/** The free texts in the header of a safetensors file. The tensors behind the header are never read. */
import type { BoundedReader } from './byte-source.ts'

const LENGTH_BYTES = 8
const MAX_HEADER_BYTES = 33_554_432

export function readSafetensorsTexts(reader: BoundedReader): Map<string, string> {
  const texts = new Map<string, string>()
  const length = Number(reader.read(0, LENGTH_BYTES).readBigUInt64LE(0))
  if (length > MAX_HEADER_BYTES) return texts
  try {
    const header = JSON.parse(reader.read(LENGTH_BYTES, length).toString('utf8')) as Record<string, unknown>
    const metadata = header['__metadata__']
    if (typeof metadata !== 'object' || metadata === null) return texts
    for (const [name, text] of Object.entries(metadata)) if (typeof text === 'string') texts.set(name, text)
  } catch (error) {
    // A header that is no JSON says nothing.
    if (!(error instanceof SyntaxError)) throw error
  }
  return texts
}
