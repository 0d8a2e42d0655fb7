/** A list of ids in a body. Clients send what they like in it; only texts can be ids. */
import { ServiceError } from '../../domain/errors.ts'
import type { JsonObject } from '../../lib/lossless-json.ts'

const MAX_IDS = 1000

export function readIds(body: JsonObject, name: string): readonly string[] {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (value === undefined || value === null) return []
  const list = Array.isArray(value) ? value : [value]
  if (list.length > MAX_IDS) throw new ServiceError('invalid_request', `${name} may hold at most ${MAX_IDS} ids`)
  return list.filter((id) => typeof id === 'string')
}
