/** Who may serve a call of a model. */
import type { PlannedAttempt, Route } from '../calls/call-plan.ts'
import type { Model } from '../catalog/model.ts'
import type { CheckInput } from '../catalog/model-catalog.ts'
import type { Provider } from '../provider.ts'

export interface Candidate extends Pick<PlannedAttempt, 'form' | 'keyOwner'> {
  readonly model: Model
  readonly checkInput: CheckInput
  readonly provider: Provider
  /** Of a conversation: it goes on as it is, under this name of the model. Left out: the input is put into the model's own form. */
  readonly sentName?: string
}

/** How an operator wants the providers of a model to be chosen. */
export interface Routing {
  readonly by: Route
  /** In order; others are left out. null: all, the model's own first. */
  readonly providers: readonly string[] | null
  readonly weights: Readonly<Record<string, number>>
}

/** Who may serve a call. */
export interface Serving {
  readonly asked: string
  /** The request named it: it is asked first, and what it cannot serve is refused. */
  readonly isNamed: boolean
  /** The one that was asked for first. */
  readonly candidates: readonly [Candidate, ...Candidate[]]
  readonly routing: Routing
}
