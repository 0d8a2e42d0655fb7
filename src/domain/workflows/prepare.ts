/**
 * From a submitted workflow to the text that is executed: format, shape, files, validation, in this order. Everything that can
 * be wrong with a workflow is refused here, before a job exists; running it is left to the engine.
 */
import { createFileCheck, type FileNames, findFileNames } from '../../../engine/graph/file-inputs.ts'
import type { FieldError, Graph } from '../../../engine/graph/graph.ts'
import { readGraphSteps, writeGraphSteps } from '../../../engine/graph/graph-json.ts'
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import { replaceClasses } from '../../../engine/graph/replace-classes.ts'
import { MAX_REPORTED_NODES, validateSteps } from '../../../engine/graph/validate/validate.ts'
import type { ValidationResult } from '../../../engine/graph/validate/validation-result.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { createTurns, type Turns, type Work } from '../../../lib/waiting/turns.ts'
import type { Asset } from '../assets/asset.ts'
import { GivenFileError, type GivingRequest, type TakeGivenFiles } from '../assets/given-files.ts'
import { ServiceError } from '../errors.ts'
import { asRefusal, refuseWorkflow, toLackRefusal, toRefusal, withoutUnknowns } from './graph-refusals.ts'
import type { PlacedLack } from './needs.ts'
import {
  type AssetFinder,
  type AssetRef,
  type FoundRefs,
  findAssetRefs,
  nameInGraph,
  type ResolvedFiles,
  replaceAssetRefs,
  resolveFiles,
  type UrlRef,
} from './resolve-files.ts'

/** A file that the graph names, pinned to the bytes it had when the workflow was submitted. */
interface ResolvedInput {
  /** Its name in the executed graph. */
  readonly name: string
  readonly hash: string
  readonly sizeBytes: number
  readonly contentType: string
}

interface InspectedWorkflow {
  readonly result: ValidationResult
  readonly inputs: readonly ResolvedInput[]
}

interface PreparedWorkflow {
  /** The executed graph as JSON text, numbers with the digits they came with. */
  readonly text: string
  readonly graph: Graph
  readonly inputs: readonly ResolvedInput[]
  /** The output nodes, all of which can run. */
  readonly outputs: readonly string[]
  /** The key of the lane in which it waits. */
  readonly needs: string
  /** Some class of it has rules that only its engine knows. */
  readonly isEngineJudged: boolean
}

/** Where a graph could run, among engines that differ; not every engine runs jobs of every pool. */
export interface Placement {
  /** What the engine that comes nearest does not have; empty when some engine has everything. */
  findLacks(graph: Graph, pool: string): readonly PlacedLack[]
  /** Some engine has not said yet what it can run: it may have a class or a choice that no other has. */
  isCatalogOpen(pool: string): boolean
  /** The lane of the queue in which such graphs wait. */
  laneOf(graph: Graph, pool: string): string
}

interface PrepareDeps {
  /** What can run in a pool. */
  readonly catalog: (pool: string) => NodeCatalog
  readonly assets: AssetFinder
  readonly clock: Clock
  /** Shared with all other long work on this thread; left out: its own. */
  readonly turns?: Turns
  /** What an account may use; without it, or where it says null, everything. */
  readonly nodeRules?: (accountId: string) => NodeRules | null
  /** Absent: whatever the catalog has, every engine can run. */
  readonly placement?: Placement
  /** Asks the engines again what they have; never rejects. Absent: that never changes. */
  readonly refreshLists?: () => Promise<void>
  /** Makes assets of the files that a workflow names by their address; left out: it may name none. */
  readonly takeUrls?: TakeGivenFiles
}

interface InspectOptions {
  /** In which the job will wait. */
  readonly pool: string
  /** Only these output nodes are to run. */
  readonly targets?: readonly string[]
  /** Files are named as by callers who think in subfolders, though names are flat. */
  readonly hasFlatNames?: boolean
  /** What asks for its files by address; null: none is fetched, and they are not judged. Left out: nobody who could leave. */
  readonly giving?: GivingRequest | null
  /** Files of another account that the graph may name by their hash; left out: none. */
  readonly lent?: ReadonlyMap<string, Asset>
  /** Told of what speaks against the graph where the rest of it can be judged all the same; left out: that is thrown. */
  readonly onRefusal?: (refusal: ServiceError) => void
}

export type InspectWorkflow = (
  accountId: string,
  workflow: JsonValue | undefined,
  options: InspectOptions,
) => Promise<InspectedWorkflow>

type PrepareWorkflow = (
  accountId: string,
  workflow: JsonValue | undefined,
  options: Pick<InspectOptions, 'pool' | 'giving' | 'lent'>,
) => Promise<PreparedWorkflow>

/** Resolves and validates, and leaves it to the caller what a node error means. Refuses only what has no meaning at all. */
export function createInspectWorkflow(deps: PrepareDeps): InspectWorkflow {
  const { catalog: currentCatalog, assets, clock, nodeRules, turns = createTurns() } = deps

  return async function inspectWorkflow(accountId, workflow, asked) {
    const { pool } = asked
    const catalog = currentCatalog(pool)
    // A second look fetches nothing again.
    const giving = asked.giving === null ? null : { known: new Map(), ...asked.giving }
    const options = { ...asked, giving }
    const inspected = await inspectOnce(accountId, workflow, { ...options, catalog })
    if (deps.refreshLists === undefined || !isLacking(inspected.result, deps.placement, pool)) return inspected
    await deps.refreshLists()
    const now = currentCatalog(pool)
    return now === catalog ? inspected : inspectOnce(accountId, workflow, { ...options, catalog: now })
  }

  async function inspectOnce(
    accountId: string,
    workflow: JsonValue | undefined,
    {
      catalog,
      targets,
      hasFlatNames,
      giving = {},
      lent,
      onRefusal,
    }: InspectOptions & { readonly catalog: NodeCatalog },
  ): Promise<InspectedWorkflow> {
    const rules = nodeRules?.(accountId) ?? null
    const { submitted, found, named } = await turns.run(readSteps(workflow, catalog, { rules, onRefusal }))
    const refs = [...found.refs.values()].filter(({ kind }) => kind !== 'url')
    const lentAs = (ref: AssetRef) => (ref.kind === 'hash' ? lent?.get(ref.hash) : undefined)
    const { names, folders } = named
    const query = {
      accountId,
      refs: refs.filter((ref) => lentAs(ref) === undefined),
      names,
      folders,
      now: clock.now(),
      hasFlatNames,
    }
    const files =
      refs.length + names.size + folders.size === 0
        ? NO_FILES
        : await resolveFiles(assets, query).catch((error: unknown) => goOnWithout(error, onRefusal))
    if (files === null) {
      // Which of the files are there is not known: they are left out of the judgement.
      const graph = replaceAssetRefs(submitted, found, () => MISSING_FILE)
      return { result: await turns.run(validateSteps(graph, { catalog, ...(targets && { targets }) })), inputs: [] }
    }
    const fetched = await fetchUrls(deps, accountId, { urls: found.urls, giving }).catch((error: unknown) =>
      goOnWithout(error, onRefusal),
    )
    const assetOf = (ref: AssetRef) => lentAs(ref) ?? files.assetOf(ref)
    const nameOf = (ref: AssetRef) => {
      if (ref.kind !== 'url') return nameInGraph(assetOf(ref))
      const asset = fetched?.get(ref)
      return asset === undefined ? UNFETCHED_FILE : nameInGraph(asset)
    }
    const graph = replaceAssetRefs(submitted, found, nameOf)
    const inputs = toInputs(files, [...refs.map(assetOf), ...(fetched?.values() ?? [])])
    const checkInput = createFileCheck(named, {
      hasFile: (name) => inputs.has(name) || (fetched === null && name === UNFETCHED_FILE),
      hasFolder: (folder) => files.byFolder.has(folder),
    })
    const options = { catalog, checkInput, ...(targets === undefined ? {} : { targets }) }
    const result = await turns.run(validateSteps(graph, options))
    return { result, inputs: [...inputs.values()] }
  }
}

const NO_ADDRESSES = new GivenFileError(
  'fetch_forbidden',
  'workflows may not name files by their address here; upload the file and name its asset',
)

/** null: nothing was to be fetched. Throws invalid_workflow. */
async function fetchUrls(
  { takeUrls }: Pick<PrepareDeps, 'takeUrls'>,
  accountId: string,
  { urls, giving }: { readonly urls: readonly UrlRef[]; readonly giving: GivingRequest | null },
): Promise<ReadonlyMap<AssetRef, Asset> | null> {
  if (urls.length === 0) return new Map()
  if (takeUrls === undefined) throw refuseFiles(urls.map((url) => ({ url, error: NO_ADDRESSES })))
  if (giving === null) return null
  const wanted = urls.map(({ url, kind }) => ({ url, kind, maxBytes: null, maxPixels: null }))
  const taken = await takeUrls(accountId, wanted, giving)
  const faults = urls.flatMap((url, index) => {
    const error = taken[index]
    return error instanceof GivenFileError ? [{ url, error }] : []
  })
  if (faults.length > 0) throw refuseFiles(faults)
  return new Map(urls.map(({ ref }, index) => [ref, taken[index] as Asset]))
}

interface FileRefusal {
  readonly url: UrlRef
  readonly error: GivenFileError
}

function refuseFiles(faults: readonly FileRefusal[]): ServiceError {
  const byNode = Map.groupBy(faults.slice(0, MAX_REPORTED_NODES), ({ url }) => url.nodeId)
  const toError = ({ url, error }: FileRefusal) => ({ field: url.input, reason: error.fault, message: error.message })
  const nodeErrors = Object.fromEntries([...byNode].map(([id, found]) => [id, found.map(toError)]))
  const [{ url, error }] = faults
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : ''
  return refuseWorkflow(`Node ${url.nodeId}, input ${url.input}: ${error.message}${more}`, nodeErrors)
}

/** Something in the graph may only be unknown because it is new on its engine. */
function isLacking(result: ValidationResult, placement: Placement | undefined, pool: string): boolean {
  const known = withoutUnknowns(result)
  if (known.error !== result.error || Object.keys(known.nodeErrors).length < Object.keys(result.nodeErrors).length)
    return true
  if (placement === undefined || placement.isCatalogOpen(pool)) return false
  return placement.findLacks(result.graph, pool).length > 0
}

interface ReadWorkflow {
  readonly submitted: Graph
  readonly found: FoundRefs
  readonly named: FileNames
}

interface ReadOptions extends Pick<InspectOptions, 'onRefusal'> {
  readonly rules: NodeRules | null
}

/** A look at every node takes a few milliseconds in the largest graph, and is one step. */
function* readSteps(
  workflow: JsonValue | undefined,
  catalog: NodeCatalog,
  { rules, onRefusal }: ReadOptions,
): Work<ReadWorkflow> {
  const read = yield* readGraphOf(workflow)
  const submitted = replaceClasses(read, catalog)
  try {
    if (rules !== null) checkNodeRules(submitted, rules)
  } catch (error) {
    goOnWithout(error, onRefusal)
  }
  yield
  const found = findAssetRefs(submitted, catalog)
  yield
  const named = findFileNames(submitted, catalog)
  yield
  return { submitted, found, named }
}

const MISSING_FILE = 'missing'
// Stands for every file that a dry run leaves where it is.
const UNFETCHED_FILE = 'a file by its address'

/** Throws the error, unless it is a refusal that somebody takes. */
function goOnWithout(error: unknown, onRefusal: InspectOptions['onRefusal']): null {
  if (onRefusal === undefined || !(error instanceof ServiceError)) throw error
  onRefusal(error)
  return null
}

function* readGraphOf(workflow: JsonValue | undefined): Work<Graph> {
  if (workflow === undefined) {
    throw refuseWorkflow('workflow is missing: send the API-format graph as the member `workflow`')
  }
  try {
    return yield* readGraphSteps(workflow)
  } catch (error) {
    throw asRefusal(error)
  }
}

/** Refuses with `workflow_format_ui`, `invalid_workflow` (details.node_errors) or `missing_asset` (details.missingIds). */
export function createPrepareWorkflow(deps: PrepareDeps): PrepareWorkflow {
  const { turns = createTurns() } = deps
  const inspectWorkflow = createInspectWorkflow({ ...deps, turns })
  return async function prepareWorkflow(accountId, workflow, { pool, giving, lent }) {
    const { result, inputs } = await inspectWorkflow(accountId, workflow, { pool, giving, lent })
    const { graph, goodOutputs: outputs } = result
    const { placement } = deps
    const refusal = findRefusal(result, placement, pool)
    if (refusal !== null) throw refusal
    return {
      text: await turns.run(writeGraphSteps(graph)),
      graph,
      inputs,
      outputs,
      needs: placement?.laneOf(graph, pool) ?? '',
      isEngineJudged: hasOwnJudges(graph, deps.catalog(pool)),
    }
  }
}

export function hasOwnJudges(graph: Graph, catalog: NodeCatalog): boolean {
  if (catalog.judgesItself === undefined) return false
  for (const { classType } of graph.values()) if (catalog.judgesItself(classType)) return true
  return false
}

/** What a submit of the graph would be refused with; null: nothing is wrong with it. */
export function findRefusal(
  result: ValidationResult,
  placement: Placement | undefined,
  pool: string,
): ServiceError | null {
  if (placement === undefined) return toRefusal(result)
  if (placement.isCatalogOpen(pool)) return toRefusal(withoutUnknowns(result))
  const lacks = placement.findLacks(result.graph, pool)
  return lacks.length === 0 ? toRefusal(result) : toLackRefusal(result, lacks)
}

const NO_FILES: ResolvedFiles = {
  byName: new Map(),
  byFolder: new Map(),
  assetOf() {
    throw new Error('no file was looked up')
  },
}

function toInputs(files: ResolvedFiles, referred: readonly Asset[]): Map<string, ResolvedInput> {
  const inputs = new Map<string, ResolvedInput>()
  const add = (name: string, { hash, sizeBytes, contentType }: Asset) =>
    inputs.set(name, { name, hash, sizeBytes, contentType })
  for (const [name, asset] of files.byName) add(name, asset)
  for (const [folder, members] of files.byFolder) {
    for (const [name, asset] of members) add(`${folder}/${name}`, asset)
  }
  for (const asset of referred) add(nameInGraph(asset), asset)
  return inputs
}

/** Which node classes an account may use. A workflow with any other is refused like an invalid one, node by node. */
export interface NodeRules {
  /** null: every class. */
  readonly allow: ReadonlySet<string> | null
  /** Wins over `allow`. */
  readonly deny: ReadonlySet<string>
}

/** Throws invalid_workflow (details.node_errors). */
function checkNodeRules(graph: Graph, { allow, deny }: NodeRules): void {
  const refused: [id: string, errors: FieldError[]][] = []
  for (const [id, { classType }] of graph) {
    if (!deny.has(classType) && (allow === null || allow.has(classType))) continue
    const message = `the node class ${JSON.stringify(classType)} is not available to this account`
    refused.push([id, [{ field: 'class_type', reason: 'node_not_allowed', message }]])
  }
  const [first] = refused
  if (first === undefined) return
  const more = refused.length > 1 ? ` (and ${refused.length - 1} more)` : ''
  const reported = Object.fromEntries(refused.slice(0, MAX_REPORTED_NODES))
  throw refuseWorkflow(`Node ${first[0]}: ${first[1][0].message}${more}`, reported)
}
