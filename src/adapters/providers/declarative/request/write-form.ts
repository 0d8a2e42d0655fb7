/** JSON in, multipart/form-data out, for providers that take files. A whole form is in memory, so media are bounded before. */
import { randomBytes } from 'node:crypto'
import {
  type JsonObject,
  type JsonValue,
  NumberText,
  stringifyLosslessJson,
} from '../../../../../lib/json/lossless-json.ts'
import type { Media } from './input-media.ts'

export interface FormFile extends Media {
  /** The part's name. */
  readonly field: string
}

export interface Form {
  readonly contentType: string
  readonly bytes: Buffer
}

export function writeForm(fields: JsonObject, files: readonly FormFile[]): Form {
  const boundary = `form-${randomBytes(16).toString('hex')}`
  const parts = Object.entries(fields).flatMap(([name, value]) => writeField(boundary, name, value))
  for (const { field, fileName, contentType, bytes } of files) {
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="${quote(field)}"; filename="${quote(fileName)}"\r\n`
    parts.push(Buffer.from(`${head}content-type: ${contentType}\r\n\r\n`), bytes, Buffer.from('\r\n'))
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`))
  return { contentType: `multipart/form-data; boundary=${boundary}`, bytes: Buffer.concat(parts) }
}

/** A list of plain values is repeated under its name; anything deeper travels as JSON. */
function writeField(boundary: string, name: string, value: JsonValue): Buffer[] {
  if (value === null) return []
  const isPlainList =
    Array.isArray(value) && value.every((item) => typeof item !== 'object' || item instanceof NumberText)
  if (isPlainList) return value.flatMap((item) => writeField(boundary, name, item))
  const head = `--${boundary}\r\ncontent-disposition: form-data; name="${quote(name)}"\r\n\r\n`
  return [Buffer.from(`${head}${toText(value)}\r\n`)]
}

function toText(value: JsonValue): string {
  return typeof value === 'string' ? value : stringifyLosslessJson(value)
}

/** As browsers do it: nothing in a name can end the header. */
function quote(text: string): string {
  return text.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}
