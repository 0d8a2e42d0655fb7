/** The JSON bodies of operations that make assets: an object whose members are read one by one. */
import type { FastifyRequest } from 'fastify'
import { isJsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { readJsonBody } from '../../kit/bodies/json-body.ts'

interface AssetBody {
  member(name: string): JsonValue | undefined
  /** null when it is left out, or null itself. */
  text(name: string): string | null
  common(): { readonly tags: readonly string[]; readonly expiresInSeconds: number | null }
}

const MAX_BODY_BYTES = 64 * 1024

export async function readAssetBody(
  request: FastifyRequest,
  { maxBytes = MAX_BODY_BYTES }: { readonly maxBytes?: number } = {},
): Promise<AssetBody> {
  const body = await readJsonBody(request, { maxBytes })
  if (!isJsonObject(body)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
  const member = (name: string) => (Object.hasOwn(body, name) ? body[name] : undefined)

  /** null counts as left out. */
  function optional<Value extends JsonValue>(
    name: string,
    is: (value: JsonValue) => value is Value,
    problem: string,
  ): Value | null {
    const value = member(name) ?? null
    if (value === null) return null
    if (!is(value)) throw invalidField(name, problem)
    return value
  }

  return {
    member,
    text: (name) => optional(name, isText, 'must be a text'),
    common: () => ({
      tags: optional('tags', isTexts, 'must be a list of texts') ?? [],
      expiresInSeconds: optional('expires_in', isNumber, 'must be a whole number of seconds'),
    }),
  }
}

const isText = (value: JsonValue) => typeof value === 'string'
const isNumber = (value: JsonValue) => typeof value === 'number'
const isTexts = (value: JsonValue): value is string[] => Array.isArray(value) && value.every(isText)
