/**
 * The deployments in memory, so that an address is known at once. A change by this process is made first in the store, then in
 * memory; what other processes change comes with the next refresh. A deployment of another account looks exactly like one that does not exist.
 */
import type { Clock } from '../../../lib/clock.ts'
import { FollowedList } from '../../../lib/waiting/followed-list.ts'
import { deploymentOf, readCopyPool } from '../engine/copy-pool.ts'
import { invalidField, ServiceError } from '../errors.ts'
import {
  canMove,
  DEFAULT_POOL,
  type Deployment,
  type DeploymentState,
  isDeploymentId,
  statesBefore,
} from './deployment.ts'
import type { DeploymentMove, DeploymentStore, VersionedDeployment } from './deployment-store.ts'

interface NewDeployment {
  readonly id: string
  /** null: every account may use it. */
  readonly accountId: string | null
  readonly workers: number
  readonly idleAfterMs: number | null
}

interface DeploymentsDeps {
  readonly store: DeploymentStore
  readonly clock: Clock
  /** Called after this process has changed a deployment. */
  readonly announce?: () => Promise<void>
}

const MAX_WORKERS = 1024
const MAX_IDLE_MS = 365 * 86_400_000
// Long enough not to be asked at once again, short enough for clients that wait a minute in all.
const NOT_READY_SECONDS = 5

export async function openDeployments(deps: DeploymentsDeps): Promise<Deployments> {
  const deployments = new Deployments(deps)
  await deployments.refresh()
  return deployments
}

export class Deployments {
  readonly #deps: DeploymentsDeps
  readonly #known = new Map<string, Deployment>()
  /** Of deployments on a release, by deployment and pool. */
  readonly #copies = new Map<string, Map<string, Deployment>>()
  readonly #listeners: ((deployment: Deployment) => void)[] = []
  readonly #list: FollowedList<VersionedDeployment>

  constructor(deps: DeploymentsDeps) {
    this.#deps = deps
    this.#list = new FollowedList<VersionedDeployment>({
      read: (version, limit) => deps.store.changedAfter(version, limit),
      take: ({ deployment }) => this.#remember(deployment),
    })
  }

  find(id: string): Deployment | null {
    return this.#known.get(id) ?? null
  }

  /** The copies of a deployment on a release, as the pools that they are. */
  copiesOf(deploymentId: string): readonly Deployment[] {
    return [...(this.#copies.get(deploymentId)?.values() ?? [])]
  }

  /** Where new jobs go that are sent to the deployment of this pool: of one on a release, the pool of the copy that serves. */
  current(pool: string): string {
    return this.#servingCopy(deploymentOf(pool))?.id ?? pool
  }

  /** Throws not_found, in one wording, unless this account may use it. */
  findFor(accountId: string, id: string): Deployment {
    if (!this.mayUse(accountId, id)) throw noDeployment()
    return this.#servingCopy(id) ?? this.#mustFind(id)
  }

  /** False also for one that does not exist. */
  mayUse(accountId: string, id: string): boolean {
    const found = this.#servingCopy(id) ?? this.find(id)
    return found !== null && (found.accountId === null || found.accountId === accountId)
  }

  /** Without the copies of those on a release. */
  list(): readonly Deployment[] {
    const all = [...this.#known.values()].filter(({ id }) => readCopyPool(id) === null)
    return all.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** Throws deployment_not_ready or deployment_stopped when this pool takes no new jobs now. */
  async mustTakeJobs(pool: string): Promise<void> {
    if (pool === DEFAULT_POOL || this.#stateOf(pool) === 'ready') return
    // Whoever saw it ready asked another process, whose news may still be on its way here.
    await this.#list.refresh()
    const state = this.#stateOf(pool)
    if (state !== 'ready') throw REFUSED[state]()
  }

  /** `through`: the store with an audit line bound to its writes. Throws invalid_field. */
  async create(
    { id, accountId, workers, idleAfterMs }: NewDeployment,
    through = this.#deps.store,
  ): Promise<Deployment> {
    if (!isDeploymentId(id))
      throw invalidField('id', 'must be one DNS label that is not reserved: 1 to 63 small letters, digits or dashes')
    checkSettings({ workers, idleAfterMs })
    const now = this.#deps.clock.now()
    const settings = { accountId, workers, idleAfterMs }
    const deployment: Deployment = { id, ...settings, state: 'provisioning', createdAt: now, changedAt: now }
    const made = await this.#write(async () => ((await through.create(deployment)) ? deployment : null))
    if (made === null) throw invalidField('id', 'is taken')
    return made
  }

  /** Throws not_found. Each does nothing when it is so already. */
  async start(id: string, through = this.#deps.store): Promise<Deployment> {
    await this.#list.refresh()
    const { state } = this.#mustFind(id)
    return state === 'ready' ? this.#mustFind(id) : this.#moveTo(id, 'provisioning', through)
  }

  /** Takes no new jobs and ends when those it has are done; with `now` those that wait stay until it is started again. */
  stop(id: string, { now }: { readonly now: boolean }, through = this.#deps.store): Promise<Deployment> {
    return this.#moveTo(id, now ? 'stopped' : 'draining', through)
  }

  async configure(
    id: string,
    change: Partial<Pick<Deployment, 'workers' | 'idleAfterMs'>>,
    through = this.#deps.store,
  ): Promise<Deployment> {
    await this.#list.refresh()
    const { workers, idleAfterMs } = { ...this.#mustFind(id), ...change }
    checkSettings({ workers, idleAfterMs })
    const settings = { id, workers, idleAfterMs, at: this.#timeOf(this.#mustFind(id)) }
    const changed = await this.#write(() => through.configure(settings))
    if (changed === null) throw noDeployment()
    return changed
  }

  /** For the lifecycle itself; null when it was not possible any more. */
  move(move: Omit<DeploymentMove, 'at'>): Promise<Deployment | null> {
    return this.#write(() => this.#deps.store.move({ ...move, at: this.#timeOf(this.#mustFind(move.id)) }))
  }

  /** Of the newest change that is known here. */
  get version(): number {
    return this.#list.version
  }

  /** Brings in what others changed in the store. */
  refresh(): Promise<void> {
    return this.#list.refresh()
  }

  /** Something else than a deployment of this list was changed beside it: others are told to read it again. */
  async announceChange(): Promise<void> {
    await this.#list.refresh()
    await this.#deps.announce?.()
  }

  onChange(listener: (deployment: Deployment) => void): void {
    this.#listeners.push(listener)
  }

  #remember(deployment: Deployment): void {
    const before = this.#known.get(deployment.id)
    this.#known.set(deployment.id, deployment)
    const copy = readCopyPool(deployment.id)
    if (copy !== null) {
      const copies = this.#copies.get(copy.deploymentId) ?? new Map<string, Deployment>()
      this.#copies.set(copy.deploymentId, copies.set(deployment.id, deployment))
    }
    // What this process has written is read once more with the next refresh: that is no news.
    if (before?.state === deployment.state && before.changedAt.getTime() === deployment.changedAt.getTime()) return
    for (const tell of this.#listeners) tell(deployment)
  }

  async #write(act: () => Promise<Deployment | null>): Promise<Deployment | null> {
    const changed = await this.#list.write(act, (answer) => {
      if (answer !== null) this.#remember(answer)
    })
    if (changed !== null) await this.#deps.announce?.()
    return changed
  }

  /** The newest one that takes jobs; where none does, the one that comes nearest. null: the deployment is on no release. */
  #servingCopy(deploymentId: string): Deployment | null {
    const copies = this.copiesOf(deploymentId)
    if (copies.length === 0) return null
    const rankOf = ({ state }: Deployment) => (state === 'ready' ? 2 : state === 'provisioning' ? 1 : 0)
    const revisionOf = ({ id }: Deployment) => readCopyPool(id)?.revision ?? 0
    return copies.reduce((best, copy) => {
      const isBetter = rankOf(copy) - rankOf(best) || revisionOf(copy) - revisionOf(best)
      return isBetter > 0 ? copy : best
    })
  }

  #stateOf(pool: string): DeploymentState {
    return (this.#servingCopy(deploymentOf(pool)) ?? this.#mustFind(pool)).state
  }

  #mustFind(id: string): Deployment {
    const found = this.#known.get(id)
    if (found === undefined) throw noDeployment()
    return found
  }

  /** Always later than the last change, so that the newer of two states is known. */
  #timeOf({ changedAt }: Deployment): Date {
    return new Date(Math.max(this.#deps.clock.now().getTime(), changedAt.getTime() + 1))
  }

  async #moveTo(id: string, to: DeploymentState, through: DeploymentStore): Promise<Deployment> {
    // Another process may have moved it: an operator's word counts for what the deployment is, not for an older copy.
    await this.#list.refresh()
    const current = this.#mustFind(id)
    if (!canMove(current.state, to)) return current
    // From wherever it may be by now: the lifecycle moves it too, and an operator's word must not get lost between.
    const moved = await this.#write(() => through.move({ id, from: statesBefore(to), to, at: this.#timeOf(current) }))
    return moved ?? this.#mustFind(id)
  }
}

const REFUSED: Readonly<Record<Exclude<DeploymentState, 'ready'>, () => ServiceError>> = {
  provisioning: () =>
    new ServiceError('deployment_not_ready', 'the deployment is being started; send the job again in a moment', {
      retryAfterSeconds: NOT_READY_SECONDS,
    }),
  draining: stopped,
  stopped,
}

function stopped(): ServiceError {
  return new ServiceError('deployment_stopped', 'the deployment was stopped; its operator must start it again')
}

function checkSettings({ workers, idleAfterMs }: Pick<Deployment, 'workers' | 'idleAfterMs'>): void {
  if (!(Number.isInteger(workers) && workers >= 0 && workers <= MAX_WORKERS)) {
    throw invalidField('workers', `must be a whole number from 0 to ${MAX_WORKERS}`)
  }
  const isIdle =
    idleAfterMs === null || (Number.isInteger(idleAfterMs) && idleAfterMs >= 1000 && idleAfterMs <= MAX_IDLE_MS)
  if (!isIdle) throw invalidField('idle_after_ms', `must be a whole number from 1000 to ${MAX_IDLE_MS}, or null`)
}

function noDeployment(): ServiceError {
  return new ServiceError('not_found', 'there is no deployment under this address')
}
