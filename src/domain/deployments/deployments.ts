/**
 * The deployments in memory, so that an address is known at once. A change by this process is made first in the store, then in
 * memory; what other processes change comes with the next refresh. A deployment of another account looks exactly like one that does not exist.
 */
import type { Clock } from '../../../lib/clock.ts'
import { FollowedList } from '../../../lib/waiting/followed-list.ts'
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

export interface Deployments {
  find(id: string): Deployment | null
  /** Throws not_found, in one wording, unless this account may use it. */
  findFor(accountId: string, id: string): Deployment
  list(): readonly Deployment[]
  /** Throws deployment_not_ready or deployment_stopped when this pool takes no new jobs now. */
  mustTakeJobs(pool: string): void
  /** `through`: the store with an audit line bound to its writes. Throws invalid_field. */
  create(deployment: NewDeployment, through?: DeploymentStore): Promise<Deployment>
  /** Throws not_found. Each does nothing when it is so already. */
  start(id: string, through?: DeploymentStore): Promise<Deployment>
  /** Takes no new jobs and ends when those it has are done; with `now` those that wait stay until it is started again. */
  stop(id: string, options: { readonly now: boolean }, through?: DeploymentStore): Promise<Deployment>
  configure(
    id: string,
    change: Partial<Pick<Deployment, 'workers' | 'idleAfterMs'>>,
    through?: DeploymentStore,
  ): Promise<Deployment>
  /** For the lifecycle itself; null when it was not possible any more. */
  move(move: Omit<DeploymentMove, 'at'>): Promise<Deployment | null>
  /** Of the newest change that is known here. */
  readonly version: number
  /** Brings in what others changed in the store. */
  refresh(): Promise<void>
  onChange(listener: (deployment: Deployment) => void): void
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
  const deployments = createDeployments(deps)
  await deployments.refresh()
  return deployments
}

function createDeployments({ store, clock, announce }: DeploymentsDeps): Deployments {
  const known = new Map<string, Deployment>()
  const listeners: ((deployment: Deployment) => void)[] = []
  const list = new FollowedList<VersionedDeployment>({
    read: (version, limit) => store.changedAfter(version, limit),
    take: ({ deployment }) => remember(deployment),
  })

  function remember(deployment: Deployment): void {
    const before = known.get(deployment.id)
    known.set(deployment.id, deployment)
    // What this process has written is read once more with the next refresh: that is no news.
    if (before?.state === deployment.state && before.changedAt.getTime() === deployment.changedAt.getTime()) return
    for (const tell of listeners) tell(deployment)
  }

  async function write(act: () => Promise<Deployment | null>): Promise<Deployment | null> {
    const changed = await list.write(act, (answer) => {
      if (answer !== null) remember(answer)
    })
    if (changed !== null) await announce?.()
    return changed
  }

  function mustFind(id: string): Deployment {
    const found = known.get(id)
    if (found === undefined) throw noDeployment()
    return found
  }

  /** Always later than the last change, so that the newer of two states is known. */
  function timeOf({ changedAt }: Deployment): Date {
    return new Date(Math.max(clock.now().getTime(), changedAt.getTime() + 1))
  }

  async function moveTo(id: string, to: DeploymentState, through: DeploymentStore): Promise<Deployment> {
    // Another process may have moved it: an operator's word counts for what the deployment is, not for an older copy.
    await list.refresh()
    const current = mustFind(id)
    if (!canMove(current.state, to)) return current
    // From wherever it may be by now: the lifecycle moves it too, and an operator's word must not get lost between.
    const moved = await write(() => through.move({ id, from: statesBefore(to), to, at: timeOf(current) }))
    return moved ?? mustFind(id)
  }

  return {
    find: (id) => known.get(id) ?? null,
    findFor(accountId, id) {
      const found = mustFind(id)
      if (found.accountId !== null && found.accountId !== accountId) throw noDeployment()
      return found
    },
    list: () => [...known.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    mustTakeJobs(pool) {
      if (pool === DEFAULT_POOL) return
      const { state } = mustFind(pool)
      if (state !== 'ready') throw REFUSED[state]()
    },
    async create({ id, accountId, workers, idleAfterMs }, through = store) {
      if (!isDeploymentId(id))
        throw invalidField('id', 'must be one DNS label that is not reserved: 1 to 63 small letters, digits or dashes')
      checkSettings({ workers, idleAfterMs })
      const now = clock.now()
      const settings = { accountId, workers, idleAfterMs }
      const deployment: Deployment = { id, ...settings, state: 'provisioning', createdAt: now, changedAt: now }
      const made = await write(async () => ((await through.create(deployment)) ? deployment : null))
      if (made === null) throw invalidField('id', 'is taken')
      return made
    },
    async start(id, through = store) {
      await list.refresh()
      const { state } = mustFind(id)
      return state === 'ready' ? mustFind(id) : moveTo(id, 'provisioning', through)
    },
    stop: (id, { now }, through = store) => moveTo(id, now ? 'stopped' : 'draining', through),
    async configure(id, change, through = store) {
      await list.refresh()
      const { workers, idleAfterMs } = { ...mustFind(id), ...change }
      checkSettings({ workers, idleAfterMs })
      const settings = { id, workers, idleAfterMs, at: timeOf(mustFind(id)) }
      const changed = await write(() => through.configure(settings))
      if (changed === null) throw noDeployment()
      return changed
    },
    move: (move) => write(() => store.move({ ...move, at: timeOf(mustFind(move.id)) })),
    get version() {
      return list.version
    },
    refresh: () => list.refresh(),
    onChange: (listener) => void listeners.push(listener),
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
