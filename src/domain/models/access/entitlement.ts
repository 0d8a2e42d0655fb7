/**
 * Which models an account may use, by the patterns of its limits: `bfl/flux-pro`, `bfl/*`, `kling/v1-*`, or `*` for all. What is
 * denied is denied, whatever else allows it. A model that names an entitlement is only for accounts whose list allows it.
 */
import type { AccountLimits } from '../../accounts/limits/tiers.ts'
import type { Model } from '../catalog/model.ts'

export type MayUse = (model: Pick<Model, 'id' | 'entitlement'>) => boolean

/** Remembers its answer about each model: it stays right as long as the limits are the same. */
export function createMayUse({ allowModels, denyModels }: Pick<AccountLimits, 'allowModels' | 'denyModels'>): MayUse {
  const known = new Map<string, boolean>()
  const isIn = (patterns: readonly string[], id: string) => patterns.some((pattern) => matchesModel(pattern, id))

  function decide({ id, entitlement }: Pick<Model, 'id' | 'entitlement'>): boolean {
    if (isIn(denyModels, id)) return false
    return allowModels === null ? entitlement === null : isIn(allowModels, id)
  }

  return (model) => {
    const name = `${model.id} ${model.entitlement ?? ''}`
    const said = known.get(name) ?? decide(model)
    known.set(name, said)
    return said
  }
}

/** `*` stands for any letters within a part of the id, and alone for every id. */
export function matchesModel(pattern: string, id: string): boolean {
  if (pattern === '*') return true
  const [provider = '', name = ''] = pattern.split('/')
  const [idProvider = '', idName = ''] = id.split('/')
  return matchesPart(provider, idProvider) && matchesPart(name, idName)
}

/** Every star takes as little as possible, so the time grows with the two lengths only, whatever an operator wrote. */
function matchesPart(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return pattern === text
  const last = rest.pop() ?? ''
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
  let from = first.length
  for (const piece of rest) {
    const at = text.indexOf(piece, from)
    if (at < 0 || at + piece.length > text.length - last.length) return false
    from = at + piece.length
  }
  return true
}
