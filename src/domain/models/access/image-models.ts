/** A request for pictures in OpenAI's form as an input of a model of the catalogue, and the pictures in its answer. Pure. */
import type { ImageForm, ImageSize, Json, JsonRecord, Model } from '../catalog/model.ts'
import { findLeaves, isRecord } from '../catalog/model.ts'
import { RouterError } from '../router-error.ts'

interface WantedImages {
  readonly prompt: string | null
  readonly n: number | null
  /** All other parameters. */
  readonly others: JsonRecord
  /** Data URIs. */
  readonly images: readonly string[]
  readonly mask: string | null
  /** Forms have texts only. */
  readonly isForm?: boolean
}

/** Where another word than this one would be lost silently. */
const DEFAULTS: Readonly<Record<string, readonly string[]>> = {
  style: ['auto'],
  background: ['auto'],
  input_fidelity: ['auto', 'low'],
  moderation: ['auto'],
}
// Says how good, where the model has one way only.
const IGNORED: ReadonlySet<string> = new Set(['quality'])

/** Throws invalid_fields, which names the parameter. */
export function toImageInput({ images: form, input }: Model, wanted: WantedImages): JsonRecord {
  if (form == null) throw new Error('a model without a form for pictures was asked for some')
  const made: Record<string, Json> = structuredClone(form.set) as Record<string, Json>
  const { prompt, n, images, mask } = wanted
  if (prompt !== null && form.prompt !== null) setAt(made, form.prompt, prompt)
  else if (prompt === null && form.prompt !== null) throw refused('prompt', 'is required')
  if (n !== null && form.n !== null) setAt(made, form.n, n)
  else if (n !== null && n !== 1) throw refused('n', 'must be 1: this model makes one picture at a time')
  setImages(made, form, images)
  if (mask !== null && form.mask === null) throw refused('mask', 'is not taken by this model')
  if (mask !== null && form.mask !== null) setAt(made, form.mask, mask)
  const properties = input.schema?.['properties']
  for (const [name, value] of Object.entries(wanted.others)) {
    if (name === 'size') setSize(made, form.size, value)
    else if (form.same.includes(name)) {
      // Everywhere the same as nothing said.
      if (value !== 'auto') made[name] = value
    } else if (Object.hasOwn(DEFAULTS, name)) {
      if (!DEFAULTS[name]?.includes(String(value))) throw refused(name, 'cannot be chosen with this model')
    } else if (!IGNORED.has(name)) {
      if (!isRecord(properties) || !Object.hasOwn(properties, name))
        throw refused(name, 'is no parameter of this model')
      made[name] = wanted.isForm === true ? ofText(value, properties[name]) : value
    }
  }
  return made
}

function setImages(made: Record<string, Json>, { image }: ImageForm, images: readonly string[]): void {
  if (images.length === 0) return
  if (image === null) throw refused('image', 'is not taken by this model')
  if (images.length > image.max) throw refused('image', `may be sent ${image.max} times`)
  const texts = image.as === 'data_uri' ? images : images.map((uri) => uri.slice(uri.indexOf(',') + 1))
  const [first = ''] = image.fields
  if (image.isList) setAt(made, first, texts)
  else for (const [index, text] of texts.entries()) setAt(made, image.fields[index] ?? first, text)
}

/** What a text of a form says, where the schema asks for something else. */
function ofText(value: Json, schema: Json | undefined): Json {
  const type = isRecord(schema) ? schema['type'] : null
  if (typeof value !== 'string') return value
  if ((type === 'integer' || type === 'number') && /^-?\d{1,15}(\.\d{1,9})?$/.test(value)) return Number(value)
  return type === 'boolean' && (value === 'true' || value === 'false') ? value === 'true' : value
}

const SIZE = /^([1-9]\d{1,4})x([1-9]\d{1,4})$/

function setSize(made: Record<string, Json>, size: ImageSize | null, value: Json): void {
  if (value === 'auto') return
  const [, width, height] = SIZE.exec(String(value)) ?? []
  if (width === undefined || height === undefined) throw refused('size', 'must be written like 1024x1024, or auto')
  if (size === null) throw refused('size', 'cannot be chosen with this model')
  if (size.kind === 'pair') {
    setAt(made, size.width, Number(width))
    setAt(made, size.height, Number(height))
    return
  }
  const found = size.values === null ? String(value) : size.values[String(value)]
  if (found === undefined)
    throw refused('size', `must be one of ${Object.keys(size.values ?? {}).join(', ')} with this model`)
  setAt(made, size.field, found)
}

function setAt(made: Record<string, Json>, path: string, value: Json): void {
  const names = path.split('.')
  const last = names.pop() ?? path
  let holder = made
  for (const name of names) {
    const next: Json = holder[name] ?? {}
    holder[name] = next
    holder = next as Record<string, Json>
  }
  holder[last] = value
}

function refused(name: string, msg: string): RouterError {
  const failure = { loc: ['body', name], msg, type: 'value_error' }
  return new RouterError('invalid_fields', 'the model cannot do what was asked for', { failures: [failure] })
}

export type MadeImage = { readonly base64: string } | { readonly url: string }

/** In order; where an answer has both, the bytes. */
export function findImages({ base64, url }: ImageForm, answer: unknown): readonly MadeImage[] {
  const textsAt = (path: ImageForm['url']) =>
    path === null ? [] : findLeaves(answer, path).flatMap(({ value }) => (isText(value) ? [value] : []))
  const inline = textsAt(base64).map((text) => ({ base64: text }))
  return inline.length > 0 ? inline : textsAt(url).map((text) => ({ url: text }))
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
