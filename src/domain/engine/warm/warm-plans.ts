/** What operators want loaded, by server: kept with the service, and known to every process within seconds. */
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import { invalidField } from '../../errors.ts'
import { toWarmGraphs, type WarmPlan, type WarmWish } from './warm-plan.ts'

/** Small values of the service itself. */
interface PlanStore {
  readMeta(key: string): Promise<string | null>
  changeMeta(key: string, change: (value: string | null) => string): Promise<string>
}

export interface WarmPlans {
  /** As it was known a moment ago; null: nothing is wanted. */
  planOf(engineId: string): WarmPlan | null
  /** Reads what other processes have written. True when something has changed. */
  refresh(): Promise<boolean>
  /** null takes it back. Throws invalid_field for what the server cannot load. `catalog`: null: it was never reached, or loads nothing beforehand. */
  set(engineId: string, wish: WarmWish | null, catalog: NodeCatalog | null): Promise<WarmPlan | null>
}

const KEY = 'warm'
const MAX_PLANS = 500
const MAX_WEIGHTS = 20
const MAX_WORKFLOW_CHARACTERS = 262_144

type Plans = Readonly<Record<string, WarmPlan>>

const readPlans = (text: string | null): Plans => (text === null ? {} : (JSON.parse(text) as Plans))

/** With what was wanted before. */
export async function openWarmPlans(store: PlanStore): Promise<WarmPlans> {
  const plans = createWarmPlans(store)
  await plans.refresh()
  return plans
}

function createWarmPlans(store: PlanStore): WarmPlans {
  let text: string | null = null
  let plans: Plans = {}

  function learn(news: string | null): boolean {
    if (news === text) return false
    text = news
    plans = readPlans(news)
    return true
  }

  return {
    planOf: (engineId) => (Object.hasOwn(plans, engineId) ? plans[engineId] : null),
    refresh: async () => learn(await store.readMeta(KEY)),
    async set(engineId, wish, catalog) {
      if (wish !== null) mustBeLoadable(wish, catalog)
      learn(
        await store.changeMeta(KEY, (value) => {
          const { [engineId]: before, ...others } = readPlans(value)
          if (wish === null) return JSON.stringify(others)
          if (before === undefined && Object.keys(others).length >= MAX_PLANS)
            throw invalidField('weights', `cannot be kept for more than ${MAX_PLANS} servers`)
          return JSON.stringify({ ...others, [engineId]: { ...wish, number: (before?.number ?? 0) + 1 } })
        }),
      )
      return this.planOf(engineId)
    },
  }
}

function mustBeLoadable(wish: WarmWish, catalog: NodeCatalog | null): void {
  const { weights, workflow } = wish
  if (weights.length === 0 && workflow === null) throw invalidField('weights', 'or a workflow must be given')
  if (weights.length > MAX_WEIGHTS) throw invalidField('weights', `must be at most ${MAX_WEIGHTS}`)
  if ((workflow ?? '').length > MAX_WORKFLOW_CHARACTERS)
    throw invalidField('workflow', `must have at most ${MAX_WORKFLOW_CHARACTERS} characters of JSON`)
  if (catalog === null)
    throw invalidField(
      'weights',
      'are for a ComfyUI server that this service has reached itself: the built-in engine and servers of workers that joined load none beforehand',
    )
  toWarmGraphs(wish, catalog)
}
