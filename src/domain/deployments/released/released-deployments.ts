/**
 * What an account does with its deployments on releases. Each act reads the deployment, decides, and writes under the version that was
 * read; whoever was slower decides anew. Engines are brought up and down elsewhere (copy-keeper.ts), by what is written here.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { AuditEntry } from '../../accounts/audit.ts'
import { conflict, DeployError, noSuchDeployment } from './deploy-error.ts'
import * as changes from './released-changes.ts'
import {
  type ComputeConfig,
  type DeploymentEvent,
  type DeploymentRevision,
  holdsCompute,
  isDeploymentName,
  isServing,
  type PendingUpdate,
  type ReleasedDeployment,
  servingPool,
} from './released-deployment.ts'
import type { DeploymentChange, DeploymentListQuery, ReleasedStore } from './released-store.ts'
import type { DeployableRelease, ListCompute, ReleaseSource } from './releases.ts'

/** Who asks, and how it is written down. */
export interface Deployer {
  readonly accountId: string
  /** The key or the account, as revisions and the audit log name it. */
  readonly by: string
}

interface NewDeployment extends ComputeConfig {
  readonly releaseId: string
  /** null: the default. */
  readonly name: string | null
  /** null: it came without one. */
  readonly idempotencyKey: string | null
}

interface ReleasedDeps {
  readonly store: ReleasedStore
  /** The same, with a line of the audit log bound to what is written. */
  readonly audited: (entry: AuditEntry) => { readonly released: ReleasedStore }
  readonly releases: ReleaseSource
  readonly mayDeploy: (accountId: string) => boolean
  readonly listCompute: ListCompute
  readonly newId: () => string
  /** Something was written: other processes, and those who look after engines, are told. */
  readonly onChanged: () => Promise<void>
  readonly clock: Clock
}

type Decide = (before: ReleasedDeployment, at: Date) => Promise<DeploymentChange | null> | DeploymentChange | null

const MAX_WORKERS = 20
const MAX_LIVE = 100
// Each is lost only to another change of the same deployment.
const TRIES = 8

export class ReleasedDeployments {
  readonly #deps: ReleasedDeps

  constructor(deps: ReleasedDeps) {
    this.#deps = deps
  }

  async create(who: Deployer, asked: NewDeployment): Promise<ReleasedDeployment> {
    const { clock, newId } = this.#deps
    this.mustBeAllowed(who)
    const { name, idempotencyKey: key, releaseId, gpuClass, region, min, max } = asked
    if (name !== null) mustBeName(name)
    mustBeBounds(asked)
    await this.#mustOffer(asked)
    const release = await this.release(who, releaseId, gpuClass)
    const at = clock.now()
    const id = newId()
    const of = { releaseId, releaseVersion: release.version, revision: 1, createdBy: who.by, createdAt: at }
    const made: ReleasedDeployment = {
      ...{ ...of, id, accountId: who.accountId, buildId: release.buildId, name: name ?? '' },
      ...{ gpuClass, region, min, max, status: 'queued', stopReason: null, error: null, pending: null, progress: null },
      ...{ updatedAt: at, deletedAt: null, deletedBy: null, version: 1 },
    }
    const details = { release: releaseId, name, gpu: gpuClass, region, min, max }
    const outcome = await this.#through(who, 'create', id, details).create({
      ...{ made, key, maxLive: MAX_LIVE },
      revision: { ...of, deploymentId: id, kind: 'create', fromRevision: null },
      events: [{ at, status: 'queued', message: null, releaseId }],
      pool: { id: servingPool(made), accountId: who.accountId, state: 'provisioning', workers: max },
    })
    switch (outcome.outcome) {
      case 'name_taken':
        throw nameTaken(name ?? '')
      case 'too_many':
        throw new DeployError('too_many', `an account has at most ${MAX_LIVE} deployments; delete one first`)
      case 'created':
        await this.#deps.onChanged()
        return outcome.deployment
      case 'repeated':
        return outcome.deployment
    }
  }

  async find(who: Deployer, id: string): Promise<ReleasedDeployment> {
    this.mustBeAllowed(who)
    const found = await this.#deps.store.find(who.accountId, id)
    if (found === null) throw noSuchDeployment()
    return found
  }

  async list(who: Deployer, query: Omit<DeploymentListQuery, 'accountId'>): Promise<readonly ReleasedDeployment[]> {
    this.mustBeAllowed(who)
    return this.#deps.store.list({ ...query, accountId: who.accountId })
  }

  async revisions(who: Deployer, id: string): Promise<readonly DeploymentRevision[]> {
    return this.#deps.store.revisions((await this.find(who, id)).id)
  }

  async events(who: Deployer, id: string): Promise<readonly DeploymentEvent[]> {
    return this.#deps.store.events((await this.find(who, id)).id)
  }

  /** Throws what a create or a move to this release would be refused with, on this class of compute. */
  async release(who: Deployer, releaseId: string, gpuClass: string): Promise<DeployableRelease> {
    this.mustBeAllowed(who)
    const release = await this.#deps.releases.find(who.accountId, releaseId)
    if (release === null) throw new DeployError('not_found', 'there is no release with this id')
    mustRun(release, gpuClass)
    return release
  }

  rename(who: Deployer, id: string, name: string): Promise<ReleasedDeployment> {
    mustBeName(name)
    return this.#change(who, { id, action: 'rename', details: { name } }, (before, at) => {
      mustLive(before)
      return before.name === name
        ? null
        : { after: { ...before, name, updatedAt: at }, events: [], revision: null, pools: [] }
    })
  }

  scale(who: Deployer, id: string, compute: ComputeConfig): Promise<ReleasedDeployment> {
    this.mustBeAllowed(who)
    const { gpuClass, region, min, max } = compute
    return this.#change(
      who,
      { id, action: 'scale', details: { gpu: gpuClass, region, min, max } },
      async (before, at) => {
        mustLive(before)
        const isElsewhere = gpuClass !== before.gpuClass || region !== before.region
        if (isElsewhere && before.status !== 'stopped' && before.status !== 'failed')
          throw new DeployError('immutable_compute', 'changing gpuClass or region is possible only while it is stopped')
        mustBeBounds(compute)
        // Its own class may be one that no engine names just now, because all of them sleep.
        if (isElsewhere) {
          await this.#mustOffer(compute)
          await this.release(who, before.releaseId, gpuClass)
        }
        return {
          ...{ after: { ...before, gpuClass, region, min, max, updatedAt: at }, events: [], revision: null },
          pools: isServing(before)
            ? [{ id: servingPool(before), accountId: before.accountId, state: 'ready', workers: max }]
            : [],
        }
      },
    )
  }

  /** Lands at once where nothing serves; otherwise a copy is started beside the one that serves. */
  async move(
    who: Deployer,
    id: string,
    goal: { baseRevision: number; releaseId: string },
  ): Promise<ReleasedDeployment> {
    const { gpuClass } = await this.find(who, id)
    const release = await this.release(who, goal.releaseId, gpuClass)
    const details = { release: release.id, base_revision: goal.baseRevision }
    return this.#change(who, { id, action: 'move', details }, (before, at) => {
      mustLive(before)
      if (before.releaseId === release.id && before.pending === null && holdsCompute(before)) return null
      mustBeBase(before, goal.baseRevision)
      mustBeOfBuild(before, release)
      return toMove(before, release, { kind: 'update', fromRevision: null, by: who.by }, at)
    })
  }

  /** To the release that another deployment serves. */
  async promote(
    who: Deployer,
    id: string,
    { baseRevision, fromId }: { baseRevision: number; fromId: string },
  ): Promise<ReleasedDeployment> {
    const { releaseId } = await this.find(who, fromId)
    return this.move(who, id, { baseRevision, releaseId })
  }

  async rollback(
    who: Deployer,
    id: string,
    { baseRevision, toRevision }: { baseRevision: number; toRevision: number | null },
  ): Promise<ReleasedDeployment> {
    const details = { base_revision: baseRevision, to_revision: toRevision }
    return this.#change(who, { id, action: 'rollback', details }, async (before, at) => {
      mustLive(before)
      mustBeBase(before, baseRevision)
      if (before.pending !== null && before.pending.status !== 'failed')
        throw new DeployError('pending_update_exists', 'an update is waiting; cancel it first')
      const wanted = toRevision ?? before.revision - 1
      const past = (await this.#deps.store.revisions(id)).find(({ revision }) => revision === wanted)
      if (past === undefined)
        throw new DeployError('no_earlier_revision', `there is no earlier release to go back to (revision ${wanted})`)
      if (past.releaseId === before.releaseId) return null
      const release = await this.#deps.releases.find(who.accountId, past.releaseId)
      if (release === null) throw new DeployError('release_deleted', `the release of revision ${wanted} was deleted`)
      mustRun(release, before.gpuClass)
      return toMove(before, release, { kind: 'rollback', fromRevision: wanted, by: who.by }, at)
    })
  }

  /** Throws no_pending_update. */
  async cancelUpdate(
    who: Deployer,
    id: string,
  ): Promise<{ readonly deployment: ReleasedDeployment; readonly canceled: PendingUpdate }> {
    let canceled: PendingUpdate | null = null
    const deployment = await this.#change(who, { id, action: 'cancel', details: {} }, (before, at) => {
      canceled = before.pending
      return canceled === null ? null : changes.dropMove(before, at)
    })
    if (canceled === null) throw new DeployError('no_pending_update', 'no update is waiting')
    return { deployment, canceled }
  }

  start(who: Deployer, id: string): Promise<ReleasedDeployment> {
    this.mustBeAllowed(who)
    return this.#change(who, { id, action: 'start', details: {} }, async (before, at) => {
      mustLive(before)
      if (holdsCompute(before)) return null
      if (before.status !== 'stopped' && before.status !== 'failed') throw isStopping()
      await this.release(who, before.releaseId, before.gpuClass)
      return changes.start(before, at)
    })
  }

  stop(who: Deployer, id: string): Promise<ReleasedDeployment> {
    return this.#change(who, { id, action: 'stop', details: {} }, (before, at) => {
      mustLive(before)
      return holdsCompute(before) ? changes.stop(before, at, 'user') : null
    })
  }

  remove(who: Deployer, id: string): Promise<ReleasedDeployment> {
    return this.#change(who, { id, action: 'delete', details: {} }, (before, at) =>
      before.deletedAt === null ? changes.remove(before, at, who.by) : null,
    )
  }

  /** null of `decide`: it is so already. */
  async #change(
    who: Deployer,
    { id, action, details }: { readonly id: string; readonly action: string; readonly details: AuditEntry['details'] },
    decide: Decide,
  ): Promise<ReleasedDeployment> {
    for (let tries = 0; tries < TRIES; tries++) {
      const before = await this.find(who, id)
      const change = await decide(before, this.#deps.clock.now())
      if (change === null) return before
      const outcome = await this.#through(who, action, id, details).change(change)
      if (outcome.outcome === 'name_taken') throw nameTaken(change.after.name)
      if (outcome.outcome === 'changed') {
        await this.#deps.onChanged()
        return outcome.deployment
      }
    }
    throw conflict('the deployment is being changed all the time; try again')
  }

  #through(who: Deployer, action: string, subject: string, details: AuditEntry['details']): ReleasedStore {
    const entry = { actor: who.by, action: `deployment.${action}`, subject, at: this.#deps.clock.now(), details }
    return this.#deps.audited(entry).released
  }

  /** Throws not_enabled. */
  mustBeAllowed({ accountId }: Deployer): void {
    if (this.#deps.mayDeploy(accountId)) return
    throw new DeployError('not_enabled', 'builds and deployments are not enabled for this account; ask its operator')
  }

  async #mustOffer({ gpuClass, region }: ComputeConfig): Promise<void> {
    const regions = await this.#deps.listCompute()
    const place = regions.find((each) => each.region === region)
    if (place?.gpus.some((gpu) => gpu.gpuClass === gpuClass) === true) return
    throw new DeployError('compute_unavailable', `GPU class ${gpuClass} is not available in region ${region}`)
  }
}

function mustRun({ version, whyNot }: DeployableRelease, gpuClass: string): void {
  const problem = whyNot(gpuClass)
  if (problem !== null)
    throw new DeployError('release_not_deployable', `release ${version} cannot be used for a deployment: ${problem}`)
}

function mustBeBounds({ min, max }: ComputeConfig): void {
  const isCount = (value: number) => Number.isInteger(value) && value >= 0 && value <= MAX_WORKERS
  if (isCount(min) && isCount(max) && max >= 1 && min <= max) return
  throw new DeployError('invalid_request', `min and max must be whole numbers with 0 <= min <= max <= ${MAX_WORKERS}`)
}

function toMove(
  before: ReleasedDeployment,
  { id, version }: DeployableRelease,
  how: Omit<changes.Move, 'releaseId' | 'releaseVersion'>,
  at: Date,
): DeploymentChange {
  if (before.status === 'stopping' || before.status === 'stop_failed') throw isStopping()
  const move = { ...how, releaseId: id, releaseVersion: version }
  return isServing(before) ? changes.beginMove(before, move, at) : changes.moveAtOnce(before, move, at)
}

function mustLive({ deletedAt }: ReleasedDeployment): void {
  if (deletedAt !== null) throw new DeployError('deleted', 'the deployment is deleted')
}

function mustBeBase({ revision }: ReleasedDeployment, base: number): void {
  if (base !== revision)
    throw new DeployError('stale_revision', `the deployment is at revision ${revision}, not ${base}; read it again`)
}

function mustBeOfBuild({ buildId, name }: ReleasedDeployment, release: DeployableRelease): void {
  if (release.buildId !== buildId)
    throw new DeployError('invalid_request', `release ${release.id} belongs to another build than deployment ${name}`)
}

function mustBeName(name: string): void {
  if (!isDeploymentName(name))
    throw new DeployError(
      'invalid_name',
      'a name has 1 to 40 small letters, digits and hyphens, begins and ends with a letter or digit, and never begins with dep-',
    )
}

function nameTaken(name: string): DeployError {
  return new DeployError('name_taken', `another deployment of this build is called ${name}`)
}

function isStopping(): DeployError {
  return conflict('the deployment is being stopped; try again when it is stopped')
}
