/** What a provider made of rules depends on, and what the steps of its calls share. */

import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { Tracer } from '../../../../lib/tracing/tracer.ts'
import type { Semaphore } from '../../../../lib/waiting/semaphore.ts'
import type { JsonPath } from '../../../domain/models/catalog/json-path.ts'
import type { Model } from '../../../domain/models/catalog/model.ts'
import type { SharedCounts } from '../../../domain/service-nodes/shared-counts.ts'
import type { ApiClient } from '../outbound/api-client.ts'
import type { CircuitBreaker } from '../outbound/circuit-breaker.ts'
import type { SafeFetch } from '../outbound/safe-fetch.ts'
import type { PatienceDeps } from './calls/send-patiently.ts'
import type { AuthHeaders } from './request/auth-headers.ts'
import type { MediaDeps } from './request/input-media.ts'
import type { CompiledModel } from './rules/compile-model.ts'
import type { ProviderRules } from './rules/rule-types.ts'
import type { TaskSlots } from './task-slots.ts'

/** What an operator says about one provider. */
export interface ProviderSettings {
  /** null: the one in the rules. */
  readonly baseUrl: string | null
  /** null: the one in the rules. */
  readonly concurrency: number | null
  readonly values: Readonly<Record<string, string>>
}

export interface ProviderKey {
  readonly key: string
  readonly isOwn: boolean
}

export type ExchangeKind = 'submit' | 'poll' | 'result' | 'cancel'

/** Told of every exchange with a provider; `status` is null when there was no answer. */
export type ObserveExchange = (exchange: {
  readonly provider: string
  readonly model: string
  readonly kind: ExchangeKind
  readonly status: number | null
  readonly milliseconds: number
}) => void

export interface DeclarativeDeps extends PatienceDeps {
  readonly keyFor: (accountId: string) => ProviderKey | null
  readonly fetch: SafeFetch
  readonly media: MediaDeps
  readonly clock: Clock
  readonly log: Log
  readonly observe: ObserveExchange
  /** The slots of all processes. */
  readonly counts: Pick<SharedCounts, 'take' | 'giveBack' | 'tell'>
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
}

/** What the steps of all calls share. */
export interface ProviderContext {
  readonly rules: ProviderRules
  readonly client: ApiClient
  /** How many generations the provider is given at a time: many at once would be refused, which costs more than the wait. */
  readonly slots: Semaphore
  /** How many that are over all processes. */
  readonly concurrency: number
  readonly taskSlots: TaskSlots
  readonly breaker: CircuitBreaker
  readonly authHeaders: AuthHeaders
  readonly settings: Readonly<Record<string, string>>
  readonly messages: readonly JsonPath[]
  readonly validationList: JsonPath | null
  modelOf(model: Model): CompiledModel
}
