/**
 * What every operation of the console's API gets. A file of `operations/` holds the operations of one resource, each a function that
 * registers its route and bears the name that the contract gives it.
 */
import type { FastifyRequest } from 'fastify'
import type { Caller } from '../../domain/accounts/caller.ts'
import type { PageFiles } from '../kit/content/page-files.ts'
import type { ContractCheck } from '../kit/contracts/contract.ts'
import type { SharedStreams } from '../kit/streams/shared-streams.ts'
import type { SurfaceParts } from '../kit/surface-parts.ts'
import { CONSOLE_PATH } from './console-page.ts'

export const CONSOLE_API = `${CONSOLE_PATH}/v1`

export interface ConsoleDeps extends SurfaceParts {
  readonly files: PageFiles
  readonly streams: SharedStreams
  readonly check: ContractCheck
  /** The contract as text, for callers that reached us at this address. */
  readonly specFor: (baseUrl: string) => string
  /** Who asks; only behind the guard of the API. */
  callerOf(request: FastifyRequest): Caller
}
