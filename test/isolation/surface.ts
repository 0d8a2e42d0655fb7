/**
 * How a surface takes part in the isolation matrix. It names its contract and says, for every operation in it, which things of
 * somebody else a request could name and what a thing of that kind looks like that never existed. The matrix asks for both as
 * the same caller and wants the same bytes. A surface that is added to `SURFACES` in matrix.test.ts is checked from then on,
 * and an operation without a case fails.
 */
import type { SharedApp, Tenant } from '../support/start-shared.ts'

export interface World {
  readonly app: SharedApp
  /** The caller. It owns nothing that a case names. */
  readonly caller: Tenant
  /** Somebody else, whose things are named. */
  readonly other: Tenant
  /** Of `other` alone, and ready. */
  readonly deployment: string
}

export interface IsolationRequest {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/** A request that names something of the other account, and the same one naming something that never existed. */
export interface IsolationCase {
  /** The operation's id in the contract. */
  readonly operation: string
  readonly title: string
  readonly foreign: IsolationRequest
  readonly unknown: IsolationRequest
}

export interface IsolationSurface {
  readonly name: string
  /** The contract, such as `spec/jobs-v2.openapi.json`; null: the surface has none. */
  readonly spec: string | null
  /** Operations that name nothing and tell nothing of anybody. */
  readonly harmless: readonly string[]
  /** Makes what the other account owns, then lists the cases. */
  cases(world: World): Promise<readonly IsolationCase[]>
}
