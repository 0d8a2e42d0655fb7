/** A task at the provider: what we keep of it, how it is asked for, what its state means, and how it is found again. */
import { findValue } from '../../../../domain/models/catalog/json-path.ts'
import { isRecord, type Json } from '../../../../domain/models/catalog/model.ts'
import type { ProviderCall, SubmitOutcome } from '../../../../domain/models/provider.ts'
import type { ReadAnswer } from '../answer/read-answer.ts'
import { toValues } from '../request/build-request.ts'
import {
  type CompiledFetch,
  type CompiledModel,
  type CompiledOperation,
  type CompiledTask,
  type TaskState,
  toWord,
} from '../rules/compile-model.ts'
import { type Answer, type Classify, isEmpty } from '../rules/match-rules.ts'
import type { TemplateValues } from '../rules/rule-types.ts'

/** What is stored of a task: enough to poll it from another process. */
export interface TaskHandle {
  readonly operation: string
  readonly id: string
  readonly kept: Readonly<Record<string, string>>
}

/** null when the answer names no task. */
export function readHandle(answer: Answer, operation: string, task: CompiledTask): TaskHandle | null {
  const id = findValue(answer.document, task.id)
  if (isEmpty(id) || (typeof id !== 'string' && typeof id !== 'number')) return null
  return { operation, id: String(id), kept: readTexts(answer.document, task.keep) }
}

export function readTexts(document: unknown, paths: CompiledTask['keep']): Record<string, string> {
  const found = paths.map(([name, path]) => [name, findValue(document, path)] as const)
  return Object.fromEntries(found.filter(([, value]) => !isEmpty(value)).map(([name, value]) => [name, String(value)]))
}

export function isTaskHandle(handle: Json): boolean {
  return (
    isRecord(handle) &&
    typeof handle['operation'] === 'string' &&
    typeof handle['id'] === 'string' &&
    isRecord(handle['kept'])
  )
}

/** null: still running. A state that the rules do not name counts as running. */
export function readState(answer: Answer, task: CompiledTask): TaskState | null {
  for (const path of task.states) {
    const value = path === 'http_status' ? answer.status : findValue(answer.document, path)
    if (!isEmpty(value)) return task.meanings.get(toWord(value)) ?? null
  }
  return null
}

interface FetchTarget {
  readonly method: CompiledFetch['method']
  readonly target: string
  readonly body: Buffer | null
}

export function toFetchTarget(fetch: CompiledFetch, values: TemplateValues): FetchTarget {
  const url = fetch.urlFrom === null ? undefined : values[fetch.urlFrom]
  const target = url ?? fetch.path?.(values)
  if (target === undefined) throw new Error('the rules give no address to ask')
  return {
    method: fetch.method,
    target,
    body: fetch.body === null ? null : Buffer.from(JSON.stringify(fetch.body(values))),
  }
}

interface FindStep {
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

/**
 * Looks for the task of a submit whose answer was lost, by the reference that went along with it. Only a reference of our own
 * is ever looked for: a caller could choose one that names somebody else's task. null: the provider knows of no such task, so
 * none was made.
 */
export async function findTask({ call, operation, classify, settings, ask }: FindStep): Promise<SubmitOutcome | null> {
  const { task } = operation
  if (task === null || task.find === null) return null
  const answer = await ask(toFetchTarget(task.find, toValues(call, settings)).target)
  if (isUnknown(answer, classify)) return null
  const handle = answer.status < 300 ? readHandle(answer, operation.rules.name, task) : null
  // It may have finished long ago, so it is polled at once.
  if (handle !== null) return { outcome: 'accepted', handle: { ...handle }, pollAfterMs: 0 }
  const message = 'the provider cannot be asked now whether it has this call; the same Idempotency-Key asks again'
  const about = { message, upstreamStatus: answer.status, generation: 'possible' as const }
  return { outcome: 'refused', refusal: { reason: 'failed', ...about } }
}

function isUnknown(answer: Answer, classify: Classify): boolean {
  return answer.status === 404 || classify(answer, answer.status < 300 ? 'ok' : 'error') === 'invalid'
}
