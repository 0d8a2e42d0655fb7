/** What was filled into a tree of a schema, and the input that it comes to, as JSON text. Pure. */
import {
  isJsonObject,
  type JsonValue,
  NumberText,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import { readField } from '../workflow-fields.ts'
import type { GroupNode, LeafNode, ListNode, SchemaNode, ShapesNode } from './schema-tree.ts'

interface LeafDraft {
  readonly kind: 'leaf'
  /** null: not touched, it is as it began. */
  readonly text: string | null
  /** Of a file that was put here. */
  readonly fileName?: string
}

export interface GroupDraft {
  readonly kind: 'group'
  /** In the order of the node's parts. */
  readonly parts: readonly Draft[]
  /** Names that the schema does not have, with their JSON texts: from the JSON view. */
  readonly rest: readonly (readonly [name: string, valueText: string])[]
}

interface ListDraft {
  readonly kind: 'list'
  readonly items: readonly Draft[]
}

interface ShapesDraft {
  readonly kind: 'shapes'
  /** Which shape; -1: none, nothing is sent. */
  readonly at: number
  readonly draft: Draft | null
}

export type Draft = LeafDraft | GroupDraft | ListDraft | ShapesDraft

/** What a form begins with. */
export function beginDraft(node: SchemaNode): Draft {
  switch (node.kind) {
    case 'leaf':
      return { kind: 'leaf', text: null }
    case 'group':
      return { kind: 'group', parts: node.parts.map(beginDraft), rest: [] }
    case 'list':
      return node.first === undefined ? emptyList(node) : fillDraft(node, node.first)
    case 'shapes':
      if (node.first !== undefined) return fillDraft(node, node.first)
      return node.isRequired ? chooseShape(node, 0) : { kind: 'shapes', at: -1, draft: null }
  }
}

function emptyList(node: ListNode): ListDraft {
  const rows = node.isRequired ? node.least : 0
  return { kind: 'list', items: Array.from({ length: rows }, () => beginDraft(node.item)) }
}

export function chooseShape(node: ShapesNode, at: number): ShapesDraft {
  const shape = node.shapes[at]
  return shape === undefined
    ? { kind: 'shapes', at: -1, draft: null }
    : { kind: 'shapes', at, draft: beginDraft(shape.node) }
}

/** The draft that comes to this value. */
export function fillDraft(node: SchemaNode, value: JsonValue): Draft {
  switch (node.kind) {
    case 'leaf':
      return { kind: 'leaf', text: showIn(node, value) }
    case 'group': {
      const given = isJsonObject(value) ? value : {}
      const known = new Set(node.parts.map(({ name }) => name))
      return {
        kind: 'group',
        parts: node.parts.map((part) =>
          Object.hasOwn(given, part.name) ? fillDraft(part, given[part.name]) : blank(part),
        ),
        rest: Object.entries(given)
          .filter(([name]) => !known.has(name))
          .map(([name, item]) => [name, stringifyLosslessJson(item)]),
      }
    }
    case 'list':
      return { kind: 'list', items: (Array.isArray(value) ? value : []).map((item) => fillDraft(node.item, item)) }
    case 'shapes': {
      const at = Math.max(
        0,
        node.shapes.findIndex((shape) => isLike(shape.node, value)),
      )
      const shape = node.shapes[at]
      return shape === undefined ? chooseShape(node, -1) : { kind: 'shapes', at, draft: fillDraft(shape.node, value) }
    }
  }
}

/** Left out by somebody who wrote everything that they meant. */
function blank(node: SchemaNode): Draft {
  if (node.kind === 'leaf') return { kind: 'leaf', text: node.isRequired ? '' : null }
  if (node.kind === 'list') return { kind: 'list', items: [] }
  return node.kind === 'shapes' && !node.isRequired ? chooseShape(node, -1) : beginDraft(node)
}

function isLike(node: SchemaNode, value: JsonValue): boolean {
  if (node.kind === 'group') return isJsonObject(value) && node.parts.every((part) => fitsPart(part, value[part.name]))
  if (node.kind === 'list') return Array.isArray(value)
  if (node.kind === 'shapes') return node.shapes.some((shape) => isLike(shape.node, value))
  const { kind, choices } = node.field
  if (kind === 'choice') return choices.includes(showIn(node, value))
  if (kind === 'switch') return typeof value === 'boolean'
  if (kind === 'json') return true
  return kind === 'text' || kind === 'multiline' ? typeof value === 'string' : isNumber(value)
}

function fitsPart(part: SchemaNode, value: JsonValue | undefined): boolean {
  return value === undefined
    ? !part.isRequired
    : part.kind !== 'leaf' || part.field.kind !== 'choice' || isLike(part, value)
}

function isNumber(value: JsonValue): boolean {
  return typeof value === 'number' || typeof value === 'bigint' || value instanceof NumberText
}

/** What stands in the field for a value. */
function showIn({ field, choiceTexts }: LeafNode, value: JsonValue): string {
  const isText =
    field.kind === 'text' || field.kind === 'multiline' || (field.kind === 'choice' && choiceTexts === null)
  return (isText || field.kind === 'choice') && typeof value === 'string' ? value : stringifyLosslessJson(value)
}

export function textIn(node: LeafNode, draft: Draft): string {
  if (draft.kind === 'leaf' && draft.text !== null) return draft.text
  return node.first === undefined ? '' : showIn(node, node.first)
}

export interface DraftReading {
  /** The input as JSON text. */
  readonly text: string
  /** By the path of the part: its number, and that of its part, and so on. */
  readonly problems: ReadonlyMap<string, string>
}

/** What was left empty and need not be filled is not sent. */
export function readDraft(node: GroupNode, draft: Draft): DraftReading {
  const problems = new Map<string, string>()
  return { text: read(node, draft, '', problems) ?? '{}', problems }
}

type Problems = Map<string, string>

function read(node: SchemaNode, draft: Draft, path: string, problems: Problems): string | null {
  const text = readWhole(node, draft, path, problems)
  return !node.isRequired && text === node.preset ? null : text
}

function readWhole(node: SchemaNode, draft: Draft, path: string, problems: Problems): string | null {
  if (node.kind === 'leaf' && draft.kind === 'leaf') return readLeaf(node, draft, path, problems)
  if (node.kind === 'group' && draft.kind === 'group') return readGroup(node, draft, path, problems)
  if (node.kind === 'list' && draft.kind === 'list') return readList(node, draft, path, problems)
  if (node.kind !== 'shapes' || draft.kind !== 'shapes') return null
  const shape = node.shapes[draft.at]
  if (shape !== undefined && draft.draft !== null) return read(shape.node, draft.draft, `${path}/${draft.at}`, problems)
  if (node.isRequired) problems.set(path, 'needed')
  return null
}

function readLeaf(node: LeafNode, { text }: LeafDraft, path: string, problems: Problems): string | null {
  const { field, isRequired, choiceTexts, minLength, maxLength } = node
  const fail = (problem: string) => {
    problems.set(path, problem)
    return null
  }
  if (text === null && field.kind === 'switch' && isRequired) return field.valueText === '' ? 'false' : field.valueText
  if (text === null && !isRequired) return null
  const typed = text ?? textIn(node, { kind: 'leaf', text: null })
  if (typed.trim() === '') return isRequired ? fail('needed') : null
  if (choiceTexts !== null) return choiceTexts.get(typed) ?? fail('not one of the choices')
  const isText = field.kind === 'text' || field.kind === 'multiline'
  const length = isText ? [...typed].length : minLength
  if (length < minLength) return fail(`at least ${minLength} characters`)
  if (isText && length > maxLength) return fail(`at most ${maxLength} characters`)
  const found = readField(field, typed)
  return 'problem' in found ? fail(found.problem) : found.valueText
}

function readGroup(node: GroupNode, draft: GroupDraft, path: string, problems: Problems): string | null {
  if (!node.isRequired && !isTouched(draft)) return null
  const pairs = node.parts.flatMap((part, index) => {
    const text = read(part, draft.parts[index], `${path}/${index}`, problems)
    return text === null ? [] : [`${JSON.stringify(part.name)}:${text}`]
  })
  const rest = draft.rest.map(([name, text]) => `${JSON.stringify(name)}:${text}`)
  return `{${[...pairs, ...rest].join(',')}}`
}

function readList(node: ListNode, { items }: ListDraft, path: string, problems: Problems): string | null {
  if (items.length === 0 && !node.isRequired) return null
  if (items.length < node.least) problems.set(path, `at least ${node.least}`)
  if (items.length > node.most) problems.set(path, `at most ${node.most}`)
  const texts = items.map((item, index) => read(node.item, item, `${path}/${index}`, problems) ?? 'null')
  return `[${texts.join(',')}]`
}

/** Whether somebody filled in something: the rows and shapes that a form begins with do not count. */
function isTouched(draft: Draft): boolean {
  if (draft.kind === 'leaf') return draft.text !== null
  if (draft.kind === 'list') return draft.items.some(isTouched)
  if (draft.kind === 'shapes') return draft.at > 0 || (draft.draft !== null && isTouched(draft.draft))
  return draft.rest.length > 0 || draft.parts.some(isTouched)
}

/** From the JSON view; null: not an object. */
export function draftOfText(node: GroupNode, text: string): Draft | null {
  const value = parseLosslessJson(text)
  return isJsonObject(value) ? fillDraft(node, value) : null
}
