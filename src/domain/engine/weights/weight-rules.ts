/** What may be put into a folder of models: which names, and which bytes. Pure, but for reading the bytes that came. */
import { readSegments } from '../../assets/create/file-path.ts'
import { checkSafetensorsHeader } from '../../assets/weights/safetensors-header.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import { isWeights } from '../../workflows/needs.ts'
import type { DraftBytes, WeightDraft, WeightPath } from './weight-store.ts'

export interface WeightRules {
  /** Kinds of files that can run code when they are loaded, or that cannot be checked, are taken, too. */
  readonly allowsPickles: boolean
}

const SAFETENSORS = /\.(?:safetensors|sft)$/i
const GGUF = /\.gguf$/i

/** Throws invalid_field. */
export function readWeightPath({ folder, name }: WeightPath): WeightPath {
  if (readSegments(folder, 'folder').length > 1) throw invalidField('folder', 'must be a single name')
  const segments = readSegments(name, 'name')
  if (segments.some((segment) => segment.startsWith('.')))
    throw invalidField('name', 'must not have a part that begins with a dot')
  if (!isWeights(name)) throw invalidField('name', 'must end like a file of weights, such as .safetensors')
  return { folder, name }
}

/** Throws invalid_field. */
export function mustBeAllowed({ name }: WeightPath, { allowsPickles }: WeightRules): void {
  if (SAFETENSORS.test(name) || GGUF.test(name) || allowsPickles) return
  throw invalidField(
    'name',
    'must end in .safetensors, .sft or .gguf: files of other kinds can run code when they are loaded, and this service takes them only with weightPickles on',
  )
}

/** Looks at the beginning of a file as soon as it is there, and is done then. Throws invalid_field. */
export interface WeightCheck {
  look(bytes: DraftBytes): Promise<void>
  /** All bytes have come. */
  end(): void
}

export function createWeightCheck(draft: WeightDraft): WeightCheck {
  const check = SAFETENSORS.test(draft.name) ? lookAtSafetensors : GGUF.test(draft.name) ? lookAtGguf : null
  let isDone = check === null
  return {
    async look(bytes) {
      if (!isDone && check !== null) isDone = await check(bytes, draft.sizeBytes)
    },
    end() {
      if (!isDone) throw refuse('it ends before its header does')
    },
  }
}

const LENGTH_BYTES = 8
const BRACE = 0x7b
// Of the largest models that are in use it has a few mebibytes; a larger one would hold up everybody else while it is read.
const MAX_HEADER_BYTES = 32 * 1024 * 1024

async function lookAtSafetensors(bytes: DraftBytes, sizeBytes: number): Promise<boolean> {
  if (bytes.lengthBytes < LENGTH_BYTES) return false
  const length = (await bytes.read(0, LENGTH_BYTES)).readBigUInt64LE(0)
  if (length < 2n || length > BigInt(MAX_HEADER_BYTES)) throw refuse('the length of its header is not possible')
  const headerBytes = Number(length)
  if (LENGTH_BYTES + headerBytes > sizeBytes) throw refuse('its header would be longer than the file')
  if (bytes.lengthBytes > LENGTH_BYTES && (await bytes.read(LENGTH_BYTES, 1))[0] !== BRACE)
    throw refuse('its header is not JSON')
  if (bytes.lengthBytes < LENGTH_BYTES + headerBytes) return false
  checkSafetensorsHeader(await bytes.read(LENGTH_BYTES, headerBytes), sizeBytes - LENGTH_BYTES - headerBytes)
  return true
}

const GGUF_START_BYTES = 8
const GGUF_VERSIONS = [2, 3]

async function lookAtGguf(bytes: DraftBytes): Promise<boolean> {
  if (bytes.lengthBytes < GGUF_START_BYTES) return false
  const start = await bytes.read(0, GGUF_START_BYTES)
  if (start.toString('latin1', 0, 4) !== 'GGUF' || !GGUF_VERSIONS.includes(start.readUInt32LE(4)))
    throw refuse('it does not begin like a GGUF file')
  return true
}

function refuse(problem: string): ServiceError {
  return new ServiceError('invalid_field', `the file is not what its name says: ${problem}; nothing of it was kept`, {
    details: { field: 'file' },
  })
}
