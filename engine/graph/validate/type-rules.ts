/** Which output types may be linked to which input types. Types are strings, unions written with commas, or value lists. */
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { pythonEquals } from '../../../lib/python/values.ts'

const ANY = '*'
// The editor checks match types; the server accepts every link to or from one.
const MATCH = 'COMFY_MATCHTYPE_V3'

function members(type: string): string[] {
  return type.split(',').map((member) => member.trim())
}

/** Two union types are compatible when they have one member in common. */
export function canLink(received: unknown, wanted: unknown): boolean {
  if (received === wanted || received === ANY || wanted === ANY || received === MATCH || wanted === MATCH) return true
  // Old nodes may give a list of choices as an output's type.
  if (Array.isArray(received)) {
    return wanted === 'COMBO' || (Array.isArray(wanted) && pythonEquals(received as JsonValue, wanted as JsonValue))
  }
  if (typeof received !== 'string' || typeof wanted !== 'string') return false
  if (!received.includes(',') && !wanted.includes(',')) return received.trim() === wanted.trim()
  const accepted = new Set(members(wanted))
  const offered = members(received)
  return accepted.has(ANY) || offered.includes(ANY) || offered.some((member) => accepted.has(member))
}
