/** The calls of builds and deployments that `atelier env` makes, and the parts of the answers that it uses; spec/ describes all of it. */
import type { RunClient } from '../server/client.ts'
import { UnreachableError } from '../server/client.ts'
import { CommandError, EXIT } from '../terminal.ts'

export interface BuildWire {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly updatedAt: string
  readonly definition: Definition
  readonly warnings?: readonly FaultWire[]
}

interface FaultWire {
  readonly field: string
  readonly reason: string
}

export interface ModelWire {
  readonly type: string
  readonly filename: string
  readonly sourceUri?: string
  readonly blobId?: string
  readonly sha256?: string
}

export interface PackWire {
  readonly name: string
  readonly blobId?: string
  readonly id?: string
  readonly registryVersion?: string
  readonly repository?: string
  readonly gitRef?: string
  readonly commit?: string
}

/** What else a definition holds is kept. */
export interface Definition {
  readonly baseComfyVersion?: string
  readonly models?: readonly ModelWire[]
  readonly customNodes?: readonly PackWire[]
  readonly pipDependencies?: string
  readonly [other: string]: unknown
}

interface ReleaseRow {
  readonly id: string
  readonly buildId: string
  readonly version: number
  readonly status: string
  readonly deployable: boolean
  readonly createdAt: string
}

interface ArtifactWire {
  readonly os: string
  readonly gpu: string
  readonly status: string
  readonly failureReason: string | null
  readonly waitingReason: string | null
}

export interface ReleaseWire extends ReleaseRow {
  readonly artifacts: readonly ArtifactWire[]
  readonly artifactCounts: Readonly<Record<string, number>>
}

export interface DeploymentWire {
  readonly id: string
  readonly name: string
  readonly status: string
  readonly buildId: string
  readonly releaseId: string
  readonly releaseVersion: number
  readonly revision: number
  readonly computeConfig: {
    readonly gpuClass: string
    readonly region: string
    readonly min: number
    readonly max: number
  }
  readonly endpointUrl: string
  readonly error: string | null
  readonly stopReason: string | null
  readonly deletedAt: string | null
  readonly serving: {
    readonly capacity: { readonly ready: number; readonly busy: number; readonly starting: number }
    readonly jobsInQueue: number
  } | null
  readonly progress: {
    readonly step: string
    readonly modelsDone?: number
    readonly modelsTotal?: number
    readonly bytesDone?: number
    readonly bytesTotal?: number
  } | null
  readonly pendingUpdate: {
    readonly releaseId: string
    readonly status: string
    readonly kind: string
    readonly error: string | null
  } | null
}

export interface RevisionWire {
  readonly revision: number
  readonly releaseVersion: number
  readonly kind: string
  readonly createdBy: string
  readonly createdAt: string
  readonly fromRevision?: number
}

/** Where releases of the account had a file of this name from. */
export interface ModelCandidates {
  readonly filename: string
  readonly candidates: readonly { readonly sourceUri: string; readonly sha256: string; readonly type: string }[]
}

export const BUILDER = '/builder/v1'
export const DEPLOY = '/deploy/v1'

// The whole of a definition, or a long log, over a slow line.
const ANSWER_WITHIN_MS = 120_000

interface Asked {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

/** `path` begins behind the address of the service. An answer without a body is null. Throws refusals. */
export async function askEnv<Answer>(
  client: RunClient,
  path: string,
  { method = 'GET', body, headers }: Asked = {},
): Promise<Answer> {
  const response = await client.call(client.baseUrl + path, {
    method,
    headers: { ...headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  })
  const text = await response.text()
  try {
    return (text === '' ? null : JSON.parse(text)) as Answer
  } catch {
    throw new UnreachableError(`${response.url} does not answer with JSON: it is no server of this kind`)
  }
}

// Far more than an account may have.
const MAX_PAGES = 1000

/** All rows of a list, page after page; `cursor` is what the list calls the place to go on from. */
async function askPages<Row>(
  client: RunClient,
  { path, member, cursor }: { readonly path: string; readonly member: string; readonly cursor: 'cursor' | 'after' },
): Promise<Row[]> {
  const rows: Row[] = []
  let next: unknown = null
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const query = new URLSearchParams({ limit: '100', ...(typeof next === 'string' && { [cursor]: next }) })
    const page = await askEnv<Record<string, unknown>>(client, `${path}?${query}`)
    rows.push(...((page[member] ?? []) as Row[]))
    next = page['nextCursor']
    if (typeof next !== 'string' || next === '') break
  }
  return rows
}

export const readBuild = (client: RunClient, id: string) =>
  askEnv<BuildWire>(client, `${BUILDER}/builds/${encodeURIComponent(id)}`)

export const listBuilds = (client: RunClient) =>
  askPages<
    Pick<BuildWire, 'id' | 'name' | 'updatedAt'> & { readonly numModels: number; readonly numCustomNodes: number }
  >(client, { path: `${BUILDER}/builds`, member: 'builds', cursor: 'cursor' })

/** The newest first. */
export const listReleases = (client: RunClient, buildId: string) =>
  askPages<ReleaseRow>(client, {
    ...{ path: `${BUILDER}/builds/${encodeURIComponent(buildId)}/releases`, member: 'releases', cursor: 'cursor' },
  })

export const readRelease = (client: RunClient, id: string) =>
  askEnv<ReleaseWire>(client, `${BUILDER}/releases/${encodeURIComponent(id)}`)

/** Those that are not deleted. */
export async function listDeployments(client: RunClient): Promise<DeploymentWire[]> {
  const all = await askPages<DeploymentWire>(client, {
    ...{ path: `${DEPLOY}/deployments`, member: 'deployments', cursor: 'after' },
  })
  return all.filter(({ deletedAt }) => deletedAt === null)
}

export const deploymentPath = (id: string, ...rest: readonly string[]) =>
  [`${DEPLOY}/deployments`, id, ...rest].map((part, at) => (at === 0 ? part : encodeURIComponent(part))).join('/')

/** By id, by name, or by `build/name` where builds have deployments of the same name. */
export async function findDeployment(client: RunClient, wanted: string): Promise<DeploymentWire> {
  if (wanted.startsWith('dep-')) return askEnv<DeploymentWire>(client, deploymentPath(wanted))
  const [name, buildName = null] = wanted.split('/').reverse()
  const named = (await listDeployments(client)).filter((one) => one.name === name)
  const builds = buildName === null || named.length === 0 ? [] : await listBuilds(client)
  const found =
    buildName === null
      ? named
      : named.filter(({ buildId }) => builds.some(({ id, name: own }) => id === buildId && own === buildName))
  const [only] = found
  if (only !== undefined && found.length === 1) return only
  const problem =
    only === undefined
      ? `there is no deployment ${wanted}; atelier env ls lists them`
      : `${found.length} deployments are called ${wanted}: say which with build/name or an id: ${found.map(({ id }) => id).join(', ')}`
  throw new CommandError(problem, EXIT.failed)
}

/** By id; by its number within the build; null: the newest one that can be deployed. */
export async function findRelease(client: RunClient, buildId: string, wanted: string | null): Promise<ReleaseRow> {
  if (wanted?.startsWith('rel-') === true) return readRelease(client, wanted)
  const releases = await listReleases(client, buildId)
  const found =
    wanted === null
      ? releases.filter(({ deployable }) => deployable).sort((one, other) => other.version - one.version)[0]
      : releases.find(({ version }) => String(version) === wanted.replace(/^v/, ''))
  if (found !== undefined) return found
  const problem =
    wanted === null
      ? 'the build has no release that can be deployed; cut one with: atelier env release'
      : `the build has no release ${wanted}; it has ${releases.map(({ version }) => version).join(', ') || 'none'}`
  throw new CommandError(problem, EXIT.failed)
}
