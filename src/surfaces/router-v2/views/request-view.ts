/** A queued request as its owner sees it. Failure and cancel are ends like any other: `COMPLETED`, with an error type. */
import type { RequestState, StoredRequest } from '../../../domain/models/queue/request-store.ts'
import { errorTypeOf } from '../router-error-types.ts'
import { MODELS_PATH } from '../router-operation.ts'

type RequestStatus = 'IN_QUEUE' | 'IN_PROGRESS' | 'COMPLETED'

const STATUS: Readonly<Record<RequestState, RequestStatus>> = {
  waiting: 'IN_QUEUE',
  running: 'IN_PROGRESS',
  done: 'COMPLETED',
  interrupted: 'COMPLETED',
  unusable: 'COMPLETED',
  canceled: 'COMPLETED',
  gone: 'COMPLETED',
}

export function statusOf({ state }: StoredRequest): RequestStatus {
  return STATUS[state]
}

interface RequestLink {
  readonly baseUrl: string
  readonly modelId: string
  readonly requestId: string
}

export function toRequestUrls({ baseUrl, modelId, requestId }: RequestLink): object {
  const self = `${baseUrl}${MODELS_PATH}/${modelId}/requests/${requestId}`
  return { status_url: `${self}/status`, response_url: self, cancel_url: `${self}/cancel` }
}

export function toRequestView(request: StoredRequest, baseUrl: string): object {
  const { id, modelId, position, end } = request
  const errorType = end?.kind === 'refusal' ? errorTypeOf(end.refusal.refusal) : null
  return {
    request_id: id,
    status: statusOf(request),
    ...(position === null ? {} : { queue_position: position }),
    ...(errorType === null ? {} : { error_type: errorType }),
    ...toRequestUrls({ baseUrl, modelId, requestId: id }),
  }
}

// At the back of the queue it is not worth asking every second.
const SECONDS_PER_POSITION = 2
const MAX_RETRY_SECONDS = 60

export function retryAfterOf({ position }: StoredRequest): number {
  return Math.min(MAX_RETRY_SECONDS, 1 + (position ?? 0) * SECONDS_PER_POSITION)
}
