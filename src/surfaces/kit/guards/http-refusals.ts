/** What Node's HTTP parser and the framework refuse by themselves, as refusals of ours. */
import { ServiceError } from '../../../domain/errors.ts'

interface HttpLayerError {
  readonly code?: unknown
  readonly statusCode?: number
}

/** null for a defect. */
export function toHttpRefusal(error: unknown): ServiceError | null {
  const { code } = toHttpLayerError(error)
  if (typeof code !== 'string') return null
  // A path segment longer than any id of ours, or one that cannot even be decoded: no address of ours looks like that.
  if (code === 'FST_ERR_MAX_PARAM_LENGTH' || code === 'FST_ERR_BAD_URL')
    return new ServiceError('not_found', 'there is nothing under this address')
  if (code === 'HPE_HEADER_OVERFLOW') return new ServiceError('invalid_request', 'the request headers are too large')
  if (code.startsWith('HPE_')) return new ServiceError('invalid_request', 'this is not a valid HTTP request')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new ServiceError('invalid_request', 'the request took too long to arrive')
  return toMalformedRequest(error)
}

/** Everything that the framework refuses, an address that it cannot route included, as one refusal. null for a defect. */
export function toMalformedRequest(error: unknown): ServiceError | null {
  const { code, statusCode } = toHttpLayerError(error)
  const isOfFramework = typeof code === 'string' && code.startsWith('FST_') && (statusCode ?? 500) < 500
  return isOfFramework ? new ServiceError('invalid_request', 'the request is malformed') : null
}

function toHttpLayerError(error: unknown): HttpLayerError {
  return typeof error === 'object' && error !== null ? error : {}
}
