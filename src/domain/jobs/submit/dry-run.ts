/**
 * What would become of a submit, without making it: it goes through the same checks in the same order, but where a submit stops at
 * the first refusal this one goes on. Nothing is stored, held, claimed or learnt, and no engine is asked.
 */
import type { Graph } from '../../../../engine/graph/graph.ts'
import { writeGraphSteps } from '../../../../engine/graph/graph-json.ts'
import type { NodeCatalog } from '../../../../engine/graph/node-catalog.ts'
import type { ValidationResult } from '../../../../engine/graph/validate/validation-result.ts'
import type { Clock } from '../../../../lib/clock.ts'
import { writeJsonSteps } from '../../../../lib/json/write-json-steps.ts'
import type { Turns } from '../../../../lib/waiting/turns.ts'
import type { AccountStore } from '../../accounts/account-store.ts'
import type { LedgerStore } from '../../credits/ledger.ts'
import type { PoolPrice } from '../../credits/prices.ts'
import { placeLacks } from '../../engine/weights/missing-weights.ts'
import { ServiceError } from '../../errors.ts'
import { type IdempotencyStore, keyReuse } from '../../idempotency/idempotency-key.ts'
import { toLackRefusal } from '../../workflows/graph-refusals.ts'
import { findLacks, findMissing, type Missing } from '../../workflows/needs.ts'
import { findRefusal, hasOwnJudges, type InspectWorkflow, type Placement } from '../../workflows/prepare.ts'
import { findExcess, NO_TALLIES, type RunLimitStore } from '../limits/run-limits.ts'
import type { ReuseLook } from '../reuse/find-result.ts'
import { splitExtraDataSteps } from './extra-data-keeper.ts'
import { readTerms, toRecipe } from './job-origin.ts'
import { lookForResult, refuseModels, type SubmitDeps, type SubmitRequest, toJobHook, toPrice } from './submit-job.ts'
import { insufficientCredits, outOfBounds, queueFull, shuttingDown } from './submit-refusals.ts'
import { mustBePriority, toQueueTimes } from './submit-times.ts'

export interface DryRun {
  /** In the order in which a submit looks: it would be refused with the first one. */
  readonly complaints: readonly ServiceError[]
  /** null: the workflow is no graph. */
  readonly graph: JudgedGraph | null
  /** null: it costs nothing, or cannot be told. */
  readonly price: PoolPrice | null
  readonly pool: string
  /** How many jobs of the account may run at once; null: as many as there are places. */
  readonly maxRunning: number | null
  /** null: it is not asked for, or there are complaints. */
  readonly reuse: ReuseLook | null
  /** The workflow is another account's: nothing may be told of what it is made of. Left out: it is not. */
  readonly isOfOther?: boolean
}

export interface JudgedGraph {
  readonly needs: { readonly classes: readonly string[]; readonly weights: readonly string[] }
  readonly missing: Missing
  readonly isEngineJudged: boolean
}

/** `found`: what is wrong with the request already. */
export type TrySubmit = (request: SubmitRequest, found?: readonly ServiceError[]) => Promise<DryRun>

interface TrySubmitDeps
  extends Pick<
    SubmitDeps,
    | 'admit'
    | 'reuse'
    | 'checkedBy'
    | 'toHook'
    | 'mustRunModels'
    | 'mustTakeJobs'
    | 'isClosing'
    | 'retryAfterSeconds'
    | 'pool'
    | 'retentionMs'
    | 'clock'
  > {
  readonly inspectWorkflow: InspectWorkflow
  readonly turns: Turns
  readonly catalog: (pool: string) => NodeCatalog
  readonly placement?: Placement
  readonly keys: Pick<IdempotencyStore, 'findKey'>
  readonly ledger: Pick<LedgerStore, 'balance'>
  readonly accounts: Pick<AccountStore, 'findUse'>
  readonly runLimits: Pick<RunLimitStore, 'findUse'>
  readonly limitsOf: (accountId: string) => { readonly maxRunning: number | null; readonly maxQueued: number }
  readonly clock: Clock
}

type Inspected = Awaited<ReturnType<InspectWorkflow>>

export function createTrySubmit(deps: TrySubmitDeps): TrySubmit {
  return async function trySubmit(request, found = []) {
    const { accountId } = request
    const pool = request.pool ?? deps.pool
    const complaints: ServiceError[] = [...found]
    const complain = (refusal: ServiceError) => void complaints.push(refusal)
    async function attempt<Value>(check: () => Value | Promise<Value>): Promise<Value | null> {
      try {
        return await check()
      } catch (error) {
        if (!(error instanceof ServiceError) || error.refusal === 'store_unavailable') throw error
        complain(error)
        return null
      }
    }

    if (deps.isClosing?.()) complain(shuttingDown(deps.retryAfterSeconds()))
    await attempt(() => mustBePriority(request.priority))
    const createdAt = deps.clock.now()
    const life = { createdAt, expiresAt: new Date(createdAt.getTime() + deps.retentionMs) }
    await attempt(() => toQueueTimes(request, life))
    const price = toPrice(request, await attempt(() => deps.admit?.(accountId, pool) ?? null))
    await attempt(() => toJobHook(deps, request))
    const inspected = await attempt(() =>
      deps.inspectWorkflow(accountId, request.workflow, {
        pool,
        giving: null,
        lent: request.lent,
        onRefusal: complain,
      }),
    )
    if (inspected !== null) {
      const refusal = findEveryFault(inspected.result, pool)
      if (refusal !== null) complain(refusal)
      await attempt(() => refuseModels(deps, request, inspected.result.graph))
    }
    await attempt(() => deps.mustTakeJobs?.(pool))
    for (const refusal of await findStoreRefusals(deps, request, price)) complain(refusal)
    return {
      complaints,
      graph: inspected === null ? null : judge(inspected.result.graph, deps.catalog(pool)),
      price,
      pool,
      maxRunning: deps.limitsOf(accountId).maxRunning,
      reuse: inspected === null || complaints.length > 0 ? null : await tryReuse(deps, request, inspected, pool),
    }
  }

  /** A submit names the first node of an unknown class alone. */
  function findEveryFault(result: ValidationResult, pool: string): ServiceError | null {
    const refusal = findRefusal(result, deps.placement, pool)
    if (refusal === null || deps.placement !== undefined || result.error?.type !== 'missing_node_type') return refusal
    const lacks = findLacks(result.graph, deps.catalog(pool), [])
    return toLackRefusal(
      result,
      placeLacks(lacks, () => []),
    )
  }
}

/** As a submit would, which is why the texts are written as they are there. */
async function tryReuse(
  deps: TrySubmitDeps,
  request: SubmitRequest,
  { result, inputs }: Inspected,
  pool: string,
): Promise<ReuseLook | null> {
  if (deps.reuse?.isWanted(request.accountId, request.reuse) !== true) return null
  const { credentials, notes } = await deps.turns.run(splitExtraDataSteps(request.extraData))
  const { graph } = result
  const given = { graph, inputs, hasCredentials: credentials !== null, pool }
  const text = await deps.turns.run(writeGraphSteps(graph))
  const notesText = notes === null ? null : await deps.turns.run(writeJsonSteps(notes))
  return lookForResult(deps, request, { ...given, text, notes: notesText })
}

/** What the transaction of a submit would find. */
async function findStoreRefusals(
  deps: TrySubmitDeps,
  { accountId, idempotencyKey, within = [] }: SubmitRequest,
  price: PoolPrice | null,
): Promise<ServiceError[]> {
  const [holder, balance, use, counted] = await Promise.all([
    idempotencyKey === null ? null : deps.keys.findKey(accountId, idempotencyKey, deps.clock.now()),
    price === null ? null : deps.ledger.balance(accountId),
    deps.accounts.findUse(accountId),
    deps.runLimits.findUse(
      accountId,
      within.map(({ scope }) => scope),
    ),
  ])
  const job = { at: deps.clock.now(), micros: price?.holdMicros ?? 0 }
  const nothing = { inFlight: 0, tallies: NO_TALLIES }
  const excesses = within.map((bound) => findExcess(bound, counted.get(bound.scope) ?? nothing, job))
  const excess = excesses.find((each) => each !== null)
  const isShort = price !== null && balance !== null && balance.available - price.holdMicros < balance.floor
  return [
    ...(holder === null ? [] : [keyReuse(holder)]),
    ...(excess ? [outOfBounds(excess, job.at, deps.retryAfterSeconds())] : []),
    ...(isShort ? [insufficientCredits(price)] : []),
    ...((use?.queued ?? 0) >= deps.limitsOf(accountId).maxQueued ? [queueFull(deps.retryAfterSeconds())] : []),
  ]
}

function judge(graph: Graph, catalog: NodeCatalog): JudgedGraph {
  return {
    needs: readTerms(toRecipe(graph, null).terms),
    missing: findMissing(graph, catalog),
    isEngineJudged: hasOwnJudges(graph, catalog),
  }
}
