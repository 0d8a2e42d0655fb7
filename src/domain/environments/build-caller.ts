/** Who asks for builds. Whoever pushes a build runs code on the operator's machines, so the operator says which accounts may. */
import type { Caller } from '../accounts/caller.ts'
import { BuildError } from './build-error.ts'

export type BuildCaller = Pick<Caller, 'accountId' | 'keyId'>

export function mustBuild(
  { mayBuild }: { readonly mayBuild: (accountId: string) => boolean },
  { accountId }: BuildCaller,
): void {
  if (mayBuild(accountId)) return
  const remedy = 'the operator of this service names the accounts that may, in its setting builds'
  throw new BuildError('not_enabled', `this account may not make builds: they run code on the machines here; ${remedy}`)
}

export function actorOf({ accountId, keyId }: BuildCaller): string {
  return keyId === null ? `token of account ${accountId}` : `key ${keyId}`
}
