/**
 * `sandbox/*`: models that need no provider, no key and no network. The data file of a model names what it does, as
 * `{"behaviour": "refuse"}`; `latency_ms` in the input says how long it takes. A task keeps all it needs in its handle, so it
 * can be finished after a restart too.
 */

import type { Clock } from '../../../../lib/clock.ts'
import { MAX_TIMER_MS } from '../../../../lib/waiting/sleep.ts'
import { isRecord, type Json, type JsonRecord, type Model } from '../../../domain/models/catalog/model.ts'
import type { Provider, ProviderOptions, ProviderRefusal, ProviderResult } from '../../../domain/models/provider.ts'
import { BEHAVIOURS, type BehaviourName, isBehaviour } from './sandbox-behaviours.ts'

const POLL_MS = 250

interface SandboxDeps {
  readonly clock: Clock
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
}

interface SandboxTask {
  readonly due_at: string
  readonly input: JsonRecord
}

export function createSandboxProvider({ clock, sleep }: SandboxDeps): Provider {
  /** null: it was stopped before it answered. Like a real provider it goes on past the caller's deadline. */
  async function behave(name: BehaviourName, input: JsonRecord, { signal }: ProviderOptions) {
    const answer = BEHAVIOURS[name](input)
    const waitMs = answer === 'never' ? MAX_TIMER_MS : latencyOf(input)
    if (waitMs > 0) await sleep(waitMs, signal)
    return signal.aborted || answer === 'never' ? null : answer
  }

  return {
    name: 'sandbox',
    access: () => 'service_key',
    checkModel: checkSandboxModel,
    deduplicates: () => true,
    async submit({ model, input }, options) {
      if (model.returns === 'poll') {
        const handle: SandboxTask = {
          due_at: new Date(clock.now().getTime() + latencyOf(input)).toISOString(),
          input: forHandle(input),
        }
        return {
          outcome: 'accepted',
          handle: { ...handle },
          pollAfterMs: Math.min(POLL_MS, Math.max(1, latencyOf(input))),
        }
      }
      const answer = await behave(behaviourOf(model), input, options)
      return answer === null ? { outcome: 'refused', refusal: outOfTime() } : toOutcome(answer)
    },
    async poll({ model, handle }) {
      const { due_at, input } = readTask(handle)
      const leftMs = Date.parse(due_at) - clock.now().getTime()
      const answer = BEHAVIOURS[behaviourOf(model)](input)
      if (leftMs > 0 || answer === 'never')
        return { outcome: 'pending', pollAfterMs: Math.max(1, Math.min(POLL_MS, leftMs)) }
      return toOutcome(answer)
    },
    async cancel() {},
  }
}

export function checkSandboxModel({ adapter }: Model): readonly string[] {
  const known = Object.keys(BEHAVIOURS).join(', ')
  return isBehaviour(adapter['behaviour']) ? [] : [`adapter.behaviour must be one of ${known}`]
}

function behaviourOf({ adapter }: Model): BehaviourName {
  const name = adapter['behaviour']
  return isBehaviour(name) ? name : 'echo'
}

function latencyOf(input: JsonRecord): number {
  const latency = input['latency_ms']
  return typeof latency === 'number' ? latency : 0
}

/** Handles are stored unencrypted, so they hold only what the behaviour needs, and nothing long. */
function forHandle(input: JsonRecord): JsonRecord {
  const { value = null } = input
  return JSON.stringify(value).length <= 1000 ? { value } : { value: 'done' }
}

function readTask(handle: Json): SandboxTask {
  if (!isRecord(handle) || typeof handle['due_at'] !== 'string' || !isRecord(handle['input'])) {
    throw new Error('this handle is not one of the sandbox')
  }
  return { due_at: handle['due_at'], input: handle['input'] }
}

function outOfTime(): ProviderRefusal {
  return { reason: 'timeout', message: 'the sandbox did not answer', upstreamStatus: null, generation: 'ended' }
}

function toOutcome(answer: ProviderResult | ProviderRefusal) {
  return 'reason' in answer
    ? ({ outcome: 'refused', refusal: answer } as const)
    : ({ outcome: 'finished', result: answer } as const)
}
