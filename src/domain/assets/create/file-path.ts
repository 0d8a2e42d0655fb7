/**
 * The path that an upload asks for: `photo.png`, `input/x.png`, `models/checkpoints/x.safetensors`. Checked once, before anything
 * is decided by it. What passes contains no way out of a folder, whichever system it may be joined on; still, only model
 * placement ever turns it into a path of a disk.
 */
import { invalidField, type RefusalDetails, type ServiceError } from '../../errors.ts'

const FILE_PATH_MAX_BYTES = 1024
const FILE_PATH_SEGMENT_MAX_BYTES = 255

/** Folders that a model may be placed in: those that hold weights, never those that hold code or settings. */
export const MODEL_ROOTS: readonly string[] = [
  'audio_encoders',
  'checkpoints',
  'classifiers',
  'clip',
  'clip_vision',
  'controlnet',
  'diffusers',
  'diffusion_models',
  'embeddings',
  'gligen',
  'hypernetworks',
  'latent_upscale_models',
  'loras',
  'model_patches',
  'photomaker',
  'style_models',
  't2i_adapter',
  'text_encoders',
  'unet',
  'upscale_models',
  'vae',
  'vae_approx',
]

const BARE_ROOTS: readonly string[] = ['input', 'output', 'temp', 'models']
const MODEL_SUFFIX = '.safetensors'
// Control characters, and those that change the direction of the text around them: a name must look like what it is.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are exactly what is refused
const UNSAFE = /[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/
const ONLY_DOTS = /^\.+$/
const DRIVE = /^[A-Za-z]:/

/** The model that a path names: `name` is relative to the root, as loaders list it. */
export interface ModelPath {
  readonly root: string
  readonly name: string
}

interface FilePath {
  readonly path: string
  /** null for everything that is not below `models/`. */
  readonly model: ModelPath | null
}

/** Throws `invalid_field`. */
export function readFilePath(path: string): FilePath {
  const segments = readSegments(path, 'file_path')
  if (segments.length === 1 && BARE_ROOTS.includes(path)) throw refuse('must name a file, not only a folder')
  return { path, model: segments[0] === 'models' ? readModel(segments) : null }
}

/** The parts of a relative path without any way out of its folder. Throws `invalid_field` about the field. */
export function readSegments(path: string, field: string): readonly string[] {
  const problem = findPathFault(path)
  if (problem !== null) throw invalidField(field, problem)
  return path.split('/')
}

function findPathFault(path: string): string | null {
  if (path === '') return 'must not be empty'
  if (Buffer.byteLength(path) > FILE_PATH_MAX_BYTES) return `must have at most ${FILE_PATH_MAX_BYTES} bytes`
  if (!path.isWellFormed() || UNSAFE.test(path)) return 'must not contain control characters'
  if (path.includes('\\')) return 'must use / and not \\ between its parts'
  if (path.startsWith('/') || DRIVE.test(path)) return 'must be relative'
  return (
    path
      .split('/')
      .map(findSegmentFault)
      .find((fault) => fault !== null) ?? null
  )
}

function findSegmentFault(segment: string): string | null {
  if (segment === '') return 'must not contain an empty part'
  if (ONLY_DOTS.test(segment)) return 'must not contain . or ..'
  const isLong = Buffer.byteLength(segment) > FILE_PATH_SEGMENT_MAX_BYTES
  return isLong ? `must have at most ${FILE_PATH_SEGMENT_MAX_BYTES} bytes in each part` : null
}

function readModel([, root = '', ...rest]: readonly string[]): ModelPath {
  if (!MODEL_ROOTS.includes(root)) {
    throw refuse('names a model folder that does not exist', { allowedRoots: MODEL_ROOTS })
  }
  const name = rest.join('/')
  if (name === '') throw refuse('must name a file, not only a folder')
  if (!name.endsWith(MODEL_SUFFIX) || name.length === MODEL_SUFFIX.length || name.endsWith(`/${MODEL_SUFFIX}`)) {
    throw refuse(`must end in ${MODEL_SUFFIX}: other model files can carry code`)
  }
  return { root, name }
}

function refuse(problem: string, details: RefusalDetails = {}): ServiceError {
  return invalidField('file_path', problem, details)
}
