/** Which documents have a client, and what it is called. */
export interface Api {
  /** The document, below `spec/`. */
  readonly source: string
  /** `atelier/client` for `jobs`, `atelier/client/<door>` for the others. */
  readonly door: string
  /** In front of the names of types in Python, where all of them are in one file. */
  readonly prefix: string
  readonly about: string
}

export const APIS: readonly Api[] = [
  { source: 'jobs-v2.openapi.json', door: 'jobs', prefix: '', about: 'Jobs API v2' },
  { source: 'router.openapi.json', door: 'router', prefix: 'Router', about: 'Model Router' },
  { source: 'admin.openapi.json', door: 'admin', prefix: 'Admin', about: 'Admin API' },
  { source: 'deploy-v1.openapi.json', door: 'deployments', prefix: 'Deploy', about: 'Deployments on releases' },
  { source: 'builder-v1.openapi.json', door: 'builds', prefix: 'Builder', about: 'Builds and releases' },
]

/** The one that the door `atelier/client` itself opens. */
export const MAIN_DOOR = 'jobs'
