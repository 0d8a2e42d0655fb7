/** The built-in engine as one of the service's engines: its words for a run, a loss and a refused model, and nothing else. */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { EngineFailure } from '../../../../engine/graph/run-event.ts'
import {
  type Engine as BuiltInEngine,
  type RunOptions as BuiltInRunOptions,
  CheckedGraph,
  type EngineOptions,
  EngineThreadLostError,
  ModelRefusedError,
  openEngine,
  readCatalog,
} from '../../../../engine/index.ts'
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { Tracer } from '../../../../lib/tracing/tracer.ts'
import { EngineLostError } from '../../../domain/engine/engine-lost-error.ts'
import type { Engine, EngineRun } from '../../../domain/engine/engine-port.ts'
import { MACHINE_FAULT } from '../../../domain/engine/fleet/run-judge.ts'
import type { RunModel } from '../../../domain/engine/model-port.ts'
import { type Refusal, ServiceError } from '../../../domain/errors.ts'

interface EmbeddedEngineOptions extends EngineOptions {
  /** Runs a partner model for a node; without it such a node fails and says why. */
  readonly runModel?: RunModel
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
}

/** What an engine with these nodes could run, without one. Throws NodeModuleError. */
export function readEmbeddedCatalog(options: Pick<EngineOptions, 'customNodes' | 'log'>): Promise<NodeCatalog> {
  return readCatalog(options)
}

/** Throws NodeModuleError when a custom node cannot be loaded. */
export async function openEmbeddedEngine(options: EmbeddedEngineOptions): Promise<Engine> {
  const { runModel, tracer, ...rest } = options
  return toServiceEngine(await openEngine(rest), () => inRun(runModel ?? null, tracer))
}

/** A thread asks for a model, and knows nothing of the trace that its run belongs to: to be called where the run begins. */
function inRun(runModel: RunModel | null, tracer: Tracer | undefined): RunModel | null {
  const span = runModel === null ? undefined : tracer?.active()
  if (runModel === null || tracer === undefined || span === undefined) return runModel
  return (request, options) => tracer.within(span, () => runModel(request, options))
}

function toServiceEngine(engine: BuiltInEngine, modelsOfRun: () => RunModel | null): Engine {
  return {
    catalog: () => engine.catalog(),
    memoryBytes: () => engine.memoryBytes(),
    async *run(run, { signal }) {
      try {
        const graph = new CheckedGraph(run.graph, run.graphText)
        for await (const event of engine.run(graph, { signal, ...toRunOptions(run, modelsOfRun()) })) {
          yield event.type === 'failed' ? { ...event, failure: blameMachine(event.failure) } : event
        }
      } catch (error) {
        if (!(error instanceof EngineThreadLostError)) throw error
        const { message, isBlameless } = error
        throw new EngineLostError('engine_restarted', message, { isBlameless, cause: error })
      }
    },
    [Symbol.asyncDispose]: () => engine.close(),
  }
}

/** What the operating system says when this machine cannot hold what a node writes aside; the engine tells nothing else of it. */
const MACHINE_CODE = /\((?:ENOSPC|EDQUOT|EIO|EROFS|EMFILE|ENFILE)\)$/

function blameMachine(failure: EngineFailure): EngineFailure {
  const isMachine = failure.exceptionType === 'OSError' && MACHINE_CODE.test(failure.message)
  return isMachine ? { ...failure, code: MACHINE_FAULT } : failure
}

function toRunOptions(run: EngineRun, runModel: RunModel | null): BuiltInRunOptions {
  const { accountId, jobId, inputs, extraData } = run
  return {
    owner: accountId,
    inputs,
    // Of `extra_data` only this part may reach a node: the rest are credentials.
    extraPngInfo: (extraData?.extra_pnginfo ?? null) as JsonValue,
    reserveOutputNumbers: (folder, prefix, count) => run.reserveOutputNumbers(folder, prefix, count),
    ...(runModel !== null && {
      runModel: (call, options) => runModel({ accountId, jobId, extraData, ...call }, options).catch(refuseModel),
    }),
  }
}

/** Refusals that clients of a workflow know by a name of their own. */
const EXCEPTION_TYPES: Readonly<Partial<Record<Refusal, string>>> = {
  insufficient_credits: 'InsufficientFundsError',
  subscription_inactive: 'InactiveSubscriptionError',
}

function refuseModel(error: unknown): never {
  if (!(error instanceof ServiceError)) throw error
  throw new ModelRefusedError(error.message, { exceptionType: EXCEPTION_TYPES[error.refusal], cause: error })
}
