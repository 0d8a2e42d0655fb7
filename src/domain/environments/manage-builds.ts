/** Builds and releases, for the accounts that own them. Building itself is not done here: a cut queues artifacts, and builders take them. */
import type { Clock } from '../../../lib/clock.ts'
import type { AuditEntry } from '../accounts/audit.ts'
import type { AnnouncedBuilder, ArtifactQueue } from './artifact-queue.ts'
import {
  type Artifact,
  type Build,
  type BuildSummary,
  contentHashOf,
  type ReleaseSummary,
  type ReleaseWithArtifacts,
} from './build.ts'
import { actorOf, type BuildCaller, mustBuild } from './build-caller.ts'
import { BuildError, type DefinitionFault, invalidDefinition } from './build-error.ts'
import type { BuildStore, SaveOutcome } from './build-store.ts'
import { type BuildDefinition, type BuildTarget, targetText } from './definition.ts'
import { readDefinition, readTargets } from './read-definition.ts'

interface SavedBuild {
  readonly build: Build
  /** What will keep it from being released, or may. */
  readonly warnings: readonly DefinitionFault[]
}

interface BuildWish {
  readonly name: string
  readonly description: string | null
  readonly definition: unknown
}

interface ChangeWish {
  readonly name: string | null
  readonly description: string | null
  readonly definition: unknown
  /** As it was told; null: whatever is there. */
  readonly expectedUpdatedAt: string | null
}

interface Page {
  readonly after: string | null
  readonly limit: number
}

interface BuildLogText {
  readonly text: string
  readonly isTruncated: boolean
}

export interface ManageBuilds {
  create(caller: BuildCaller, wish: BuildWish): Promise<SavedBuild>
  list(caller: BuildCaller, page: Page): Promise<readonly BuildSummary[]>
  find(caller: BuildCaller, id: string): Promise<Build>
  change(caller: BuildCaller, id: string, wish: ChangeWish): Promise<SavedBuild>
  /** Harmless when there is none. */
  remove(caller: BuildCaller, id: string): Promise<void>
  validate(caller: BuildCaller, id: string): Promise<readonly DefinitionFault[]>
  cut(caller: BuildCaller, buildId: string, targets: unknown): Promise<ReleaseSummary>
  listReleases(
    caller: BuildCaller,
    buildId: string,
    page: { readonly before: number | null; readonly limit: number },
  ): Promise<readonly ReleaseSummary[]>
  findRelease(caller: BuildCaller, id: string): Promise<ReleaseWithArtifacts>
  /** Why artifacts that are queued are not begun, by their ids: there is no builder for them. */
  findWaiting(artifacts: readonly Pick<Artifact, 'id' | 'status' | 'target'>[]): Promise<ReadonlyMap<string, string>>
  /** Of the artifact for this target. */
  readLog(caller: BuildCaller, releaseId: string, target: BuildTarget): Promise<BuildLogText>
  removeRelease(caller: BuildCaller, id: string): Promise<void>
  /** Those that build at the moment. */
  builders(caller: BuildCaller): Promise<readonly AnnouncedBuilder[]>
}

interface BuildBounds {
  readonly builds: number
  /** Of a build. */
  readonly releases: number
  /** Artifacts of an account that are not made yet. */
  readonly unfinished: number
}

interface ManageBuildsDeps {
  readonly store: BuildStore
  readonly artifacts: Pick<ArtifactQueue, 'listBuilders'>
  readonly audited: (entry: AuditEntry) => { readonly builds: BuildStore }
  readonly mayBuild: (accountId: string) => boolean
  /** The deployments that refer to any of these releases, as their owner calls them. */
  readonly usersOf: (releaseIds: readonly string[]) => Promise<readonly string[]>
  /** Those of the operator, from which packs and models may come over plain http. */
  readonly origins: readonly string[]
  /** Why a model may not be fetched from this address; null: it may. */
  readonly whyNotFetched: (address: string) => string | null
  readonly newId: () => string
  readonly bounds: BuildBounds
  readonly clock: Clock
}

// More than a build can have.
const ALL_RELEASES = 10_000
const MAX_CUT_ATTEMPTS = 5

export function createManageBuilds(deps: ManageBuildsDeps): ManageBuilds {
  const ways = createWays(deps)
  return { ...createBuildActs(deps, ways), ...createReleaseActs(deps, ways) }
}

type Ways = ReturnType<typeof createWays>

/** What all acts share. */
function createWays(deps: ManageBuildsDeps) {
  const { store, audited, clock } = deps
  const through = (caller: BuildCaller, action: string, subject: string, details: AuditEntry['details'] = {}) =>
    audited({ actor: actorOf(caller), action, subject, at: clock.now(), details }).builds
  const warningsOf = (definition: BuildDefinition) => findWarnings(definition, deps.whyNotFetched)

  const find = async (caller: BuildCaller, id: string) => {
    mustBuild(deps, caller)
    const build = await store.find(caller.accountId, id)
    if (build === null) throw noSuchBuild()
    return build
  }
  const findRelease = async (caller: BuildCaller, id: string) => {
    mustBuild(deps, caller)
    const release = await store.findRelease(caller.accountId, id)
    if (release === null) throw noSuchRelease()
    return release
  }
  const mustBeUnused = async (refusal: 'build_in_use' | 'release_in_use', ids: readonly string[]) => {
    const users = ids.length === 0 ? [] : await deps.usersOf(ids)
    if (users.length === 0) return
    const what = refusal === 'build_in_use' ? 'a release of this build' : 'this release'
    throw new BuildError(refusal, `${what} is used by the deployments ${users.join(', ')}; move or delete them first`)
  }

  return { through, warningsOf, find, findRelease, mustBeUnused }
}

type BuildActs = Pick<ManageBuilds, 'create' | 'list' | 'find' | 'change' | 'remove' | 'validate' | 'builders'>

function createBuildActs(deps: ManageBuildsDeps, ways: Ways): BuildActs {
  const { store, bounds, clock } = deps
  const { through, warningsOf, find, mustBeUnused } = ways
  return {
    find,
    async create(caller, { name, description, definition: given }) {
      mustBuild(deps, caller)
      const definition = readDefinition(given, deps.origins)
      const { accountId, keyId } = caller
      const id = `bld-${deps.newId()}`
      const made = { id, accountId, name, description, definition, createdBy: keyId, createdAt: clock.now() }
      const saved = await through(caller, 'build.create', id, { name }).create(made, bounds.builds)
      return { build: mustBeSaved(saved, bounds.builds), warnings: warningsOf(definition) }
    },
    async list(caller, page) {
      mustBuild(deps, caller)
      return store.list(caller.accountId, page)
    },
    async change(caller, id, { name, description, definition: given, expectedUpdatedAt }) {
      await find(caller, id)
      const definition = readDefinition(given, deps.origins)
      const expected = expectedUpdatedAt === null ? null : new Date(expectedUpdatedAt)
      if (expected !== null && expected.toJSON() !== expectedUpdatedAt) throw stale()
      const change = { definition, name, description, expected, at: clock.now() }
      const saved = await through(caller, 'build.update', id).change(caller.accountId, id, change)
      return { build: mustBeSaved(saved, bounds.builds), warnings: warningsOf(definition) }
    },
    async remove(caller, id) {
      mustBuild(deps, caller)
      const { accountId } = caller
      if ((await store.find(accountId, id)) === null) return
      const releases = await store.listReleases(accountId, id, { before: null, limit: ALL_RELEASES })
      await mustBeUnused(
        'build_in_use',
        releases.map((release) => release.id),
      )
      await through(caller, 'build.delete', id).remove(accountId, id, clock.now())
    },
    async validate(caller, id) {
      const { definition } = await find(caller, id)
      return [...findBlocks(definition, await deps.artifacts.listBuilders(clock.now())), ...warningsOf(definition)]
    },
    async builders(caller) {
      mustBuild(deps, caller)
      return deps.artifacts.listBuilders(clock.now())
    },
  }
}

function createReleaseActs(deps: ManageBuildsDeps, ways: Ways): Omit<ManageBuilds, keyof BuildActs> {
  const { store, bounds, clock } = deps
  const { through, warningsOf, find, findRelease, mustBeUnused } = ways
  return {
    findRelease,
    async cut(caller, buildId, given) {
      const targets = readTargets(given)
      for (let attempt = 1; ; attempt += 1) {
        const build = await find(caller, buildId)
        const builders = await deps.artifacts.listBuilders(clock.now())
        const faults = [
          ...findBlocks(build.definition, builders),
          ...findTargetFaults(targets, builders),
          ...warningsOf(build.definition),
        ]
        if (faults.length > 0) throw invalidDefinition(faults)
        const { accountId, keyId: createdBy } = caller
        const details = { targets: targets.map(targetText) }
        const cut = await through(caller, 'release.create', buildId, details).cut({
          ...{ accountId, buildId, updatedAt: build.updatedAt, targets, createdBy, at: clock.now() },
          contentHash: contentHashOf(build.definition),
          limits: { releases: bounds.releases, unfinished: bounds.unfinished },
        })
        if (cut.outcome === 'cut') return cut.release
        if (cut.outcome === 'no_build') throw noSuchBuild()
        if (cut.outcome === 'too_many_releases')
          throw new BuildError(
            'release_limit',
            `a build may have ${bounds.releases} releases; delete some that no deployment uses`,
          )
        if (cut.outcome === 'too_many_unfinished')
          throw new BuildError(
            'concurrency_limit',
            `${bounds.unfinished} artifacts of this account wait or are made already; try again when some are done`,
          )
        if (attempt === MAX_CUT_ATTEMPTS) throw stale()
      }
    },
    async listReleases(caller, buildId, page) {
      await find(caller, buildId)
      return store.listReleases(caller.accountId, buildId, page)
    },
    async readLog(caller, releaseId, target) {
      const { artifacts } = await findRelease(caller, releaseId)
      const artifact = artifacts.find((each) => targetText(each.target) === targetText(target))
      if (artifact === undefined)
        throw new BuildError(
          'not_found',
          `the release has no artifact for ${targetText(target)}; it has ${artifacts.map((each) => targetText(each.target)).join(', ')}`,
        )
      const log = await store.readLog(caller.accountId, artifact.id)
      if (log === null) throw noSuchRelease()
      return log
    },
    async findWaiting(artifacts) {
      const queued = artifacts.filter(({ status }) => status === 'queued')
      const builders = queued.length === 0 ? [] : await deps.artifacts.listBuilders(clock.now())
      const made = new Set(builders.flatMap(({ targets }) => targets.map(targetText)))
      return new Map(
        queued.flatMap(({ id, target }) =>
          made.has(targetText(target))
            ? []
            : [[id, `no builder for ${targetText(target)} is connected; it is built as soon as one is`] as const],
        ),
      )
    },
    async removeRelease(caller, id) {
      mustBuild(deps, caller)
      const { accountId } = caller
      if ((await store.findRelease(accountId, id)) === null) return
      await mustBeUnused('release_in_use', [id])
      await through(caller, 'release.delete', id).removeRelease(accountId, id, clock.now())
    },
  }
}

function mustBeSaved(saved: SaveOutcome, limit: number): Build {
  if (saved.outcome === 'saved') return saved.build
  if (saved.outcome === 'unknown') throw noSuchBuild()
  if (saved.outcome === 'changed') throw stale()
  if (saved.outcome === 'too_many')
    throw new BuildError('build_limit', `an account may have ${limit} builds; delete one first`)
  const reason = 'is not an uploaded file of this account of that kind: upload it first'
  throw invalidDefinition(saved.blobIds.map((id) => ({ field: `blob:${id}`, reason })))
}

/** What keeps it from being released, whatever the target. */
function findBlocks(definition: BuildDefinition, builders: readonly AnnouncedBuilder[]): DefinitionFault[] {
  const { baseComfyVersion, baseImage } = definition
  const faults: DefinitionFault[] = []
  if (baseComfyVersion === undefined)
    faults.push({
      field: 'baseComfyVersion',
      reason: 'is needed for a release: a tag, a branch or a commit of ComfyUI',
    })
  const images = builders.flatMap(({ baseImages }) => baseImages.map(({ id }) => id))
  if (baseImage !== undefined && images.length > 0 && !images.includes(baseImage)) {
    const known = [...new Set(images)].join(', ')
    faults.push({ field: 'baseImage', reason: `is made by no builder of this service; there are ${known}` })
  }
  return faults
}

/** While no builder is there at all, nobody knows what the next one can make: the artifact waits, and says so. */
function findTargetFaults(targets: readonly BuildTarget[], builders: readonly AnnouncedBuilder[]): DefinitionFault[] {
  if (builders.length === 0) return []
  const made = new Set(builders.flatMap((builder) => builder.targets.map(targetText)))
  return targets.flatMap((target, index) =>
    made.has(targetText(target))
      ? []
      : [
          {
            field: `targets[${index}]`,
            reason: `is made by no builder of this service; there are ${[...made].join(', ')}`,
          },
        ],
  )
}

function findWarnings(
  { models = [] }: BuildDefinition,
  whyNotFetched: (address: string) => string | null,
): DefinitionFault[] {
  return models.flatMap(({ sourceUri }, index) => {
    const reason = sourceUri === undefined ? null : whyNotFetched(sourceUri)
    return reason === null ? [] : [{ field: `models[${index}].sourceUri`, reason }]
  })
}

function noSuchBuild(): BuildError {
  return new BuildError('not_found', 'this account has no build with this id')
}

function noSuchRelease(): BuildError {
  return new BuildError('not_found', 'this account has no release with this id')
}

function stale(): BuildError {
  return new BuildError('stale', 'the build was changed since you read it: pull it, and send your change again')
}
