/**
 * Releases under an endpoint. A deployment may move between releases while versions stay as they are: calls run on whichever is served,
 * but those of a pinned version on the one alone that it was published on.
 */
import { ServiceError } from '../errors.ts'
import { type Endpoint, nameFor, type VersionRelease } from './endpoint.ts'
import type { Resolved } from './reach.ts'

/** The release that a deployment of this account serves now; null: it is on none, or not this account's to use. */
export type FindServedRelease = (accountId: string, deployment: string) => number | null

/** Which release calls find where the version was published; null: none, or the endpoint runs elsewhere by now. */
export function findServed(
  { accountId, settings }: Pick<Endpoint, 'accountId' | 'settings'>,
  { deployment }: VersionRelease,
  servedRelease: FindServedRelease,
): number | null {
  return settings.deployment === deployment ? servedRelease(accountId, deployment) : null
}

/** A version that would run on this release alone, and finds another one, or none. */
export function lacksRelease(release: VersionRelease | undefined, served: number | null): release is VersionRelease {
  return release?.isPinned === true && release.version !== served
}

/** Which release it is, and where it should be, is its owner's business. */
export function otherRelease(
  { endpoint, version }: Pick<Resolved, 'endpoint' | 'version'>,
  { release, served, accountId }: { release: VersionRelease; served: number | null; accountId: string },
): ServiceError {
  const name = nameFor(accountId, endpoint)
  if (endpoint.accountId !== accountId) return cannotRun(name)
  const { deployment, version: wanted } = release
  const isThere = endpoint.settings.deployment === deployment
  const now = !isThere
    ? `the endpoint no longer runs there`
    : `this serves ${served === null ? 'none' : `release ${served}`} now`
  return new ServiceError(
    'endpoint_stopped',
    `version ${version.number} of the endpoint ${name} runs on release ${wanted} of the deployment ${deployment} alone, and ${now}: have that release served there, or publish the version again`,
  )
}

export function cannotRun(name: string): ServiceError {
  return new ServiceError(
    'endpoint_stopped',
    `the endpoint ${name} cannot run at the moment; only its owner can put that right`,
  )
}
