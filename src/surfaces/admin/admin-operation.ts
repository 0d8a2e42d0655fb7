/**
 * What every operation of the admin API gets besides its own dependencies. A file of `operations/` holds the operations of one
 * resource, each a function that registers its route and bears the name that the contract gives it. An operation that changes
 * something writes through the stores of `audited`, which take the audit line along: there is no change without one.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '../../../lib/clock.ts'
import type { AccountDirectory } from '../../domain/accounts/account-store.ts'
import type { KeyStore } from '../../domain/accounts/keys/key-store.ts'
import type { LedgerStore } from '../../domain/credits/ledger.ts'
import type { DeploymentStore } from '../../domain/deployments/deployment-store.ts'
import type { JobStore } from '../../domain/jobs/job-store.ts'

export interface AuditedStores {
  readonly directory: AccountDirectory
  readonly apiKeys: KeyStore
  readonly ledger: LedgerStore
  readonly deployments: DeploymentStore
  readonly cancels: Pick<JobStore, 'cancel'>
}

/** What is about to be changed. Details must not hold a secret. */
interface Change {
  readonly action: string
  readonly subject: string
  readonly details: Readonly<Record<string, unknown>>
}

export interface AdminKit {
  readonly clock: Clock
  /** The stores, each of whose writes takes this change's audit line along. */
  audited(request: FastifyRequest, change: Change): AuditedStores
  /** The audit line of a change that no store holds. */
  note(request: FastifyRequest, change: Change): Promise<void>
  /** The body, checked against this schema of the contract; an empty one counts as an empty object. Throws. */
  readBody<Body>(request: FastifyRequest, schemaName: string): Promise<Body>
}

/** An operation with its dependencies: how other parts of the service add theirs. */
export type AdminOperation = (app: FastifyInstance, kit: AdminKit) => void

export const ADMIN_PATH = '/admin/v1'

export function idOf(request: FastifyRequest): string {
  return (request.params as { id: string }).id
}
