/**
 * Options that a node writes into its prompt, `--resolution 1080p --duration 10`, as some providers take them. They decide the
 * price as fields would, so they count as fields; what is sent stays as it came. Some have short names, which are data.
 */

import { findLeaves, type JsonPath } from '../catalog/json-path.ts'
import type { JsonRecord } from '../catalog/model.ts'

export interface TextOptions {
  /** The texts that may hold them. */
  readonly path: JsonPath
  /** By a short name, the full one. */
  readonly names: ReadonlyMap<string, string>
}

type TextOption = readonly [name: string, value: string]

const OPTION = /(?:^|\s)--([A-Za-z_-]{1,40})[\s=]+(\S{1,40})/g
// Far above any prompt; all of it is searched in one go.
export const OPTION_TEXTS_MAX_LENGTH = 100_000

/** In order, those that are given several times included; null: the texts are longer than any that is searched. */
export function readTextOptions(fields: JsonRecord, { path, names }: TextOptions): readonly TextOption[] | null {
  const texts = findLeaves(fields, path).flatMap(({ value }) => (typeof value === 'string' ? [value] : []))
  if (texts.reduce((sum, { length }) => sum + length, 0) > OPTION_TEXTS_MAX_LENGTH) return null
  const options = texts.flatMap((text) => [...text.matchAll(OPTION)])
  return options.map(([, name, value]) => [names.get(name) ?? name, value])
}
