/** Reads the parts of the Jobs API's answers that `run` uses. Nothing is trusted: the server may be any implementation of the contract. */
import { isJsonObject, type JsonObject, type JsonValue, NumberText } from '../../../lib/json/lossless-json.ts'
import { printLine, type Terminal, toPrintable } from '../terminal.ts'

export interface ProgressView {
  readonly value: number
  readonly message: string | null
}

export interface OutputView {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly sizeBytes: number | null
}

export interface JobErrorView {
  readonly code: string
  readonly message: string
  readonly nodeId: string | null
  readonly classType: string | null
}

export interface JobView {
  readonly id: string
  readonly status: string
  readonly queuePosition: number | null
  readonly progress: ProgressView | null
  readonly outputs: readonly OutputView[]
  readonly error: JobErrorView | null
  readonly eventsLink: string
  readonly cancelLink: string
  readonly logsLink: string
  readonly selfLink: string
  /** As the server sent it. */
  readonly answer: JsonObject
}

export const TERMINAL_STATUSES: ReadonlySet<string> = new Set(['succeeded', 'failed', 'canceled', 'expired'])

type Fields = Readonly<Record<string, unknown>>

export function toFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

function toText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Other implementations write `1.0`, which is kept as it was written. */
function toNumber(given: unknown): number | null {
  const value = given instanceof NumberText ? given.value : given
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

export function readProgress(value: unknown): ProgressView | null {
  const fields = toFields(value)
  const fraction = toNumber(fields['value'])
  return fraction === null ? null : { value: Math.min(1, Math.max(0, fraction)), message: toText(fields['message']) }
}

export function readOutput(value: unknown): OutputView {
  const fields = toFields(value)
  return {
    id: toText(fields['id']) ?? '',
    name: toText(fields['name']) ?? 'output',
    url: toText(fields['url']) ?? '',
    sizeBytes: toNumber(fields['size_bytes']),
  }
}

function readJobError(value: unknown): JobErrorView | null {
  if (value === null || value === undefined) return null
  const fields = toFields(value)
  return {
    code: toText(fields['code']) ?? 'unknown',
    message: toText(fields['message']) ?? 'no message',
    nodeId: toText(fields['node_id']),
    classType: toText(fields['class_type']),
  }
}

export function readJob(value: JsonValue): JobView {
  const fields = toFields(value)
  const urls = toFields(fields['urls'])
  const id = toText(fields['id']) ?? ''
  const outputs = Array.isArray(fields['outputs']) ? fields['outputs'] : []
  return {
    id,
    status: toText(fields['status']) ?? 'unknown',
    queuePosition: toNumber(fields['queue_position']),
    progress: readProgress(fields['progress']),
    outputs: outputs.map(readOutput),
    error: readJobError(fields['error']),
    selfLink: toText(urls['self']) ?? `/jobs/${id}`,
    eventsLink: toText(urls['events']) ?? `/jobs/${id}/events`,
    cancelLink: toText(urls['cancel']) ?? `/jobs/${id}/cancel`,
    logsLink: toText(urls['logs']) ?? `/jobs/${id}/logs`,
    answer: isJsonObject(value) ? value : {},
  }
}

/** What went wrong in a run and in which node, as the end of a sentence. */
export function describeError(error: JobErrorView | null): string {
  if (error === null) return ''
  const node = error.nodeId ? ` in node ${error.nodeId}${error.classType ? ` (${error.classType})` : ''}` : ''
  return `${node}: ${error.code}: ${error.message}`
}

/** A refusal as lines to print: the message, then every error of a node or an asset. */
export function toErrorLines(body: unknown, status: number): string[] {
  if (typeof toFields(body)['error'] === 'string') return toFlatErrorLines(toFields(body))
  const error = toFields(toFields(body)['error'])
  const code = toText(error['code']) ?? `http ${status}`
  const lines = [`${code}: ${toText(error['message']) ?? 'the server gave no reason'}`]
  const details = toFields(error['details'])
  for (const [nodeId, items] of Object.entries(toFields(details['node_errors']))) {
    for (const item of listOf(items)) {
      const { field, reason, message } = toFields(item)
      const where = field ? `node ${nodeId}, input ${field}` : `node ${nodeId}`
      lines.push(`  ${where}: ${toText(message) ?? toText(reason) ?? 'refused'}`)
    }
  }
  // Of an endpoint: inputs that are wrong, and what of a new version would break its callers.
  const messages = (member: string) =>
    listOf(details[member]).flatMap((item) => toText(toFields(item)['message']) ?? [])
  const wrong = messages('inputs')
  const breaking = messages('breaking')
  if (wrong.length > 0) lines[0] = `${code}: ${wrong.length === 1 ? 'an input is' : `${wrong.length} inputs are`} wrong`
  if (breaking.length > 0)
    lines[0] = `${code}: this would break those who call it; publish it all the same with --breaking`
  lines.push(...[...wrong, ...breaking].map((message) => `  ${message}`))
  const missing = details['missing_ids']
  if (Array.isArray(missing)) lines.push(`  missing: ${missing.join(', ')}`)
  if (toText(details['job_id']) !== null) lines.push(`  existing job: ${details['job_id']}`)
  return lines
}

/** Builds and deployments refuse with `{"error": "CODE", "message": "text"}`, and say in `invalid` which fields of a definition are wrong. */
function toFlatErrorLines({ error, message, invalid }: Readonly<Record<string, unknown>>): string[] {
  const faults = listOf(invalid).map((fault) => toFields(fault))
  return [
    `${String(error).toLowerCase()}: ${toText(message) ?? 'the server gave no reason'}`,
    ...faults.map(({ field, reason }) => `  ${toText(field)}: ${toText(reason)}`),
  ]
}

export interface Conversion {
  readonly workflow: JsonObject
  readonly warnings: readonly JsonObject[]
  readonly parameters: readonly JsonObject[]
  readonly missing: JsonObject
}

export type Convert = (content: JsonObject) => Promise<Conversion>

/** Nothing is trusted: the server may be any implementation of the contract. */
export function readConversion(value: JsonValue): Conversion {
  const fields = isJsonObject(value) ? value : {}
  const objects = (list: JsonValue | undefined) => (Array.isArray(list) ? list.filter(isJsonObject) : [])
  const { workflow, missing } = fields
  return {
    workflow: isJsonObject(workflow) ? workflow : {},
    warnings: objects(fields['warnings']),
    parameters: objects(fields['parameters']),
    missing: isJsonObject(missing) ? missing : {},
  }
}

/** What the user should know before the workflow runs, on standard error. */
export function printFindings({ warnings, missing }: Conversion, terminal: Terminal): void {
  const say = (text: string) => printLine(terminal.stderr, toPrintable(text))
  for (const { node_id: nodeId, input, message } of warnings) {
    say(`warning: node ${nodeId}${input === null ? '' : `, input ${input}`}: ${message}`)
  }
  const list = (name: string) => (Array.isArray(missing[name]) ? missing[name].filter(isJsonObject) : [])
  for (const { class_type: classType } of list('classes')) say(`missing: no engine has the class ${classType}`)
  for (const { name, node_id: nodeId } of list('weights'))
    say(`missing: no engine has ${name}, which node ${nodeId} uses`)
}
