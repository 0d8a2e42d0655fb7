/** What the service knows that helps to write a definition: folders of models, addresses that earlier builds named, packs behind classes. */
import { MODEL_FOLDERS } from '../workflows/model-folders.ts'
import { type BuildCaller, mustBuild } from './build-caller.ts'
import type { BuildStore } from './build-store.ts'
import type { BuildDefinition, DefinedModel, DefinedPack } from './definition.ts'
import type { ReleaseLock } from './lock.ts'
import { createPackLookup, type PackRegistry } from './pack-registry.ts'
import { type ResolvedDefinition, resolveSnapshot } from './resolve-definition.ts'
import { resolveWorkflow } from './resolve-workflow.ts'

interface ModelCandidate {
  readonly sourceUri: string
  readonly sha256: string
  readonly type: string
  /** A release was made with these bytes from this address. */
  readonly verified: boolean
  readonly confidence: number
}

interface ResolvedModel {
  readonly filename: string
  readonly candidates: readonly ModelCandidate[]
}

export interface ResolveReferences {
  directories(caller: BuildCaller): Promise<readonly string[]>
  models(caller: BuildCaller, filenames: readonly string[]): Promise<readonly ResolvedModel[]>
  snapshot(caller: BuildCaller, snapshot: unknown): Promise<ResolvedDefinition>
  workflow(caller: BuildCaller, workflow: unknown): Promise<ResolvedDefinition & { readonly format: 'ui' | 'api' }>
}

interface ResolveDeps {
  readonly store: Pick<BuildStore, 'list' | 'find' | 'listReleases' | 'findRelease'>
  readonly mayBuild: (accountId: string) => boolean
  /** Whether some engine of the service has it. */
  readonly isKnownClass: (classType: string) => boolean
  /** null: this process knows none. */
  readonly registry: PackRegistry | null
}

// The newest; what only older ones say has to be written by hand.
const LOOKED_AT = 50

interface Known {
  readonly definition: BuildDefinition
  readonly lock: ReleaseLock | null
  readonly classes: Readonly<Record<string, readonly string[]>>
}

export function createResolveReferences({ store, isKnownClass, registry, ...deps }: ResolveDeps): ResolveReferences {
  /** The newest release of each of the newest builds, and the build itself where it has none. */
  async function findKnown(accountId: string): Promise<readonly Known[]> {
    const builds = await store.list(accountId, { after: null, limit: LOOKED_AT })
    const found = builds.map(async ({ id }): Promise<readonly Known[]> => {
      const [newest] = await store.listReleases(accountId, id, { before: null, limit: 1 })
      const release = newest === undefined ? null : await store.findRelease(accountId, newest.id)
      if (release === null) {
        const build = await store.find(accountId, id)
        return build === null ? [] : [{ definition: build.definition, lock: null, classes: {} }]
      }
      const ready = release.artifacts.find(({ status }) => status === 'ready')
      return [{ definition: release.definition, lock: ready?.lock ?? null, classes: ready?.classes ?? {} }]
    })
    return (await Promise.all(found)).flat()
  }

  return {
    async directories(caller) {
      mustBuild(deps, caller)
      return Object.keys(MODEL_FOLDERS).filter((folder) => folder !== 'configs' && folder !== 'custom_nodes')
    },
    async models(caller, filenames) {
      mustBuild(deps, caller)
      const known = await findKnown(caller.accountId)
      return filenames.map((filename) => ({
        filename,
        candidates: known.flatMap((each) => candidatesOf(filename, each)).filter(isFirst),
      }))
    },
    async snapshot(caller, snapshot) {
      mustBuild(deps, caller)
      return resolveSnapshot(snapshot, createPackLookup(registry))
    },
    async workflow(caller, workflow) {
      mustBuild(deps, caller)
      const packs = new Map<string, DefinedPack>()
      const models = new Map<string, DefinedModel>()
      for (const { definition, classes } of await findKnown(caller.accountId)) {
        for (const pack of definition.customNodes ?? [])
          for (const classType of classes[pack.name] ?? []) if (!packs.has(classType)) packs.set(classType, pack)
        for (const model of definition.models ?? []) if (!models.has(model.filename)) models.set(model.filename, model)
      }
      return resolveWorkflow(workflow, { isKnown: isKnownClass, packs, models, lookup: createPackLookup(registry) })
    },
  }
}

function candidatesOf(filename: string, { definition, lock }: Known): ModelCandidate[] {
  return (definition.models ?? []).flatMap(({ type, filename: name, sourceUri, sha256 }) => {
    if (name !== filename || sourceUri === undefined) return []
    const made = lock?.models.find((each) => each.type === type && each.filename === name)
    const known = made?.sha256 ?? sha256
    const verified = made !== undefined
    return known === undefined ? [] : [{ sourceUri, sha256: known, type, verified, confidence: verified ? 1 : 0.5 }]
  })
}

function isFirst(candidate: ModelCandidate, index: number, all: readonly ModelCandidate[]): boolean {
  return all.findIndex((each) => each.sourceUri === candidate.sourceUri && each.sha256 === candidate.sha256) === index
}
