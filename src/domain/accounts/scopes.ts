/** What a credential may do within its account. A key without scopes may do everything. */
import { ServiceError } from '../errors.ts'
import type { Caller } from './caller.ts'

export const SCOPES = ['jobs:read', 'jobs:write', 'assets:read', 'assets:write', 'models:read', 'models:run'] as const
export type Scope = (typeof SCOPES)[number]

export function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text)
}

/** Throws forbidden. Runs before anything is looked up, so the answer is the same for every id. */
export function mustHaveScope({ scopes }: Caller, scope: Scope): void {
  if (scopes === null || scopes.has(scope)) return
  throw new ServiceError('forbidden', `this credential has not the scope ${scope}; use one that has`, {
    details: { scope },
  })
}
