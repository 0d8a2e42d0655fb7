/**
 * Options that a node writes behind its prompt, `--resolution 1080p --duration 10`, as some providers take them. They decide the
 * price as fields would, so they count as fields; what is sent stays as it came.
 */

import { findLeaves, type JsonPath } from '../catalog/json-path.ts'
import type { JsonRecord } from '../catalog/model.ts'

const OPTION = /(?:^|\s)--([a-z_]{1,40})\s+([A-Za-z0-9.:-]{1,40})(?=\s|$)/g
// The options stand at the end.
const TEXT_MAX_LENGTH = 4000

/** Of an option that is given twice, the last counts. */
export function readTextOptions(fields: JsonRecord, path: JsonPath): Record<string, string> {
  const texts = findLeaves(fields, path).flatMap(({ value }) => (typeof value === 'string' ? [value] : []))
  const options = texts.flatMap((text) => [...text.slice(-TEXT_MAX_LENGTH).matchAll(OPTION)])
  return Object.fromEntries(options.map(([, name, value]) => [name, value]))
}
