/** What every operation of this surface shares. */
import type { FastifyRequest } from 'fastify'
import type { PartnerCaller } from '../../domain/models/partner/partner-nodes.ts'
import type { Contract } from '../kit/contracts/contract.ts'
import type { PartnerParts } from '../kit/parts/partner-parts.ts'

export const PROXY_PATH = '/proxy'
export const STORAGE_PATH = '/customers/storage'

export interface NodeDeps {
  readonly partner: PartnerParts
  readonly spec: Contract
  readonly mountPrefix: string
  callerOf(request: FastifyRequest): PartnerCaller
}

/** `/proxy/bfl/flux-pro-1.1-ultra/generate`: the provider, and the path below it. */
export function splitPath(path: string): { readonly provider: string; readonly rest: string } {
  const [, , provider = '', ...rest] = path.split('/')
  return { provider, rest: `/${rest.join('/')}` }
}
