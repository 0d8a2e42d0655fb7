/** Puts new values into the text of a workflow. Everything else, numbers above all, stays as it was written. Pure. */
import { isJsonObject, parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'

export interface InputChange {
  readonly node: string
  readonly input: string
  /** JSON text, so that a number keeps all its digits on the way. */
  readonly valueText: string
}

export function changeWorkflow(text: string, changes: readonly InputChange[]): string {
  const workflow = parseLosslessJson(text)
  if (!isJsonObject(workflow)) return text
  for (const { node, input, valueText } of changes) {
    const found = workflow[node]
    if (!isJsonObject(found)) continue
    const { inputs } = found
    if (isJsonObject(inputs)) inputs[input] = parseLosslessJson(valueText)
  }
  return stringifyLosslessJson(workflow)
}
