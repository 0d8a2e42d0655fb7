/** What the form holds: the workflow, what was typed over it, and where it came from. In memory, and as a draft in the address. */
import { batch, computed, signal } from '@preact/signals'
import { assetReference } from '../../api/assets.ts'
import type { ApiError } from '../../api/client.ts'
import { convertWorkflow, getForm, getJob, getWorkflow } from '../../api/jobs.ts'
import type { NodeClasses } from '../../api/node-classes.ts'
import { type BatchList, type BatchWay, countBatch, MAX_BATCH, readValues, splitValues } from '../../form/batch.ts'
import {
  changeWorkflow,
  type Field,
  type FieldGroup,
  type InputChange,
  readField,
  showValue,
  toFieldGroups,
} from '../../form/workflow-fields.ts'
import { readWorkflow } from '../../graph/workflow-graph.ts'
import type { Draft } from './draft.ts'

export interface RunSource {
  readonly workflowText: string
  /** The job to run again; null: a workflow of its own. */
  readonly from: string | null
  /** The service has the workflow under this page's address: as that of a job, or as a saved form. */
  readonly isKept: boolean
  readonly name: string
  readonly notes: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
}

/** A file of the service that stands in an input. */
export interface ChosenFile {
  readonly assetId: string
  readonly name: string
  readonly type: string
  readonly valueText: string
}

type Kept<Value> = ReadonlyMap<string, Value>

export const source = signal<RunSource | null>(null)
/** By `node input`, as the text of the field; where the field has several values, all of them. */
const typed = signal<Kept<string>>(new Map())
const files = signal<Kept<readonly ChosenFile[]>>(new Map())
/** The inputs that have several values. */
const several = signal<ReadonlySet<string>>(new Set())
export const way = signal<BatchWay>('combinations')
/** By `node input`, what the service said of a value when it refused the run. */
const refused = signal<Kept<string>>(new Map())
export const classes = signal<NodeClasses | null>(null)

const graph = computed(() => {
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

export function open(next: Pick<RunSource, 'workflowText'> & Partial<RunSource>): void {
  batch(() => {
    source.value = { from: null, isKept: false, name: '', notes: [], metadata: {}, ...next }
    typed.value = new Map()
    files.value = new Map()
    several.value = new Set()
    way.value = 'combinations'
    refused.value = new Map()
  })
}

export async function openJob(id: string, signal: AbortSignal): Promise<void> {
  const [workflowText, { metadata }] = await Promise.all([getWorkflow(id, signal), getJob(id, signal)])
  open({ workflowText, from: id, isKept: true, metadata })
}

export async function openForm(name: string, signal: AbortSignal): Promise<void> {
  const { workflow_text: workflowText } = await getForm(name, signal)
  open({ workflowText, name, isKept: true })
}

/** JSON of the editor or of the API, or something that ComfyUI saved with its workflow inside. */
export async function openFile(file: Blob, name: string): Promise<void> {
  const { text, warnings, missing } = await convertWorkflow(file)
  open({ workflowText: text, name, notes: [...missing.map((what) => `No engine has ${what}.`), ...warnings] })
}

export const draft = computed<Draft | null>(() => {
  const { value } = source
  if (value === null) return null
  return {
    workflowText: value.isKept ? null : value.workflowText,
    name: value.name,
    typed: [...typed.value],
    files: [...files.value].map(([key, chosen]) => [
      key,
      chosen.map(({ assetId, name, type }) => [assetId, name, type] as const),
    ]),
    several: [...several.value],
    way: way.value,
  }
})

/** Over the job or the saved form that was opened, or, where it brings a workflow along, over that. */
export function openDraft(found: Draft): void {
  batch(() => {
    if (found.workflowText !== null) open({ workflowText: found.workflowText, name: found.name })
    if (source.value === null) return
    typed.value = new Map(found.typed)
    files.value = new Map(
      found.files.map(([key, chosen]) => [
        key,
        chosen.map(([assetId, name, type]) => ({ assetId, name, type, valueText: assetReference(assetId) })),
      ]),
    )
    several.value = new Set(found.several)
    way.value = found.way
  })
}

/** Marks the inputs that a refusal names; returns the first of them. */
export function markRefused(error: ApiError | null): string | null {
  const found = new Map<string, string>()
  const byNode = error?.details?.['node_errors']
  for (const [node, problems] of Object.entries(byNode ?? {}))
    for (const { field, message } of Array.isArray(problems) ? problems : [])
      if (typeof field === 'string' && field !== '') found.set(keyOf({ node, input: field }), String(message))
  refused.value = found
  return [...found.keys()][0] ?? null
}

export function refusalOf(field: Field): string | null {
  return refused.value.get(keyOf(field)) ?? null
}

/** Another value may be a good one. */
function forgetRefusal(key: string): void {
  if (refused.value.has(key)) refused.value = without(refused.value, key)
}

function without<Value>(map: Kept<Value>, key: string): Kept<Value> {
  const rest = new Map(map)
  rest.delete(key)
  return rest
}

export function setTyped(field: Field, text: string): void {
  typed.value = new Map(typed.value).set(keyOf(field), text)
  forgetRefusal(keyOf(field))
  if (files.value.has(keyOf(field))) files.value = without(files.value, keyOf(field))
}

/** One takes the place of another; where the field has several values they come behind those that are there. */
export function addFiles(field: Field, added: readonly ChosenFile[]): void {
  const key = keyOf(field)
  const before = several.value.has(key) ? (files.value.get(key) ?? []) : []
  const known = new Set(before.map(({ assetId }) => assetId))
  const next = [...before, ...added.filter(({ assetId }) => !known.has(assetId))]
  files.value = new Map(files.value).set(key, next.slice(0, several.value.has(key) ? MAX_BATCH : 1))
  forgetRefusal(key)
}

export function removeFile(field: Field, assetId: string): void {
  const key = keyOf(field)
  const rest = (files.value.get(key) ?? []).filter((file) => file.assetId !== assetId)
  files.value = rest.length === 0 ? without(files.value, key) : new Map(files.value).set(key, rest)
}

export function filesOf(field: Field): readonly ChosenFile[] {
  return files.value.get(keyOf(field)) ?? []
}

export function textOf(field: Field): string {
  return typed.value.get(keyOf(field)) ?? showValue(field)
}

export function hasSeveral(field: Field): boolean {
  return several.value.has(keyOf(field))
}

/** Back to one, the first stays. */
export function setSeveral(field: Field, isSeveral: boolean): void {
  const key = keyOf(field)
  const next = new Set(several.value)
  if (isSeveral) next.add(key)
  else next.delete(key)
  batch(() => {
    const text = typed.value.get(key)
    if (!isSeveral && text !== undefined)
      typed.value = new Map(typed.value).set(key, splitValues(field.kind, text)[0] ?? showValue(field))
    const [first] = files.value.get(key) ?? []
    if (!isSeveral && first !== undefined) files.value = new Map(files.value).set(key, [first])
    several.value = next
  })
}

export interface Reading {
  readonly changes: readonly InputChange[]
  readonly lists: readonly BatchList[]
  readonly problems: ReadonlyMap<string, string>
}

export const reading = computed<Reading>(() => {
  const changes: InputChange[] = []
  const lists: BatchList[] = []
  const problems = new Map<string, string>()
  for (const field of groups.value.flatMap(({ fields }) => fields)) {
    const { node, input } = field
    const read = readOne(field)
    if ('problem' in read) problems.set(keyOf(field), read.problem)
    else if (hasSeveral(field)) lists.push({ node, input, valueTexts: read.valueTexts })
    else if (read.valueTexts[0] !== field.valueText) changes.push({ node, input, valueText: read.valueTexts[0] })
  }
  return { changes, lists, problems }
})

function readOne(field: Field): { readonly valueTexts: readonly string[] } | { readonly problem: string } {
  const chosen = filesOf(field)
  if (chosen.length > 0) return { valueTexts: chosen.map(({ valueText }) => valueText) }
  const text = typed.value.get(keyOf(field))
  if (text === undefined) return { valueTexts: [field.valueText] }
  if (hasSeveral(field)) return readValues(field, text)
  const read = readField(field, text)
  return 'problem' in read ? read : { valueTexts: [read.valueText] }
}

/** How many jobs the form makes; or why none. */
export const jobCount = computed(() => countBatch(reading.value.lists, way.value))

/** With the first value of each list. */
export function changedText(more: readonly InputChange[] = []): string {
  return changeWorkflow(source.value?.workflowText ?? '{}', [...reading.value.changes, ...more])
}
