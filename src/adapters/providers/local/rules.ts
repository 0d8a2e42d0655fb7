/**
 * The `adapter` part of a local model:
 *
 *   {"workflow": {"1": {"class_type": "LoadImage", "inputs": {"image": "picture.png"}}, …},
 *    "fields": {"width": "2.width", "text": ["3.text", "4.text"]},   where a field of the input goes: node and input
 *    "files": {"image": "picture.png"},                              data URIs, by the name under which they are loaded
 *    "output": "json"}                                               or "file": the first file itself
 */
import { FieldReader } from '../../../domain/models/field-reader.ts'
import { isRecord, type Json, type JsonRecord, type Model } from '../../../domain/models/model.ts'

export interface LocalRules {
  readonly workflow: JsonRecord
  readonly fields: Readonly<Record<string, readonly Place[]>>
  readonly files: Readonly<Record<string, string>>
  readonly output: 'json' | 'file'
}

interface Place {
  readonly node: string
  readonly name: string
}

export function checkLocalRules({ adapter, returns }: Model): readonly string[] {
  const problems: string[] = []
  read(adapter, problems)
  if (returns !== 'direct') problems.push('returns must be direct: a workflow answers at once')
  return problems
}

export function readLocalRules({ adapter }: Model): LocalRules {
  return read(adapter, [])
}

function read(adapter: JsonRecord, problems: string[]): LocalRules {
  const reader = FieldReader.open(adapter, 'adapter', problems)
  const workflow = reader.object('workflow') ?? {}
  if (Object.keys(workflow).length === 0) reader.problem('workflow', 'must hold a workflow in API format')
  const fields = Object.entries(reader.object('fields') ?? {}).map(
    ([field, value]) => [field, readPlaces(value)] as const,
  )
  for (const [field, places] of fields) {
    const isKnown = places.length > 0 && places.every(({ node }) => isRecord(workflow[node]))
    if (!isKnown) reader.problem(`fields.${field}`, 'must name inputs of nodes of the workflow, such as "2.width"')
  }
  const files = Object.entries(reader.object('files') ?? {})
  for (const [field, name] of files)
    if (typeof name !== 'string') reader.problem(`files.${field}`, 'must be a file name')
  const output = reader.choice('output', ['json', 'file'] as const, 'json')
  reader.refuseOthers()
  return {
    workflow,
    fields: Object.fromEntries(fields),
    files: Object.fromEntries(files) as Record<string, string>,
    output,
  }
}

function readPlaces(value: Json): Place[] {
  const texts = Array.isArray(value) ? (value as readonly Json[]) : [value]
  return texts.flatMap((text) => {
    const dot = typeof text === 'string' ? text.lastIndexOf('.') : -1
    return dot > 0 ? [{ node: (text as string).slice(0, dot), name: (text as string).slice(dot + 1) }] : []
  })
}
