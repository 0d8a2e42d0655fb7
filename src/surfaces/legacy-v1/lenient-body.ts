/**
 * JSON bodies read as leniently as ComfyUI does: whatever the content type says, and an empty body is an empty object, because
 * clients post nothing where JSON is expected.
 */
import { isUtf8 } from 'node:buffer'
import type { FastifyRequest } from 'fastify'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../domain/errors.ts'
import { parseLosslessBody, readBodyBytes } from '../kit/json-body.ts'

export async function readLooseJson(request: FastifyRequest, maxBytes: number): Promise<JsonValue> {
  const bytes = await readBodyBytes(request.raw, { maxBytes })
  return isBlank(bytes) ? {} : parseLosslessBody(request.raw, bytes)
}

/** Throws `invalid_request` for anything but an object. */
export async function readLooseObject(request: FastifyRequest, maxBytes: number): Promise<JsonObject> {
  const value = await readLooseJson(request, maxBytes)
  if (!isJsonObject(value)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
  return value
}

function isBlank(bytes: Buffer): boolean {
  return bytes.length === 0 || (bytes.length < 64 && isUtf8(bytes) && bytes.toString('utf8').trim() === '')
}

const MAX_IDS = 1000

/** The ids of a member: a list, or one id alone. null is as if left out; anything else is refused. */
export function readIds(body: JsonObject, name: string): readonly string[] {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (value === undefined || value === null) return []
  const list = Array.isArray(value) ? value : [value]
  if (list.length > MAX_IDS) throw new ServiceError('invalid_request', `${name} may hold at most ${MAX_IDS} ids`)
  if (!list.every((id) => typeof id === 'string'))
    throw new ServiceError('invalid_request', `${name} must be a list of ids`)
  return list
}

/** A switch of a body; off when it is null or left out. */
export function readSwitch(body: JsonObject, name: string): boolean {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw new ServiceError('invalid_request', `${name} must be true or false`)
  return value
}
