/**
 * What a tracer is told of one attempt at a job: how long it waited, its claim, the engine's part with the nodes of the graph, and the
 * outputs that were stored. It continues the trace of the submit, whichever process that was in. There is none where nobody traces.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { reasonOf, type Span, type Tracer } from '../../../../lib/tracing/tracer.ts'
import type { Claim } from '../job-store.ts'
import { toNodeSpan } from './record/run-record.ts'
import type { RunEnd, StoreOutput } from './run-deps.ts'
import type { EngineListener } from './run-steps.ts'

// A graph with more nodes is told of in part: the collector's room is for all jobs.
const MAX_NODES = 200

export class RunTrace {
  readonly #tracer: Tracer
  readonly #clock: Clock
  readonly #run: Span
  #engine: Span | null = null

  constructor(claim: Claim, { tracer, clock }: { readonly tracer: Tracer; readonly clock: Clock }) {
    this.#tracer = tracer
    this.#clock = clock
    const { job, trace: parent = null, engineId } = claim
    const nowMs = this.#nowMs()
    const claimedAtMs = job.startedAt?.getTime() ?? nowMs
    const attributes = { 'atelier.job.id': job.id, 'atelier.pool': job.pool, 'atelier.attempt': job.attempt }
    const begin = { parent, startMs: claimedAtMs, attributes: { ...attributes, 'atelier.engine': engineId } }
    this.#run = tracer.start('job.run', begin)
    // When an earlier attempt gave the job back is not known.
    if (job.attempt <= 1) {
      const inTrace = parent ?? this.#run.context
      tracer.start('job.wait', { parent: inTrace, startMs: job.createdAt.getTime(), attributes }).end(claimedAtMs)
    }
    tracer.start('job.claim', { parent: this.#run.context, startMs: claimedAtMs }).end(nowMs)
  }

  within<Result>(body: () => Result): Result {
    return this.#tracer.within(this.#run, body)
  }

  /** The engine's part: from the moment at which it is given the graph until it says nothing more. */
  async engine(listen: () => Promise<void>): Promise<void> {
    const span = this.#tracer.start('job.engine', { parent: this.#run.context, startMs: this.#nowMs() })
    this.#engine = span
    await this.#tracer.within(span, listen)
    span.end(this.#nowMs())
  }

  storing(store: StoreOutput): StoreOutput {
    return async (source, options) => {
      const span = this.#tracer.start('output.store', { parent: this.#run.context, startMs: this.#nowMs() })
      try {
        const stored = await this.#tracer.within(span, () => store(source, options))
        span.set({ 'atelier.bytes': stored.sizeBytes })
        return stored
      } catch (error) {
        span.fail(reasonOf(error))
        throw error
      } finally {
        span.end(this.#nowMs())
      }
    }
  }

  /** Passes the end of the run on, and tells of it. */
  async follow(
    done: Promise<RunEnd>,
    heard: Pick<EngineListener, 'fold' | 'recorder'>,
    classOf: (nodeId: string) => string | null,
  ): Promise<RunEnd> {
    const end = await done
    this.#tellNodes(heard, classOf)
    const outcome = heard.fold.outcome?.kind ?? 'none'
    this.#run.set({ 'atelier.end': end.end, 'atelier.outcome': outcome })
    const failure = end.failureCode ?? (end.end === 'finished' ? null : end.end)
    if (failure !== null) this.#run.fail(failure)
    this.#run.end(this.#nowMs())
    return end
  }

  #tellNodes({ recorder }: Pick<EngineListener, 'recorder'>, classOf: (nodeId: string) => string | null): void {
    const record = recorder.finish(this.#nowMs())
    if (record === null || this.#engine === null) return
    const nodes = (record.spans ?? []).map(toNodeSpan).filter(({ startedAtMs }) => startedAtMs !== null)
    for (const { nodeId, startedAtMs, endedAtMs } of nodes.slice(0, MAX_NODES)) {
      const classType = classOf(nodeId) ?? 'node'
      const attributes = { 'atelier.node.id': nodeId, 'atelier.node.class': classType }
      const startMs = startedAtMs ?? record.startedAtMs
      const span = this.#tracer.start(classType, { parent: this.#engine.context, startMs, attributes })
      if (endedAtMs === null) span.fail('unfinished')
      span.end(endedAtMs ?? record.endedAtMs)
    }
    this.#run.set({ 'atelier.nodes.ran': nodes.length, 'atelier.nodes.cached': record.cached.nodeIds.length })
  }

  #nowMs(): number {
    return this.#clock.now().getTime()
  }
}
