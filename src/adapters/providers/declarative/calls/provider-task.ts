/** One look at a task: its state, and the finished document when it is done. */

import { findValue } from '../../../../domain/models/json-path.ts'
import { isRecord, type Json } from '../../../../domain/models/model.ts'
import { type CompiledFetch, type CompiledTask, type TaskState, toWord } from '../rules/compile-model.ts'
import { isEmpty } from '../rules/conditions.ts'
import type { Answer } from '../rules/outcome-rules.ts'
import type { TemplateValues } from '../rules/text-template.ts'

/** What is stored of a task: enough to find it again in another process. */
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

/** null: still running. A state that nobody has told us about is one of those. */
export function readState(answer: Answer, task: CompiledTask): TaskState | null {
  for (const path of task.states) {
    const value = path === 'http_status' ? answer.status : findValue(answer.document, path)
    if (!isEmpty(value)) return task.meanings.get(toWord(value)) ?? null
  }
  return null
}

export interface FetchTarget {
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
