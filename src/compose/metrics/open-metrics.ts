/** The metrics of the service as Prometheus text. Counters follow the domain's observer; gauges are read at each scrape. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { ENGINE_STATES, type EngineStatus } from '../../domain/engine/fleet/engine-status.ts'
import type { JobObserver } from '../../domain/jobs/observer.ts'
import { JOB_STATUSES, type JobStatus } from '../../domain/jobs/transitions.ts'
import type { CallObserver } from '../../domain/models/calls/drive-call.ts'
import { withTraces } from '../router/provider-traces.ts'
import { createCallObserver, type ErrorTypeOf } from './call-metrics.ts'
import { createExchangeObserver, type ObserveExchange } from './provider-metrics.ts'

export interface Metrics {
  readonly observer: JobObserver
  readonly callObserver: CallObserver
  readonly observeExchange: ObserveExchange
  readonly contentType: string
  render(): Promise<string>
  /** Adds the sources of gauges, which exist only once everything is open. */
  watch(sources: MetricSources): void
}

interface MetricSources {
  readonly countJobs: () => Promise<Readonly<Record<JobStatus, number>>>
  readonly runningHere: () => number
  readonly openStreams: () => number
  /** Gauges of single surfaces. */
  readonly gauges?: readonly { readonly name: string; readonly help: string; readonly read: () => number }[]
  readonly engines: () => readonly EngineStatus[]
  readonly groupCommit: () => { readonly batches: number; readonly operations: number }
}

// From a trivial graph to an hour of video.
const SECONDS = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 30, 120, 600, 3600]

export function openMetrics(version: string, errorTypeOf: ErrorTypeOf): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  new Gauge({ name: 'atelier_info', help: 'The running version.', labelNames: ['version'], registers: [registry] }).set(
    { version },
    1,
  )
  return {
    observer: createObserver(registry),
    callObserver: createCallObserver(registry, errorTypeOf),
    observeExchange: withTraces(createExchangeObserver(registry)),
    contentType: registry.contentType,
    render: () => registry.metrics(),
    watch: (sources) => addGauges(registry, sources),
  }
}

function createObserver(registry: Registry): JobObserver {
  const registers = [registry]
  const submitted = new Counter({ name: 'atelier_jobs_submitted_total', help: 'Jobs accepted.', registers })
  const finished = new Counter({
    name: 'atelier_jobs_finished_total',
    help: 'Jobs that reached a terminal state, by state and error code.',
    labelNames: ['status', 'code'],
    registers,
  })
  const queueSeconds = new Histogram({
    name: 'atelier_job_queue_seconds',
    help: 'From submit to start.',
    buckets: SECONDS,
    registers,
  })
  const runSeconds = new Histogram({
    name: 'atelier_job_execution_seconds',
    help: 'From start to end.',
    buckets: SECONDS,
    registers,
  })
  const attemptsLost = new Counter({
    name: 'atelier_attempts_lost_total',
    help: 'Runs whose engine or worker died.',
    registers,
  })
  const leasesLost = new Counter({ name: 'atelier_leases_lost_total', help: 'Runs that lost their lease.', registers })
  const outputBytes = new Counter({
    name: 'atelier_output_bytes_total',
    help: 'Bytes of committed outputs.',
    labelNames: ['type'],
    registers,
  })
  const enginesStuck = new Counter({
    name: 'atelier_engines_stuck_total',
    help: 'Engines that ignored an interrupt.',
    registers,
  })
  return {
    submitted: () => submitted.inc(),
    started: ({ queueMs }) => queueSeconds.observe(queueMs / 1000),
    finished({ status, code, executionMs }) {
      finished.inc({ status, code: code ?? '' })
      if (executionMs !== null) runSeconds.observe(executionMs / 1000)
    },
    attemptLost: () => attemptsLost.inc(),
    leaseLost: () => leasesLost.inc(),
    outputStored: ({ type, sizeBytes }) => outputBytes.inc({ type }, sizeBytes),
    engineStuck: () => enginesStuck.inc(),
  }
}

function addGauges(registry: Registry, sources: MetricSources): void {
  const registers = [registry]
  new Gauge({
    name: 'atelier_jobs',
    help: 'Jobs in the store, by state.',
    labelNames: ['status'],
    registers,
    async collect() {
      const counts = await sources.countJobs()
      for (const status of JOB_STATUSES) this.set({ status }, counts[status])
    },
  })
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
  add('atelier_jobs_running_here', 'Jobs that this process runs.', sources.runningHere)
  add('atelier_event_streams', 'Open event streams.', sources.openStreams)
  for (const { name, help, read } of sources.gauges ?? []) add(name, help, read)
  add('atelier_store_commits', 'Group commits since the start.', () => sources.groupCommit().batches)
  add('atelier_store_operations', 'Writes since the start.', () => sources.groupCommit().operations)
}

const PER_ENGINE: readonly (readonly [name: string, help: string, read: (engine: EngineStatus) => number])[] = [
  ['running', 'Jobs that an engine runs.', ({ running }) => running],
  ['slots', 'Jobs that an engine takes at a time.', ({ concurrency }) => concurrency],
  ['jobs', 'Runs that an engine was given since the start.', ({ counts }) => counts.jobs],
  ['failures', 'Runs that failed on an engine.', ({ counts }) => counts.failures],
  ['losses', 'Runs that an engine broke off.', ({ counts }) => counts.losses],
  ['weight_switches', 'Runs for which an engine had to load other weights.', ({ counts }) => counts.switches],
  ['recycles', 'Processes of an engine that were replaced on purpose.', ({ counts }) => counts.recycles],
  ['reconnects', 'How often the event connection to an engine was made anew.', ({ reconnects }) => reconnects],
  ['memory_bytes', 'Memory of a supervised engine, 0 when unknown.', ({ memoryBytes }) => memoryBytes ?? 0],
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
