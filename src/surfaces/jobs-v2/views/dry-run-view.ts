/** What a submit would meet, as its dry run answers it. */
import { writeUsd } from '../../../../lib/text/usd.ts'
import type { PoolPrice } from '../../../domain/credits/prices.ts'
import type { ListedEngine } from '../../../domain/engine/directory/engine-directory.ts'
import type { ReuseLook } from '../../../domain/jobs/reuse/find-result.ts'
import type { DryRun, JudgedGraph } from '../../../domain/jobs/submit/dry-run.ts'
import type { ForeseeWait } from '../../../domain/jobs/waits/foresee-wait.ts'
import { countPlaces, type EngineView, toEngineView } from '../../kit/jobs/job-view.ts'
import type { EngineAvailability } from '../../kit/parts/console-parts.ts'
import { toComplaint } from '../jobs-errors.ts'
import { toMissingView } from './converted-view.ts'

/** What is known of the engines and the queue. */
export interface Forecast {
  /** Those that may run jobs of a pool. */
  readonly engines: (pool: string) => readonly ListedEngine[]
  readonly availability: () => EngineAvailability
  /** Whether engines are named that cannot run the job: to those who own them they say what to add. */
  readonly showsUnable: boolean
  readonly foreseeWait: ForeseeWait
}

interface Submitter {
  readonly accountId: string
  readonly priority: number
}

export function createDryRunView({ engines, availability, showsUnable, foreseeWait }: Forecast) {
  return async ({ complaints, graph, price, pool, maxRunning, reuse }: DryRun, { accountId, priority }: Submitter) => {
    const known = availability()
    const views = graph === null ? [] : engines(pool).map((engine) => judgeEngine(engine, graph, known))
    const wait = await foreseeWait({ accountId, pool, priority, maxSlots: countPlaces(views, maxRunning) })
    return {
      is_accepted: complaints.length === 0,
      complaints: complaints.map(toComplaint),
      needs: graph === null ? null : graph.needs,
      missing: graph === null ? null : toMissingView(graph.missing),
      engines: showsUnable ? views : views.filter((engine) => engine.is_able),
      is_engine_judged: graph?.isEngineJudged ?? false,
      price: price === null ? null : toPriceView(price),
      wait: { ahead: wait.ahead, estimate_seconds: wait.seconds },
      reuse: reuse === null ? null : toReuseView(reuse),
    }
  }
}

/** What no engine has speaks against each of them here; a job that waits already may need it only of an engine that is away. */
function judgeEngine(
  engine: ListedEngine,
  { needs, missing }: JudgedGraph,
  availability: EngineAvailability,
): EngineView {
  const view = toEngineView(engine, needs, availability)
  const lack = missing.classes[0]?.classType ?? missing.weights[0]?.name ?? null
  return lack === null || !view.is_able ? view : { ...view, is_able: false, why_not: `lacks ${lack}` }
}

/** Whether a submit would be answered at once, and if not, why. */
function toReuseView(look: ReuseLook) {
  if (look.key === null) return { reused_from: null, why_not: look.whyNot }
  if (look.found !== null) return { reused_from: look.found.jobId, why_not: null }
  return { reused_from: null, why_not: 'no earlier job of this account has this result' }
}

function toPriceView({ holdMicros, perSecondMicros, minimumMicros }: PoolPrice) {
  return {
    hold_usd: writeUsd(holdMicros),
    per_second_usd: writeUsd(perSecondMicros),
    minimum_usd: writeUsd(minimumMicros),
  }
}
