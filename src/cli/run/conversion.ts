/** A converted workflow as `run` and `convert` use it, whether a server made it or this process. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { printLine, type Terminal, toPrintable } from '../terminal.ts'

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
