/**
 * The two ways in which an address names a deployment: by host, `{deployment}.run.<domain>` (with the staging label on either
 * side of `run`), and by prefix, `/deployment/{deployment}`. A prefix is taken off before any route is looked for, so every
 * surface answers below it as it does elsewhere; links carry it. Whether such a deployment exists is not decided here.
 */
import type { IncomingMessage } from 'node:http'
import { ServiceError } from '../../../domain/errors.ts'

/** The deployment that a host name names; null when it names none. */
export type DeploymentHosts = (name: string) => string | null

export type RouteDeployment = (request: IncomingMessage) => void

export interface DeploymentAddress {
  readonly id: string
  /** `/deployment/{id}`. */
  readonly prefix: string
}

type Naming = { readonly deploymentId: string | null }

/**
 * The pool that an address is limited to; null for an address that names no deployment. Throws not_found for a deployment that
 * this account may not use, exactly as for one that does not exist.
 */
export type PoolOf = (address: Naming, accountId: string) => string | null

const ADDRESS = Symbol('deployment address')
type Addressed = IncomingMessage & { [ADDRESS]?: DeploymentAddress }

const PREFIX = '/deployment/'
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

export function deploymentAddressOf(request: IncomingMessage): DeploymentAddress | null {
  return (request as Addressed)[ADDRESS] ?? null
}

/** Before every path that is meant for this deployment; '' for none. */
export function toDeploymentPrefix(id: string | null): string {
  return id === null ? '' : PREFIX + id
}

/** For paths that belong to an account as a whole: at the address of a deployment they do not exist. */
export function mustNameNoDeployment({ deploymentId }: Naming): null {
  if (deploymentId === null) return null
  throw new ServiceError('not_found', 'there is nothing under this address')
}

export function createDeploymentHosts(options: {
  readonly domain: string
  readonly stagingLabel: string
}): DeploymentHosts {
  const { domain, stagingLabel } = options
  // The longer ones first: a label is never part of an id.
  const suffixes = [`.${stagingLabel}.run.${domain}`, `.run.${stagingLabel}.${domain}`, `.run.${domain}`]
  return (name) => {
    const suffix = suffixes.find((end) => name.endsWith(end))
    const id = suffix === undefined ? '' : name.slice(0, -suffix.length)
    return LABEL.test(id) ? id : null
  }
}

export function createRouteDeployment(mountPrefix: string): RouteDeployment {
  const start = mountPrefix + PREFIX
  return (request) => {
    const { url } = request
    if (url === undefined || !url.startsWith(start)) return
    const end = url.indexOf('/', start.length)
    const id = end === -1 ? '' : url.slice(start.length, end)
    if (!LABEL.test(id)) return
    ;(request as Addressed)[ADDRESS] = { id, prefix: PREFIX + id }
    request.url = mountPrefix + url.slice(end)
  }
}
