/**
 * Looks for the task of a submit whose answer was lost, by the reference that went along with it. Only a reference of our own
 * is ever looked for: a caller could choose one that names somebody else's task.
 */
import type { ProviderCall, SubmitOutcome } from '../../../../domain/models/provider.ts'
import type { ReadAnswer } from '../answer/read-answer.ts'
import { toValues } from '../request/build-request.ts'
import type { CompiledModel, CompiledOperation } from '../rules/compile-model.ts'
import type { Answer, Classify } from '../rules/outcome-rules.ts'
import { readHandle, toFetchTarget } from './provider-task.ts'

export interface FindStep {
  readonly call: ProviderCall
  readonly operation: CompiledOperation
  readonly classify: Classify
  readonly settings: Readonly<Record<string, string>>
  readonly ask: (target: string) => Promise<ReadAnswer>
}

/** Whether every task of this input could be found again. */
export function isFindable({ operations }: CompiledModel, input: Readonly<Record<string, unknown>>): boolean {
  return operations.every(({ task }) => {
    const field = task?.rules.find?.field
    return field !== undefined && (input[field] === undefined || input[field] === null)
  })
}

/** null: the provider knows of no such task, so none was made. */
export async function findTask({ call, operation, classify, settings, ask }: FindStep): Promise<SubmitOutcome | null> {
  const { task } = operation
  if (task === null || task.find === null) return null
  const answer = await ask(toFetchTarget(task.find, toValues(call, settings)).target)
  if (isUnknown(answer, classify)) return null
  const handle = answer.status < 300 ? readHandle(answer, operation.rules.name, task) : null
  // It may have been finished for long: it is asked at once.
  if (handle !== null) return { outcome: 'accepted', handle: { ...handle }, pollAfterMs: 0 }
  const message = 'the provider cannot be asked now whether it has this call; the same Idempotency-Key asks again'
  const about = { message, upstreamStatus: answer.status, generation: 'possible' as const }
  return { outcome: 'refused', refusal: { reason: 'failed', ...about } }
}

function isUnknown(answer: Answer, classify: Classify): boolean {
  return answer.status === 404 || classify(answer, answer.status < 300 ? 'ok' : 'error') === 'invalid'
}
