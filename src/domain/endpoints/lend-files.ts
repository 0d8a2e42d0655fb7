/**
 * The files that an author fixed in a workflow, for callers of other accounts: they stay the author's, and a job of the caller uses their
 * bytes without the caller having them. What a caller chose himself is looked for among his own files alone. Folders are not lent, nor are
 * addresses: what is fetched for a call becomes a file of its caller.
 */
import { isDeepStrictEqual } from 'node:util'
import { findFileInputs } from '../../../engine/graph/file-inputs.ts'
import type { NodeCatalog } from '../../../engine/graph/node-catalog.ts'
import type { Clock } from '../../../lib/clock.ts'
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  NumberText,
  parseLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import type { Asset } from '../assets/asset.ts'
import { ServiceError } from '../errors.ts'
import {
  type AssetFinder,
  type AssetRef,
  readBareUrl,
  readReference,
  resolveFiles,
} from '../workflows/resolve-files.ts'
import type { EndpointVersion } from './endpoint.ts'
import type { Resolved } from './reach.ts'

interface LentWorkflow {
  /** With the author's files named by their content. */
  readonly workflow: JsonObject
  /** By hash. */
  readonly lent: ReadonlyMap<string, Asset>
}

interface Lending extends Omit<Resolved, 'alias'> {
  /** Where the call runs; null: the common pool. */
  readonly pool: string | null
}

/** `workflow`: that of the version, with the values of a call. */
export type LendFiles = (lending: Lending, workflow: JsonObject) => Promise<LentWorkflow>

interface LendFilesDeps {
  readonly assets: AssetFinder
  /** null: the common pool. */
  readonly catalog: (pool: string | null) => NodeCatalog
  readonly clock: Clock
}

export function createLendFiles({ assets, catalog, clock }: LendFilesDeps): LendFiles {
  return async ({ endpoint, version, pool }, workflow) => {
    const fixed = findFixed(version, workflow, catalog(pool))
    const refs: AssetRef[] = []
    const names = new Set<string>()
    let hasAddresses = false
    // A first look finds what there is, a second one puts something in its place.
    mapFixed(fixed, workflow, {
      ofName(name) {
        names.add(name)
        return undefined
      },
      ofRef(ref) {
        if (ref.kind === 'url') hasAddresses = true
        else refs.push(ref)
        return undefined
      },
    })
    if (refs.length + names.size === 0 && !hasAddresses) return { workflow, lent: new Map() }
    const query = { accountId: endpoint.accountId, refs, names, folders: new Set<string>(), now: clock.now() }
    const found = await resolveFiles(assets, query).catch(nullIfMissing)
    // The caller is told that it cannot run.
    if (found === null) return { workflow, lent: new Map() }
    const lent = new Map<string, Asset>()
    const lend = (asset: Asset | undefined): JsonValue | undefined => {
      if (asset === undefined) return undefined
      lent.set(asset.hash, asset)
      return { __type: 'core/ASSET', info: { hash: `blake3:${asset.hash}` } }
    }
    const changed = mapFixed(fixed, workflow, {
      ofName: (name) => lend(found.byName.get(name)),
      ofRef(ref) {
        if (ref.kind === 'url') return NOT_LENT
        return ref.kind === 'malformed' ? undefined : lend(found.assetOf(ref))
      },
    })
    return { workflow: changed, lent }
  }
}

// Names no file, so that the caller is told that it cannot run.
const NOT_LENT: JsonValue = { __type: 'core/ASSET', info: { id: 'not lent' } }

function nullIfMissing(error: unknown): null {
  if (error instanceof ServiceError && error.refusal === 'missing_asset') return null
  throw error
}

/** Which values of which nodes are the author's, and whether a text there names a file. */
type Fixed = ReadonlyMap<string, ReadonlyMap<string, { readonly isFile: boolean }>>

function findFixed(version: EndpointVersion, workflow: JsonObject, catalog: NodeCatalog): Fixed {
  const published = parseLosslessJson(version.graph) as JsonObject
  const isCallers = (nodeId: string, input: string, value: JsonValue) => {
    const takes = version.inputs.find(({ places }) =>
      places.some((place) => place.nodeId === nodeId && place.input === input),
    )
    // The author named each of the choices himself.
    if (takes === undefined || (takes.type === 'choice' && !takes.isOpen)) return false
    return !isDeepStrictEqual(value, inputsOf(published[nodeId])[input])
  }
  return new Map(
    Object.entries(workflow).map(([nodeId, node]) => {
      const inputs = inputsOf(node)
      const classType = isJsonObject(node) ? String(node['class_type']) : ''
      const files = new Set(findFileInputs(catalog, classType, inputs).map(({ path }) => path))
      const own = Object.entries(inputs).filter(([input, value]) => !isCallers(nodeId, input, value))
      return [nodeId, new Map(own.map(([input]) => [input, { isFile: files.has(input) }]))]
    }),
  )
}

function inputsOf(node: JsonValue | undefined): JsonObject {
  return isJsonObject(node) && isJsonObject(node['inputs']) ? node['inputs'] : {}
}

interface Mapping {
  /** What stands for it from now on; undefined: what stood there. */
  ofName(name: string): JsonValue | undefined
  ofRef(ref: AssetRef): JsonValue | undefined
}

function mapFixed(fixed: Fixed, workflow: JsonObject, { ofName, ofRef }: Mapping): JsonObject {
  const map = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(map)
    if (!isJsonObject(value) || (value as unknown) instanceof NumberText) return value
    const ref = readReference(value)
    if (ref !== null) return ofRef(ref) ?? value
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, map(member)]))
  }
  return Object.fromEntries(
    Object.entries(workflow).map(([nodeId, node]) => {
      const own = fixed.get(nodeId)
      if (!isJsonObject(node) || own === undefined || own.size === 0) return [nodeId, node]
      const inputs = Object.entries(inputsOf(node)).map(([input, value]): [string, JsonValue] => {
        const at = own.get(input)
        if (at === undefined) return [input, value]
        const named = at.isFile && typeof value === 'string' && value !== '' ? ofName(value) : undefined
        const address = at.isFile ? readBareUrl(value) : null
        const fetched = address === null ? undefined : ofRef({ kind: 'url', given: address })
        return [input, named ?? fetched ?? map(value)]
      })
      return [nodeId, { ...node, inputs: Object.fromEntries(inputs) }]
    }),
  )
}
