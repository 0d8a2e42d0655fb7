/**
 * How a surface takes part in the isolation matrix. It names its contract and says, for every operation in it, which things of
 * somebody else a request could name and what a thing of that kind looks like that never existed. The matrix asks for both as
 * the same caller and wants the same bytes. An operation without a case fails.
 */
import type { Answer } from '../support/clients/call.ts'
import type { World } from './world.ts'

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

/** A request that names nothing: it must answer as it did before the other account had anything. */
export interface IsolationList {
  readonly operation: string
  readonly path: string
}

export interface Prepared {
  readonly cases: readonly IsolationCase[]
  /** Paths under which the other account finds the same before and after all cases. */
  readonly owned: readonly string[]
}

export interface IsolationSurface {
  readonly name: string
  /** The contract, such as `spec/jobs-v2.openapi.json`; null: the surface has none. */
  readonly spec: string | null
  /** Operations that name nothing and tell nothing of anybody. */
  readonly harmless: readonly string[]
  readonly lists: readonly IsolationList[]
  /** Makes what the other account owns, then lists the cases. */
  prepare(world: World): Promise<Prepared>
  /** Waits for what an answer has set going: the next answer must not depend on how far it got. */
  settle?(world: World, answer: Answer, request: IsolationRequest): Promise<void>
}
