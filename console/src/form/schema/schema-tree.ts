/**
 * A JSON Schema as a tree that a form can draw: fields, groups, lists, and choices between shapes. A schema is written by strangers:
 * the tree is bounded in depth and size, references may go in circles, and whatever cannot be drawn is a field of JSON, so that
 * nothing is out of reach. Pure.
 */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import type { Field, FieldKind } from '../workflow-fields.ts'

interface NodeBase {
  readonly name: string
  readonly about: string | null
  readonly isRequired: boolean
  /** What the form begins with; undefined: with nothing. */
  readonly first: JsonValue | undefined
  /** JSON text that the service takes when nothing is said; null: none is known. */
  readonly preset: string | null
}

export interface LeafNode extends NodeBase {
  readonly kind: 'leaf'
  readonly field: Field
  /** JSON texts by what is shown, where choices are not all texts. */
  readonly choiceTexts: ReadonlyMap<string, string> | null
  readonly media: MediaForm | null
  readonly minLength: number
  readonly maxLength: number
}

export interface GroupNode extends NodeBase {
  readonly kind: 'group'
  readonly parts: readonly SchemaNode[]
}

export interface ListNode extends NodeBase {
  readonly kind: 'list'
  readonly item: SchemaNode
  readonly least: number
  readonly most: number
}

/** One of several shapes. */
export interface ShapesNode extends NodeBase {
  readonly kind: 'shapes'
  readonly shapes: readonly { readonly label: string; readonly node: SchemaNode }[]
}

export type SchemaNode = LeafNode | GroupNode | ListNode | ShapesNode

const MAX_DEPTH = 6
const MAX_NODES = 1000
const MAX_CHOICES = 1000
const MAX_SHAPES = 20
const MAX_HOPS = 20
const MAX_ITEMS = 1000
const LONG_TEXT = /prompt|text|description|message|content|system|lyrics/i
const SEED = /seed/i

interface Reading {
  readonly root: JsonValue
  /** How many more nodes the tree may have. */
  left: number
}

interface Place {
  readonly name: string
  /** The name of what it is a part of. */
  readonly within: string
  readonly isRequired: boolean
  readonly example: JsonValue | undefined
  readonly depth: number
}

/** `root` is the document that references lead into. */
export function toSchemaTree(schema: JsonValue, root: JsonValue): GroupNode {
  const reading: Reading = { root, left: MAX_NODES }
  const whole = follow(schema, reading)
  const place: Place = { name: '', within: '', isRequired: true, example: whole['example'], depth: 0 }
  const base = baseOf(whole, place)
  return isJsonObject(whole['properties']) ? toGroup(whole, place, reading) : { ...base, kind: 'group', parts: [] }
}

function toNode(given: JsonValue, place: Place, reading: Reading): SchemaNode {
  reading.left -= 1
  const schema = follow(given, reading)
  if (place.depth >= MAX_DEPTH || reading.left <= 0) return toLeaf(schema, place, 'json')
  const types = typesOf(schema)
  if (choicesOf(schema) !== null) return toLeaf(schema, place, 'choice')
  if (isJsonObject(schema['properties'])) return toGroup(schema, place, reading)
  const shapes = shapesOf(schema, types)
  if (shapes.length === 1) return toNode(withAbout(shapes[0], schema), place, reading)
  if (shapes.length > 1) return toShapes(schema, shapes, place, reading)
  const [type] = types
  if (types.length !== 1) return toLeaf(schema, place, 'json')
  if (type === 'array' && isJsonObject(schema['items'])) return toList(schema, place, reading)
  return toLeaf(schema, place, kindOf(String(type), schema, place))
}

function toGroup(schema: JsonObject, place: Place, reading: Reading): GroupNode {
  const { properties, required } = schema
  const wanted = new Set(Array.isArray(required) ? required : [])
  const examples = isJsonObject(place.example) ? place.example : {}
  const parts = Object.entries(isJsonObject(properties) ? properties : {}).map(([name, part]) => {
    const example = Object.hasOwn(examples, name) ? examples[name] : undefined
    const { depth } = place
    return toNode(part, { name, within: place.name, isRequired: wanted.has(name), example, depth: depth + 1 }, reading)
  })
  return {
    ...baseOf(schema, place),
    kind: 'group',
    parts: parts.toSorted((a, b) => Number(b.isRequired) - Number(a.isRequired)),
  }
}

function toList(schema: JsonObject, place: Place, reading: Reading): ListNode {
  const [least, most] = [countOf(schema['minItems'], 0), countOf(schema['maxItems'], MAX_ITEMS)]
  const within = { name: '', within: place.name, isRequired: true, example: undefined, depth: place.depth + 1 }
  return {
    ...baseOf(schema, place),
    kind: 'list',
    item: toNode(schema['items'] ?? {}, within, reading),
    least: Math.min(least, MAX_ITEMS),
    most: Math.min(most, MAX_ITEMS),
  }
}

function toShapes(schema: JsonObject, shapes: readonly JsonValue[], place: Place, reading: Reading): ShapesNode {
  const drawn = shapes.slice(0, MAX_SHAPES).map((shape) => {
    const within = { ...place, name: '', within: place.name, isRequired: true, depth: place.depth + 1 }
    const node = toNode(shape, within, reading)
    return { label: labelOf(follow(shape, reading), node), node }
  })
  return { ...baseOf(schema, place), kind: 'shapes', shapes: drawn }
}

function toLeaf(schema: JsonObject, place: Place, kind: FieldKind): LeafNode {
  const base = baseOf(schema, place)
  const choices = kind === 'choice' ? (choicesOf(schema) ?? []) : []
  const areTexts = choices.every((choice) => typeof choice === 'string')
  const show = (value: JsonValue) => (typeof value === 'string' ? value : stringifyLosslessJson(value))
  const media = kind === 'text' ? toMediaForm(schema, place.name, place.within) : null
  return {
    ...base,
    kind: 'leaf',
    media,
    choiceTexts: areTexts ? null : new Map(choices.map((choice) => [show(choice), stringifyLosslessJson(choice)])),
    minLength: countOf(schema['minLength'], 0),
    maxLength: countOf(schema['maxLength'], Number.MAX_SAFE_INTEGER),
    field: {
      node: '',
      input: place.name,
      kind,
      valueText: base.first === undefined ? '' : stringifyLosslessJson(base.first),
      choices: choices.map(show),
      min: boundOf(schema['minimum'] ?? schema['exclusiveMinimum']),
      max: boundOf(schema['maximum'] ?? schema['exclusiveMaximum']),
      tooltip: base.about,
      media: media?.kind ?? null,
      isSeed: kind === 'integer' && SEED.test(place.name),
    },
  }
}

function baseOf(schema: JsonObject, { name, isRequired, example }: Place): NodeBase {
  const { default: preset, description } = schema
  return {
    name,
    isRequired,
    about: typeof description === 'string' && description !== '' ? description : null,
    first: isRequired ? (example ?? preset) : preset,
    preset: preset === undefined ? null : stringifyLosslessJson(preset),
  }
}

/** Behind references, with the parts of `allOf` taken together. */
function follow(given: JsonValue, { root }: Reading): JsonObject {
  const schema = dereference(given, root)
  const { allOf } = schema
  if (!Array.isArray(allOf)) return schema
  // Parts of parts are left out: they may go in circles.
  const parts = allOf.slice(0, MAX_SHAPES).map((part) => dereference(part, root))
  return parts.reduce((whole, part) => join(whole, part), schema)
}

function dereference(given: JsonValue, root: JsonValue): JsonObject {
  let schema = given
  for (let hops = 0; hops < MAX_HOPS; hops++) {
    const reference: JsonValue | undefined = isJsonObject(schema) ? schema['$ref'] : undefined
    if (typeof reference !== 'string') return isJsonObject(schema) ? schema : {}
    schema = reference.startsWith('#/') ? dig(root, reference.slice(2).split('/')) : null
  }
  return {}
}

function join(a: JsonObject, b: JsonObject): JsonObject {
  const object = (value: JsonValue | undefined) => (isJsonObject(value) ? value : {})
  const list = (value: JsonValue | undefined) => (Array.isArray(value) ? value : [])
  const hasParts = isJsonObject(a['properties']) || isJsonObject(b['properties'])
  return {
    ...b,
    ...a,
    ...(hasParts && { properties: { ...object(a['properties']), ...object(b['properties']) } }),
    required: [...list(a['required']), ...list(b['required'])],
  }
}

function dig(value: JsonValue, path: readonly string[]): JsonValue {
  let at: JsonValue | undefined = value
  for (const step of path) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    at = isJsonObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
  }
  return at ?? null
}

function typesOf({ type, items }: JsonObject): readonly JsonValue[] {
  const all = Array.isArray(type) ? type : type === undefined ? [] : [type]
  const named = all.filter((word) => word !== 'null')
  return named.length === 0 && isJsonObject(items) ? ['array'] : named
}

function choicesOf(schema: JsonObject): readonly JsonValue[] | null {
  const { enum: choices } = schema
  if (Array.isArray(choices) && choices.length > 0) return choices.slice(0, MAX_CHOICES)
  return Object.hasOwn(schema, 'const') ? [schema['const']] : null
}

/** The shapes that a value may have, without nothing at all. */
function shapesOf(schema: JsonObject, types: readonly JsonValue[]): readonly JsonValue[] {
  const { oneOf, anyOf } = schema
  const named = Array.isArray(oneOf) ? oneOf : Array.isArray(anyOf) ? anyOf : []
  const shapes = named.filter((shape) => isJsonObject(shape) && shape['type'] !== 'null')
  if (shapes.length > 0 && types.length === 0) return shapes
  return types.length > 1 ? types.map((type) => ({ ...schema, type })) : []
}

function withAbout(shape: JsonValue, { description, default: preset }: JsonObject): JsonValue {
  if (!isJsonObject(shape)) return shape
  return {
    ...(description !== undefined && { description }),
    ...(preset !== undefined && { default: preset }),
    ...shape,
  }
}

const WORDS = { group: 'group', list: 'list', shapes: 'several' } as const
const LEAF_WORDS: Readonly<Record<FieldKind, string>> = {
  text: 'text',
  multiline: 'text',
  integer: 'whole number',
  number: 'number',
  switch: 'yes or no',
  choice: 'one of several',
  file: 'file',
  json: 'JSON',
}

function labelOf({ title, properties }: JsonObject, node: SchemaNode): string {
  if (typeof title === 'string' && title !== '') return title
  if (node.kind === 'leaf') return node.media === null ? LEAF_WORDS[node.field.kind] : `${node.media.kind} or address`
  if (node.kind !== 'group' || !isJsonObject(properties)) return WORDS[node.kind]
  // Shapes of one thing are often told apart by a part with one value.
  const mark = node.parts.find((part) => part.kind === 'leaf' && part.field.choices.length === 1)
  if (mark?.kind === 'leaf') return mark.field.choices[0]
  const names = node.parts.map(({ name }) => name)
  return names.length === 0 ? WORDS.group : names.slice(0, 3).join(', ')
}

function kindOf(type: string, { maxLength }: JsonObject, { name, within }: Place): FieldKind {
  if (type === 'integer' || type === 'number') return type
  if (type === 'boolean') return 'switch'
  if (type !== 'string') return 'json'
  const isLong = LONG_TEXT.test(name === '' ? within : name)
  return isLong && (typeof maxLength !== 'number' || maxLength > 100) ? 'multiline' : 'text'
}

function countOf(value: JsonValue | undefined, fallback: number): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : fallback
}

function boundOf(value: JsonValue | undefined): string | null {
  const text = value === undefined || typeof value === 'boolean' ? '' : stringifyLosslessJson(value)
  return /^-?\d/.test(text) ? text : null
}

export interface MediaForm {
  readonly kind: 'image' | 'video' | 'audio'
  /** As a data URI, or as base64 alone. */
  readonly isBare: boolean
}

const NAMES = {
  image: /(^|_)(image|images|img|picture|photo|mask|frame|background|avatar)(_|\d|$)/i,
  video: /(^|_)video(s)?(_|\d|$)/i,
  audio: /(^|_)(audio|sound|voice_sample)(_|\d|$)/i,
} as const
const ADDRESS_NAME = /^(url|uri|data|b64_json|base64)$/i
const NO_FILE = /(^|_)(id|ids|mode|size|format|count|quality|type|strength|weight|model|name|generation|config)$/i
const BYTES = /base64|data[ :-]?ur[il]/i

/** Whether a text of a schema stands for a picture, a video or a sound, and how its bytes are written. Pure. */
function toMediaForm(schema: JsonObject, name: string, within: string): MediaForm | null {
  const { format, contentMediaType, contentEncoding, description } = schema
  const about = typeof description === 'string' ? description : ''
  const told = [contentMediaType, format].find((word) => typeof word === 'string') as string | undefined
  const takesBytes = contentEncoding === 'base64' || ['binary', 'byte', 'data-url', 'data-uri'].includes(told ?? '')
  const isBare =
    (contentEncoding === 'base64' || told === 'byte' || /base64/i.test(about)) && !/data[ :-]?ur[il]/i.test(about)
  const kind =
    kindIn(contentMediaType) ?? kindIn(name) ?? (ADDRESS_NAME.test(name) || name === '' ? kindIn(within) : null)
  if (takesBytes) return { kind: kind ?? 'image', isBare }
  if (kind === null) return null
  if (typeof contentMediaType === 'string' || BYTES.test(about)) return { kind, isBare }
  // An address that the provider itself fetches cannot be a file of this machine.
  if (NO_FILE.test(name) || /^an (https )?address\.?$/i.test(about)) return null
  return { kind, isBare: false }
}

function kindIn(word: unknown): MediaForm['kind'] | null {
  if (typeof word !== 'string') return null
  const spaced = word.replaceAll(/([a-z])([A-Z])/g, '$1_$2').replaceAll(/[/-]/g, '_')
  return (['image', 'video', 'audio'] as const).find((kind) => NAMES[kind].test(spaced)) ?? null
}

/** A data URI in the way the field wants it. */
export function writeMedia(dataUri: string, { isBare }: MediaForm): string {
  return isBare ? dataUri.slice(dataUri.indexOf(',') + 1) : dataUri
}

/** How many bytes a long text of base64 stands for; null: it is an address, or nothing. */
export function bytesOf(text: string): number | null {
  const data = text.startsWith('data:') ? text.slice(text.indexOf(',') + 1) : text
  if (!text.startsWith('data:') && (text.length < 200 || !/^[A-Za-z0-9+/=]+$/.test(text.slice(0, 200)))) return null
  return Math.floor((data.length * 3) / 4)
}
