/** The built-in engine as one of the service's engines: its words for a run, a loss and a refused model, and nothing else. */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
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
import { EngineLostError } from '../../../domain/engine/engine-lost-error.ts'
import type { Engine, EngineRun } from '../../../domain/engine/engine-port.ts'
import type { RunModel } from '../../../domain/engine/model-port.ts'
import { type Refusal, ServiceError } from '../../../domain/errors.ts'

interface EmbeddedEngineOptions extends EngineOptions {
  /** Runs a partner model for a node; without it such a node fails and says why. */
  readonly runModel?: RunModel
}

/** What an engine with these nodes could run, without one. Throws NodeModuleError. */
export function readEmbeddedCatalog(options: Pick<EngineOptions, 'customNodes' | 'log'>): Promise<NodeCatalog> {
  return readCatalog(options)
}

/** Throws NodeModuleError when a custom node cannot be loaded. */
export async function openEmbeddedEngine({ runModel, ...options }: EmbeddedEngineOptions): Promise<Engine> {
  return toServiceEngine(await openEngine(options), runModel ?? null)
}

function toServiceEngine(engine: BuiltInEngine, runModel: RunModel | null): Engine {
  return {
    catalog: () => engine.catalog(),
    async *run(run, { signal }) {
      try {
        yield* engine.run(new CheckedGraph(run.graph, run.graphText), { signal, ...toRunOptions(run, runModel) })
      } catch (error) {
        if (!(error instanceof EngineThreadLostError)) throw error
        const { message, isBlameless } = error
        throw new EngineLostError('engine_restarted', message, { isBlameless, cause: error })
      }
    },
    [Symbol.asyncDispose]: () => engine.close(),
  }
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
