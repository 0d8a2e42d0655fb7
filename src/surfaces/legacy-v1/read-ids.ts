/** Ids and switches in a body. One id may stand without its list, and null is as if left out; anything else is refused. */

import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../domain/errors.ts'

const MAX_IDS = 1000

export function readIds(body: JsonObject, name: string): readonly string[] {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (value === undefined || value === null) return []
  const list = Array.isArray(value) ? value : [value]
  if (list.length > MAX_IDS) throw new ServiceError('invalid_request', `${name} may hold at most ${MAX_IDS} ids`)
  if (!list.every((id) => typeof id === 'string'))
    throw new ServiceError('invalid_request', `${name} must be a list of ids`)
  return list
}

export function readSwitch(body: JsonObject, name: string): boolean {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw new ServiceError('invalid_request', `${name} must be true or false`)
  return value
}
