/** What may be put into a folder of models: which names, and which bytes. Pure, but for reading the bytes that came. */
import { readSegments } from '../../assets/create/file-path.ts'
import { checkSafetensorsHeader } from '../../assets/weights/safetensors-header.ts'
import { invalidField, ServiceError } from '../../errors.ts'
import type { ServiceNode } from '../../service-nodes/node-store.ts'
import { isWeights } from '../../workflows/needs.ts'
import type { ListedEngine } from '../directory/engine-directory.ts'
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

/**
 * What to say about weights of an engine whose disk this process cannot write: an upload must reach the process that launched the
 * engine, so the refusal names that process and its address.
 */

/** The processes of the service that live, this one included. */
export type FindNodes = () => Promise<readonly Pick<ServiceNode, 'id' | 'about'>[]>

type Launched = Pick<ListedEngine, 'id' | 'isSupervised' | 'drivenBy'>

/** For an engine that the request names. */
export async function refuseEngine(engine: Launched, findNodes: FindNodes): Promise<never> {
  if (!engine.isSupervised) {
    const problem = 'was not launched by this service, so its disk cannot be written; put the file there by hand'
    throw invalidField('engine', problem, { driven_by: engine.drivenBy })
  }
  const { text, details } = await describe(engine, findNodes)
  throw invalidField('engine', `was launched by ${text}`, details)
}

/** For a request that names no engine, where none was launched here. */
export async function refuseAll(engines: readonly Launched[], findNodes: FindNodes): Promise<never> {
  const engine = engines.find(({ isSupervised }) => isSupervised)
  if (engine === undefined) {
    throw new ServiceError('not_found', 'this process has launched no engine (comfyuiLaunch)')
  }
  const { text, details } = await describe(engine, findNodes)
  throw new ServiceError('not_found', `this process has launched no engine; ${engine.id} was launched by ${text}`, {
    details: { engine: engine.id, ...details },
  })
}

export async function refuseUpload(findNodes: FindNodes): Promise<never> {
  const isAlone = (await findNodes()).length < 2
  const hint = isAlone ? '' : ' in this process; an upload is known to the process that launched its engine'
  throw new ServiceError('not_found', `there is no upload with this id${hint}`)
}

async function describe({ drivenBy }: Launched, findNodes: FindNodes) {
  const about = (await findNodes()).find(({ id }) => id === drivenBy)?.about
  const details = { driven_by: drivenBy, host: about?.host ?? null, url: about?.url ?? null }
  if (about === undefined) {
    return { text: 'another process of the service, which is away just now; try again later', details }
  }
  const name = `process ${drivenBy} on ${about.host}`
  if (about.role === 'worker') {
    const remedy = 'put the file there by hand, or launch the engine in a process with the role all'
    return { text: `${name}, a worker that takes no requests; ${remedy}`, details }
  }
  return { text: `${name}; send the request to it${about.url === undefined ? '' : ` (${about.url})`}`, details }
}
