/** What requests say of files of the library: members of JSON bodies, fields of forms, and lists in queries. */
import type { FastifyRequest } from 'fastify'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../lib/json/lossless-json.ts'
import { TAGS_MAX_COUNT } from '../../../domain/assets/create/asset-fields.ts'
import { invalidField } from '../../../domain/errors.ts'
import { readLooseObject } from '../legacy-operation.ts'
import { toBaseName } from './file-names.ts'

const MAX_BODY_BYTES = 64 * 1024

export function readAssetBody(request: FastifyRequest): Promise<JsonObject> {
  return readLooseObject(request, MAX_BODY_BYTES)
}

/** undefined: left out. */
function memberOf(body: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(body, name) ? body[name] : undefined
}

/** undefined: left out, or null. */
export function textOf(body: JsonObject, name: string): string | undefined {
  const value = memberOf(body, name)
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') throw invalidField(name, 'must be a text')
  return value
}

/** The file of a name, without the folders around it. */
export function fileNameOf(body: JsonObject, name: string): string | undefined {
  const text = textOf(body, name)
  if (text === undefined) return undefined
  const base = toBaseName(text)
  if (base === '') throw invalidField(name, 'must name a file')
  return base
}

export function tagsOf(body: JsonObject): readonly string[] | undefined {
  const value = memberOf(body, 'tags')
  if (value === undefined || value === null) return undefined
  return mustBeTags(value)
}

/** A list that must hold something. */
export function someTagsOf(body: JsonObject): readonly string[] {
  const tags = tagsOf(body) ?? []
  if (tags.length === 0) throw invalidField('tags', 'must hold at least one tag')
  return tags
}

function mustBeTags(value: JsonValue): readonly string[] {
  const isList = Array.isArray(value) && value.length <= TAGS_MAX_COUNT && value.every((tag) => typeof tag === 'string')
  if (!isList) throw invalidField('tags', `must be a list of at most ${TAGS_MAX_COUNT} texts`)
  return value as string[]
}

/** An object, as text. */
export function metadataOf(body: JsonObject): string | undefined {
  const value = memberOf(body, 'user_metadata')
  if (value === undefined || value === null) return undefined
  if (!isJsonObject(value)) throw invalidField('user_metadata', 'must be an object')
  return stringifyLosslessJson(value)
}

/** null: there shall be none. */
export function previewOf(body: JsonObject): string | null | undefined {
  const value = memberOf(body, 'preview_id')
  if (value === undefined || value === null || typeof value === 'string') return value === '' ? null : value
  throw invalidField('preview_id', 'must be the id of an asset')
}

/** Fields of a form: tags come one by one or as JSON, and metadata as JSON. */
export function readAssetForm(fields: ReadonlyMap<string, readonly string[]>): JsonObject {
  const one = (name: string) => fields.get(name)?.[0]
  const tags = ['tags', 'tags[]'].flatMap((name) => fields.get(name) ?? []).flatMap(readTagField)
  const metadata = one('user_metadata')
  return {
    tags,
    ...(one('name') !== undefined && { name: one('name') as string }),
    ...(one('mime_type') !== undefined && { mime_type: one('mime_type') as string }),
    ...(one('preview_id') !== undefined && { preview_id: one('preview_id') as string }),
    ...(metadata !== undefined && metadata !== '' && { user_metadata: parseField('user_metadata', metadata) }),
  }
}

function readTagField(text: string): readonly string[] {
  if (!text.trim().startsWith('[')) return splitTags(text)
  return mustBeTags(parseField('tags', text))
}

function parseField(name: string, text: string): JsonValue {
  try {
    return parseLosslessJson(text)
  } catch {
    throw invalidField(name, 'must be JSON')
  }
}

/** A list in a query: separated by commas, repeated, or both. */
export function queryTags(query: URLSearchParams, name: string): readonly string[] {
  const tags = query.getAll(name).flatMap(splitTags)
  if (tags.length > TAGS_MAX_COUNT) throw invalidField(name, `may hold at most ${TAGS_MAX_COUNT} tags`)
  return tags
}

function splitTags(text: string): readonly string[] {
  return text.split(',').flatMap((tag) => (tag.trim() === '' ? [] : [tag.trim()]))
}
