import type { CallStore } from '../../../../domain/models/calls/call-store.ts'
import type { RequestStore } from '../../../../domain/models/queue/request-store.ts'
import type { StoreParts } from './store-parts.ts'
import { unwritten } from './unwritten.ts'

export const createCallStore = (_: StoreParts) => unwritten<CallStore>('calls')
export const createRequestStore = (_: StoreParts) => unwritten<RequestStore>('requests')
