/**
 * Why a run failed, in the words of this surface: the name from the contract where the cause has one, otherwise the class of
 * the node's own exception. Pure. The history and the socket both use it, so that they agree.
 */
import type { JobError } from '../../../domain/jobs/job.ts'

/** The names that the contract lists. */
type ExceptionType =
  | 'ValidationError'
  | 'ModelDownloadError'
  | 'ImageDownloadError'
  | 'OOMError'
  | 'InsufficientFundsError'
  | 'InactiveSubscriptionError'

const OF_CODE: Readonly<Record<string, ExceptionType>> = {
  invalid_workflow: 'ValidationError',
  missing_node_type: 'ValidationError',
  missing_node_class: 'ValidationError',
  validation_failed: 'ValidationError',
  engine_rejected: 'ValidationError',
  input_too_large: 'ValidationError',
  missing_model: 'ModelDownloadError',
  missing_weights: 'ModelDownloadError',
  model_unavailable: 'ModelDownloadError',
  model_download_failed: 'ModelDownloadError',
  missing_asset: 'ImageDownloadError',
  input_unavailable: 'ImageDownloadError',
  image_download_failed: 'ImageDownloadError',
  out_of_memory: 'OOMError',
  insufficient_credits: 'InsufficientFundsError',
  subscription_inactive: 'InactiveSubscriptionError',
}

const OF_EXCEPTION: readonly (readonly [RegExp, ExceptionType])[] = [
  [/(^|\.)(OutOfMemoryError|MemoryError|OOM_EXCEPTION)$/, 'OOMError'],
]

/** `engineType` is the engine's own exception name, such as `torch.OutOfMemoryError`; null when it gave none. */
export function toExceptionType(error: Pick<JobError, 'code'>, engineType: string | null): string {
  const known = Object.hasOwn(OF_CODE, error.code) ? OF_CODE[error.code] : undefined
  if (known !== undefined) return known
  if (engineType === null || engineType === error.code) return 'ServiceError'
  if (CONTRACT_NAMES.has(engineType)) return engineType
  return OF_EXCEPTION.find(([pattern]) => pattern.test(engineType))?.[1] ?? engineType
}

const CONTRACT_NAMES: ReadonlySet<string> = new Set<ExceptionType>([
  'ValidationError',
  'ModelDownloadError',
  'ImageDownloadError',
  'OOMError',
  'InsufficientFundsError',
  'InactiveSubscriptionError',
])

// Frames inside this service, as its engine writes them: callers must not see our source files.
const OWN_FRAME = /^\s+in .+, \S+\.ts line \d+$/

/** Lines with their line ends, without those that lead through our own source. */
export function toTraceback(traceback: string | null): string[] {
  if (traceback === null) return []
  return traceback
    .split('\n')
    .filter((line) => line !== '' && !OWN_FRAME.test(line))
    .map((line) => `${line}\n`)
}

/** The node that an end is about; empty texts where there is none, because the editor refuses null. */
export function toNodeNames(nodeId: string | null, classType: string | null): { node_id: string; node_type: string } {
  return { node_id: nodeId ?? '', node_type: classType ?? '' }
}

/** ComfyUI puts its advice after a line end, so clients expect one. */
export function toExceptionMessage(message: string): string {
  return message.endsWith('\n') ? message : `${message}\n`
}
