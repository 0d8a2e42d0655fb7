/** The answer to a submit as its caller gets it: the provider's own, but for the addresses that would lead past this service. */
import {
  isJsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../../lib/json/lossless-json.ts'
import { findLeaves, readJsonPath } from '../../../../domain/models/catalog/json-path.ts'
import { compileTemplate, encodeForPath, type TemplateValues } from '../rules/text-template.ts'

/** `changes`: by path, the text that stands there instead. null: the answer is no object. */
export function tellAnswer(
  bytes: Buffer,
  changes: Readonly<Record<string, string>>,
  values: TemplateValues,
): string | null {
  let document: JsonValue
  try {
    document = parseLosslessJson(bytes.toString())
  } catch {
    return null
  }
  if (!isJsonObject(document)) return null
  for (const [path, text] of Object.entries(changes)) {
    for (const { holder, key } of findLeaves(document, readJsonPath(path)))
      holder[key] = compileTemplate(text, encodeForPath)(values)
  }
  return stringifyLosslessJson(document)
}
