/** What the form holds: the workflow, what was typed over it, and where it came from. In memory only. */
import { computed, signal } from '@preact/signals'
import { getForm } from '../../api/forms.ts'
import { getWorkflow } from '../../api/jobs.ts'
import type { NodeClasses } from '../../api/node-classes.ts'
import { changeWorkflow, type InputChange } from '../../form/change-workflow.ts'
import { type Field, type FieldGroup, readField, showValue, toFieldGroups } from '../../form/workflow-fields.ts'
import { readWorkflow } from '../../graph/workflow-graph.ts'

export interface RunSource {
  readonly workflowText: string
  /** The job to run again; null: a workflow of its own. */
  readonly from: string | null
  readonly name: string
  readonly notes: readonly string[]
}

export const source = signal<RunSource | null>(null)
/** What was typed, by `node input`, as text of the field, or a finished JSON value for files. */
export const typed = signal<ReadonlyMap<string, string>>(new Map())
export const files = signal<ReadonlyMap<string, { readonly name: string; readonly valueText: string }>>(new Map())
export const classes = signal<NodeClasses | null>(null)

export const graph = computed(() => {
  const { value } = source
  if (value === null) return null
  try {
    return readWorkflow(value.workflowText)
  } catch {
    return null
  }
})

export const groups = computed<readonly FieldGroup[]>(() =>
  graph.value === null ? [] : toFieldGroups(graph.value, classes.value),
)

export function keyOf({ node, input }: Pick<Field, 'node' | 'input'>): string {
  return `${node} ${input}`
}

export function open(next: RunSource): void {
  source.value = next
  typed.value = new Map()
  files.value = new Map()
}

export async function openJob(id: string, signal: AbortSignal): Promise<void> {
  open({ workflowText: await getWorkflow(id, signal), from: id, name: '', notes: [] })
}

export async function openForm(name: string, signal: AbortSignal): Promise<void> {
  const { workflow_text: workflowText } = await getForm(name, signal)
  open({ workflowText, from: null, name, notes: [] })
}

export function setTyped(field: Field, text: string): void {
  typed.value = new Map(typed.value).set(keyOf(field), text)
  if (files.value.has(keyOf(field))) {
    const rest = new Map(files.value)
    rest.delete(keyOf(field))
    files.value = rest
  }
}

export function setFile(field: Field, file: { readonly name: string; readonly valueText: string }): void {
  files.value = new Map(files.value).set(keyOf(field), file)
}

export function textOf(field: Field): string {
  return typed.value.get(keyOf(field)) ?? showValue(field)
}

export interface Reading {
  readonly changes: readonly InputChange[]
  readonly problems: ReadonlyMap<string, string>
}

export const reading = computed<Reading>(() => {
  const changes: InputChange[] = []
  const problems = new Map<string, string>()
  for (const { fields } of groups.value)
    for (const field of fields) {
      const key = keyOf(field)
      const file = files.value.get(key)
      const text = typed.value.get(key)
      if (file !== undefined) changes.push({ node: field.node, input: field.input, valueText: file.valueText })
      else if (text !== undefined) {
        const read = readField(field, text)
        if ('problem' in read) problems.set(key, read.problem)
        else if (read.valueText !== field.valueText)
          changes.push({ node: field.node, input: field.input, valueText: read.valueText })
      }
    }
  return { changes, problems }
})

export function changedText(): string {
  return changeWorkflow(source.value?.workflowText ?? '{}', reading.value.changes)
}
