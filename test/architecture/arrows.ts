/**
 * The rules of which file may import which, as pure functions of file names, so that a test can show what they refuse. The engine
 * (`engine`) and the service (`src`) both build on `lib`. The service uses the graph language (`engine/graph`) and the engine's
 * entry (`engine/index.ts`); the engine imports nothing of the service.
 */

export type Layer =
  | 'bin'
  | 'cli'
  | 'app'
  | 'listeners'
  | 'compose'
  | 'config'
  | 'surfaces'
  | 'adapters'
  | 'domain'
  | 'engine'
  | 'engine door'
  | 'graph'
  | 'lib'

const MAY_IMPORT: Record<Layer, readonly Layer[]> = {
  bin: ['cli'],
  cli: ['app', 'listeners', 'compose', 'config', 'engine door', 'graph', 'lib'],
  app: ['listeners', 'compose', 'surfaces', 'domain', 'config', 'graph', 'lib'],
  listeners: ['compose', 'surfaces', 'domain', 'config', 'graph', 'lib'],
  compose: ['adapters', 'domain', 'config', 'graph', 'lib'],
  config: ['lib'],
  surfaces: ['domain', 'graph', 'lib'],
  adapters: ['domain', 'engine door', 'graph', 'lib'],
  domain: ['graph', 'lib'],
  'engine door': ['engine', 'graph', 'lib'],
  engine: ['graph', 'lib'],
  graph: ['lib'],
  lib: [],
}

/** Each folder of the domain imports only rows before its own. */
const DOMAIN_ROWS: readonly (readonly string[])[] = [
  ['errors.ts'],
  ['accounts', 'events', 'service-nodes'],
  ['assets', 'credits', 'idempotency', 'webhooks'],
  ['workflows', 'moderation'],
  ['engine'],
  ['environments'],
  ['jobs', 'models', 'deployments'],
  ['endpoints'],
  ['workers', 'schedules'],
  ['store.ts', 'transfer'],
]

/** Exceptions: imports within one row that are allowed, in this direction only. */
const ALLOWED_NEIGHBOURS: Readonly<Record<string, string>> = {
  assets: 'idempotency', // an upload claims its key in the transaction that mints the asset
}

export function layerOf(file: string): Layer | null {
  if (file === 'engine/index.ts') return 'engine door'
  if (file.startsWith('engine/graph/')) return 'graph'
  const [house, first] = file.split('/')
  if (house === 'engine' || house === 'lib') return house
  if (house !== 'src' || first === undefined) return null
  const name = first.replace(/\.ts$/, '')
  return Object.hasOwn(MAY_IMPORT, name) ? (name as Layer) : null
}

function rowOf(file: string): { readonly folder: string; readonly row: number } {
  const folder = file.split('/')[2]
  return { folder, row: DOMAIN_ROWS.findIndex((row) => row.includes(folder)) }
}

function refuseInDomain(from: string, to: string): string | null {
  const source = rowOf(from)
  const target = rowOf(to)
  if (source.row === -1 || target.row === -1) return 'a folder of the domain that stands in no row'
  if (source.folder === target.folder || target.row < source.row) return null
  if (ALLOWED_NEIGHBOURS[source.folder] === target.folder) return null
  return 'a domain folder imports only rows before its own'
}

function refuseInSurfaces(from: string, to: string): string | null {
  const [, , source, ...sourceRest] = from.split('/')
  const [, , target, ...targetRest] = to.split('/')
  const sourceIsRoot = sourceRest.length === 0
  if (sourceIsRoot || source === target) return null
  if (targetRest.length === 0) return 'a surface does not know the server that mounts it'
  if (source === 'kit') return 'the kit knows no surface'
  return target === 'kit' ? null : 'surfaces never import each other'
}

/** `adapters/<port>/…`: one port's implementations know nothing of another port's. */
function refuseInAdapters(from: string, to: string): string | null {
  return from.split('/')[2] === to.split('/')[2] ? null : 'an adapter imports no adapter of another port'
}

/** Why `from` must not import `to`, or null when it may. Both are paths such as `src/domain/jobs/job.ts`. */
export function refuseArrow(from: string, to: string): string | null {
  const source = layerOf(from)
  const target = layerOf(to)
  if (source === null || target === null) return 'a file outside the known layers'
  if (source === target) {
    if (source === 'domain') return refuseInDomain(from, to)
    if (source === 'surfaces') return refuseInSurfaces(from, to)
    if (source === 'adapters') return refuseInAdapters(from, to)
    return null
  }
  return MAY_IMPORT[source].includes(target) ? null : `${source} does not import ${target}`
}

/** One path through every file of a cycle, or null when there is none. */
export function findCycle(graph: ReadonlyMap<string, readonly string[]>): string[] | null {
  const done = new Set<string>()
  const path: string[] = []
  function visit(file: string): string[] | null {
    if (done.has(file)) return null
    const seenAt = path.indexOf(file)
    if (seenAt !== -1) return [...path.slice(seenAt), file]
    path.push(file)
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next)
      if (cycle !== null) return cycle
    }
    path.pop()
    done.add(file)
    return null
  }
  for (const file of graph.keys()) {
    const cycle = visit(file)
    if (cycle !== null) return cycle
  }
  return null
}
