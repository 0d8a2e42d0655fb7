/** A JSON body whatever its type says; an empty one is an empty object, because clients post nothing where JSON is expected. */
import { isUtf8 } from 'node:buffer'
import type { FastifyRequest } from 'fastify'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../domain/errors.ts'
import { parseLosslessBody, readBodyBytes } from '../kit/bodies/json-body.ts'

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
