/** Plain callbacks for metrics and logs. They are called after the fact, must not throw and must not wait. */
import type { RouterErrorType } from '../router-error.ts'

export interface CallObserver {
  /** A call that was let in has ended, whoever still listens. `errorType` is null for a result. */
  ended(call: {
    readonly provider: string
    readonly model: string
    readonly errorType: RouterErrorType | null
    readonly durationMs: number
    readonly chargedMicros: number | null
  }): void
  /** A request that was answered without a call of its own. */
  answered(request: {
    readonly provider: string
    readonly how: 'replayed' | 'refused'
    readonly errorType: RouterErrorType | null
  }): void
  polled(poll: { readonly provider: string; readonly outcome: string }): void
  /** The provider has a problem that only the operator can mend, or an outcome nobody knows. */
  unresolved(call: { readonly provider: string; readonly model: string; readonly callId: string }): void
}

export const silentCallObserver: CallObserver = {
  ended() {},
  answered() {},
  polled() {},
  unresolved() {},
}
