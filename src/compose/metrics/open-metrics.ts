/** The metrics of the service as Prometheus text. Counters follow the domain's observer; gauges are read at each scrape. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { PoolSignal } from '../../domain/deployments/pool-signals.ts'
import { ENGINE_STATES, type EngineStatus } from '../../domain/engine/fleet/engine-status.ts'
import { isStoreAway } from '../../domain/errors.ts'
import type { JobObserver } from '../../domain/jobs/observer.ts'
import { JOB_STATUSES, type JobStatus } from '../../domain/jobs/transitions.ts'
import type { CallObserver } from '../../domain/models/calls/drive-call.ts'
import type { HookObserver } from '../../domain/moderation/ask-hook.ts'
import type { StoreHealth } from '../../domain/store.ts'
import type { DeliveryObserver } from '../../domain/webhooks/deliver-webhooks.ts'
import {
  createCallObserver,
  createDeliveryObserver,
  createExchangeObserver,
  createHookObserver,
  createSeries,
  type ErrorTypeOf,
  type ObserveExchange,
} from './call-metrics.ts'
import { createGpuCounters } from './gpu-counters.ts'

export interface Metrics {
  readonly observer: JobObserver
  readonly callObserver: CallObserver
  readonly observeExchange: ObserveExchange
  readonly deliveryObserver: DeliveryObserver
  readonly hookObserver: HookObserver
  readonly contentType: string
  render(): Promise<string>
  /** Adds the sources of gauges, which exist only once everything is open. */
  watch(sources: MetricSources): void
}

export interface NamedGauge {
  readonly name: string
  readonly help: string
  readonly read: () => number
}

interface MetricSources {
  /** Figures of the whole service; null: other processes report them, so that not every worker asks the store for the same. */
  readonly service: ServiceSources | null
  readonly runningHere: () => number
  readonly openStreams: () => number
  /** Gauges of single parts. */
  readonly gauges?: readonly NamedGauge[]
  readonly engines: () => readonly EngineStatus[]
  /** Which process of the service this is, and whether it does the chores of all of them. */
  readonly nodeId: string
  readonly isLeading: () => boolean
  /** null: the store has nothing to tell. */
  readonly storeHealth: (() => Promise<StoreHealth>) | null
  readonly groupCommit: () => { readonly batches: number; readonly operations: number }
}

interface ServiceSources {
  readonly countJobs: () => Promise<Readonly<Record<JobStatus, number>>>
  readonly poolSignals: () => Promise<readonly PoolSignal[]>
  readonly webhookBacklog: () => Promise<number>
}

// From a trivial graph to an hour of video.
const SECONDS = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 30, 120, 600, 3600]

interface MetricsOptions {
  readonly version: string
  readonly role: string
  readonly errorTypeOf: ErrorTypeOf
}

export function openMetrics({ version, role, errorTypeOf }: MetricsOptions): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'atelier_info',
    help: 'The running version, and the role of this process.',
    labelNames: ['version', 'role'],
    registers: [registry],
  }).set({ version, role }, 1)
  return {
    observer: createObserver(registry),
    callObserver: createCallObserver(registry, errorTypeOf),
    observeExchange: createExchangeObserver(registry),
    deliveryObserver: createDeliveryObserver(registry),
    hookObserver: createHookObserver(registry),
    contentType: registry.contentType,
    render: () => registry.metrics(),
    watch: (sources) => addGauges(registry, sources),
  }
}

function createObserver(registry: Registry): JobObserver {
  const { counter, histogram } = createSeries(registry)
  const submitted = counter('atelier_jobs_submitted_total', 'Jobs accepted.')
  const finished = counter(
    'atelier_jobs_finished_total',
    'Jobs that reached a terminal state, by state and error code.',
    ['status', 'code'],
  )
  const queueSeconds = histogram('atelier_job_queue_seconds', 'From submit to start.', { buckets: SECONDS })
  const runSeconds = histogram('atelier_job_execution_seconds', 'From start to end.', { buckets: SECONDS })
  const attemptsLost = counter('atelier_attempts_lost_total', 'Runs whose engine or worker died.')
  const leasesLost = counter('atelier_leases_lost_total', 'Runs that lost their lease.')
  const outputBytes = counter('atelier_output_bytes_total', 'Bytes of committed outputs.', ['type'])
  const reuse = counter('atelier_job_reuse_total', 'Jobs that asked for an earlier result, by what came of it.', [
    'outcome',
  ])
  const savedSeconds = counter(
    'atelier_job_reuse_saved_seconds_total',
    'Execution time of runs that earlier results made needless.',
  )
  const countGpu = createGpuCounters(registry)
  const enginesStuck = counter('atelier_engines_stuck_total', 'Engines that ignored an interrupt.')
  return {
    submitted: () => submitted.inc(),
    started: ({ queueMs }) => queueSeconds.observe(queueMs / 1000),
    finished({ status, code, executionMs }) {
      finished.inc({ status, code: code ?? '' })
      if (executionMs !== null) runSeconds.observe(executionMs / 1000)
    },
    computed: countGpu,
    attemptLost: () => attemptsLost.inc(),
    leaseLost: () => leasesLost.inc(),
    outputStored: ({ type, sizeBytes }) => outputBytes.inc({ type }, sizeBytes),
    reused({ outcome, savedMs }) {
      reuse.inc({ outcome })
      savedSeconds.inc(savedMs / 1000)
    },
    engineStuck: () => enginesStuck.inc(),
  }
}

function addGauges(registry: Registry, sources: MetricSources): void {
  const registers = [registry]
  if (sources.service !== null) addServiceGauges(registry, sources.service)
  const add = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  addEngineGauges(registry, sources.engines)
  addStoreGauges(registry, sources.storeHealth)
  new Gauge({ name: 'atelier_node', help: 'The id of this process.', labelNames: ['node'], registers }).set(
    { node: sources.nodeId },
    1,
  )
  add('atelier_housekeeping_leader', '1 in the process that does the chores of the service, else 0.', () =>
    sources.isLeading() ? 1 : 0,
  )
  add('atelier_jobs_running_here', 'Jobs that this process runs.', sources.runningHere)
  add('atelier_event_streams', 'Open event streams.', sources.openStreams)
  for (const { name, help, read } of sources.gauges ?? []) add(name, help, read)
  add('atelier_store_commits', 'Group commits since the start.', () => sources.groupCommit().batches)
  add('atelier_store_operations', 'Writes since the start.', () => sources.groupCommit().operations)
}

function addServiceGauges(registry: Registry, { countJobs, poolSignals, webhookBacklog }: ServiceSources): void {
  const registers = [registry]
  new Gauge({
    name: 'atelier_webhook_messages_pending',
    help: 'Messages that wait for their next attempt, counted to 10000: the same figure from every process of a service.',
    registers,
    async collect() {
      const pending = await unlessAway(webhookBacklog())
      if (pending !== null) this.set(pending)
    },
  })
  new Gauge({
    name: 'atelier_jobs',
    help: 'Jobs in the store, by state: the same figures from every process of a service.',
    labelNames: ['status'],
    registers,
    async collect() {
      this.reset()
      const counts = await unlessAway(countJobs())
      if (counts !== null) for (const status of JOB_STATUSES) this.set({ status }, counts[status])
    },
  })
  // All of them are read in one moment, so one look serves them.
  let looking: Promise<readonly PoolSignal[]> | null = null
  function look(): Promise<readonly PoolSignal[]> {
    looking ??= poolSignals().finally(() => {
      looking = null
    })
    return looking
  }
  for (const [name, help, read] of PER_POOL) {
    new Gauge({
      name: `atelier_pool_${name}`,
      help: `${help} The same figures from every process of a service.`,
      labelNames: ['pool'],
      registers,
      async collect() {
        this.reset()
        for (const signal of (await unlessAway(look())) ?? []) this.set({ pool: signal.pool }, read(signal))
      },
    })
  }
}

/** What the store counts is missing while it is away. What this process counts itself is needed then more than ever. */
async function unlessAway<Figures>(reading: Promise<Figures>): Promise<Figures | null> {
  try {
    return await reading
  } catch (error) {
    if (isStoreAway(error)) return null
    throw error
  }
}

const PER_POOL: readonly (readonly [name: string, help: string, read: (signal: PoolSignal) => number])[] = [
  ['queued_jobs', 'Jobs that wait in a pool.', ({ queued }) => queued],
  ['running_jobs', 'Jobs of a pool that run.', ({ running }) => running],
  ['oldest_wait_seconds', 'For how long the oldest waiting job has waited.', ({ oldestWaitMs }) => oldestWaitMs / 1000],
  ['workers', 'Jobs of a pool that all processes together can run at once.', ({ workers }) => workers],
  [
    'wanted_workers',
    'Jobs that run, and those that could by the limits of their accounts.',
    (signal) => signal.wantedWorkers,
  ],
]

const PER_ENGINE: readonly (readonly [name: string, help: string, read: (engine: EngineStatus) => number])[] = [
  ['running', 'Jobs that an engine runs.', ({ running }) => running],
  ['slots', 'Jobs that an engine takes at a time.', ({ concurrency }) => concurrency],
  ['jobs', 'Runs that an engine was given since the start.', ({ counts }) => counts.jobs],
  ['failures', 'Runs that failed on an engine.', ({ counts }) => counts.failures],
  ['losses', 'Runs that an engine broke off.', ({ counts }) => counts.losses],
  ['weight_switches', 'Runs for which an engine had to load other weights.', ({ counts }) => counts.switches],
  ['recycles', 'Processes of an engine that were replaced on purpose.', ({ counts }) => counts.recycles],
  ['reconnects', 'How often the event connection to an engine was made anew.', ({ reconnects }) => reconnects],
  [
    'memory_bytes',
    'Memory of the processes of an engine that we run, 0 when unknown.',
    ({ memoryBytes }) => memoryBytes ?? 0,
  ],
]

function addEngineGauges(registry: Registry, engines: MetricSources['engines']): void {
  const registers = [registry]
  new Gauge({
    name: 'atelier_engine_state',
    help: '1 for the state that an engine is in.',
    labelNames: ['engine', 'state'],
    registers,
    collect() {
      for (const { id, state } of engines()) {
        for (const each of ENGINE_STATES) this.set({ engine: id, state: each }, each === state ? 1 : 0)
      }
    },
  })
  for (const [name, help, read] of PER_ENGINE) {
    new Gauge({
      name: `atelier_engine_${name}`,
      help,
      labelNames: ['engine'],
      registers,
      collect() {
        for (const engine of engines()) this.set({ engine: engine.id }, read(engine))
      },
    })
  }
}

// How a shared store stands, read at each scrape: the same figures from every process of a service.

/** `read`: null where the store looks after itself; then there are no such figures. */
export function addStoreGauges(registry: Registry, read: (() => Promise<StoreHealth>) | null): void {
  if (read === null) return
  let reading: Promise<StoreHealth | null> | null = null

  /** One reading serves all gauges of a scrape. While the store is away, the other figures of this process are still told. */
  function readOnce(): Promise<StoreHealth | null> {
    reading ??= (read as () => Promise<StoreHealth>)()
      .catch(() => null)
      .finally(() => {
        reading = null
      })
    return reading
  }

  const add = (
    name: string,
    help: string,
    set: (gauge: Gauge, health: StoreHealth) => void,
    labelNames: string[] = [],
  ) =>
    new Gauge({
      name: `atelier_store_${name}`,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const health = await readOnce()
        if (health === null) this.reset()
        else set(this, health)
      },
    })
  add(
    'dead_tuples',
    'Removed rows that are not reclaimed yet, in the tables that change with every job.',
    (gauge, { deadRows }) => {
      for (const [table, count] of Object.entries(deadRows)) gauge.set({ table }, count)
    },
    ['table'],
  )
  add(
    'oldest_xmin_age',
    'Transactions since the oldest one that keeps removed rows from being reclaimed.',
    (gauge, { oldestTransactionAge }) => gauge.set(oldestTransactionAge),
  )
  add(
    'partition_lead_seconds',
    'How far ahead of now there are partitions for jobs to expire in.',
    (gauge, { partitionLeadMs }) => gauge.set(Math.round(partitionLeadMs / 1000)),
  )
}
