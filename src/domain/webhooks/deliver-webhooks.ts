/**
 * Brings messages to their endpoints. Each process takes some whose time has come, under a lease that lapses when the process dies, and
 * writes down what came of each. So a message arrives at least once, and those about one job arrive in order: the store gives out
 * only the oldest that has not ended. A process that ends in between sends again what it had sent and not written down.
 */
import { type Clock, uptimeMs } from '../../../lib/clock.ts'
import type { NewId } from '../../../lib/ids.ts'
import { stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import type { Log } from '../../../lib/log.ts'
import { createDoorbell } from '../../../lib/waiting/sleep.ts'
import { isStoreAway } from '../errors.ts'
import { readForm, type WebhookSecrets } from './job-hooks.ts'
import type { SendAnswer, WebhookSender } from './sender.ts'
import type { AttemptOutcome, DisableReason, TellAs } from './webhook.ts'
import type { AttemptEnd, ClaimedDelivery, DeliveryFate, WebhookStore } from './webhook-store.ts'

interface WebhookDeliverer extends AsyncDisposable {
  /** Harmless when called twice. */
  start(): void
  /** A message is due now. */
  wake(): void
  /** A job with a webhook is about to be submitted: for a while, every move of a job is followed by a look at the store. */
  expect(): void
  /** A job or a call has moved. Costs nothing while no messages are pending or expected. */
  moved(): void
}

export interface DeliveryObserver {
  attempted(outcome: AttemptOutcome, tookMs: number): void
  disabled(reason: DisableReason): void
}

interface DelivererDeps {
  readonly store: Pick<WebhookStore, 'claim' | 'finish' | 'hasPending'>
  readonly sender: Pick<WebhookSender, 'send'>
  readonly secrets: Pick<WebhookSecrets, 'of'>
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
  readonly observer: DeliveryObserver
  /** Whether messages may wait in the store; false saves the query. */
  readonly mayHavePending: () => boolean
  readonly perEndpoint: number
  /** By the names of forms; null: they are for other processes. */
  readonly forms: ReadonlyMap<string, TellAs> | null
  /** How long one try may take. */
  readonly timeoutMs: number
  readonly firstRetryMs: number
  readonly random?: () => number
}

// A lease outlasts the longest try by this much, so that the result can be written under it.
const END_WRITTEN_MS = 10_000
const MAX_UNDER_WAY = 256
// How often the store is asked while messages wait for their time, and while none do.
const LOOK_MS = { pending: 500, idle: 1500 }
const EXPECTED_MS = 600_000

export function createDeliverer(deps: DelivererDeps): WebhookDeliverer {
  const { store, clock, log } = deps
  const bell = createDoorbell()
  const ending = new AbortController()
  const underWay = new Set<Promise<void>>()
  let loop: Promise<void> | null = null
  let expectedUntilMs = 0
  let isRung = false
  const deliver = createDeliver(deps, ending.signal)
  const ring = () => {
    isRung = true
    bell.ring()
  }
  const expect = () => {
    expectedUntilMs = uptimeMs() + EXPECTED_MS
  }

  function begin(claimed: ClaimedDelivery): void {
    const done = deliver(claimed)
      .catch((error) => {
        // The lease lapses, and the message is then sent again.
        if (!ending.signal.aborted)
          log.warn({ err: error, message: claimed.id }, 'a webhook could not be brought to its end')
      })
      .finally(() => {
        underWay.delete(done)
        ring()
      })
    underWay.add(done)
  }

  /** Sends what is due; returns whether there may be more. */
  async function look(): Promise<boolean> {
    const room = MAX_UNDER_WAY - underWay.size
    if (room <= 0 || !(await store.hasPending())) return false
    expect()
    const now = clock.now()
    const claimed = await store.claim({
      ...{ leaseId: deps.newId(), now, until: new Date(now.getTime() + deps.timeoutMs + END_WRITTEN_MS) },
      ...{ limit: room, perEndpoint: deps.perEndpoint, knowsForms: deps.forms !== null },
    })
    for (const each of claimed) begin(each)
    return true
  }

  async function run(): Promise<void> {
    let isBusy = true
    while (!ending.signal.aborted) {
      const wasRung = isRung
      isRung = false
      bell.forget()
      try {
        isBusy = (isBusy || wasRung || deps.mayHavePending()) && (await look())
      } catch (error) {
        if (isStoreAway(error)) log.debug({ err: error }, 'webhooks have to wait for the store, which is away')
        else log.error({ err: error }, 'webhooks could not be looked for')
      }
      await bell.wait(isBusy ? LOOK_MS.pending : LOOK_MS.idle, ending.signal)
    }
  }

  return {
    start() {
      loop ??= run()
    },
    wake() {
      expect()
      ring()
    },
    expect,
    moved() {
      if (uptimeMs() < expectedUntilMs) ring()
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await loop
      await Promise.all(underWay)
    },
  }
}

/** One try of a message, and what follows from it. */
function createDeliver({ store, clock, log, observer, ...deps }: DelivererDeps, signal: AbortSignal) {
  async function toBody(claimed: ClaimedDelivery): Promise<string | null> {
    const { endpoint } = claimed
    const form = readForm(endpoint)
    const tellAs = form === null ? undefined : deps.forms?.get(form.name)
    if (form === null || tellAs === undefined) return null
    const told = await tellAs(claimed, { accountId: endpoint.accountId, base: form.base })
    return told === null ? null : stringifyLosslessJson(told)
  }

  async function trySending(claimed: ClaimedDelivery): Promise<SendAnswer> {
    const at = clock.now()
    const { endpoint } = claimed
    const secrets = deps.secrets.of(endpoint, at)
    if (secrets.length === 0)
      return { outcome: 'unsigned', status: null, response: 'its secret does not open: rotate it' }
    return deps.sender.send({ message: claimed, body: await toBody(claimed), endpoint, secrets, at, signal })
  }

  async function deliver(claimed: ClaimedDelivery): Promise<void> {
    const [at, startMs] = [clock.now(), performance.now()]
    const answer = await trySending(claimed)
    const tookMs = Math.round(performance.now() - startMs)
    observer.attempted(answer.outcome, tookMs)
    // How long a name took to resolve may tell whether the service's own network knows it.
    const shownMs = answer.outcome === 'blocked' ? 0 : tookMs
    const end = toEnd(claimed, { ...answer, at, tookMs: shownMs }, { ...deps, now: clock.now() })
    for (const endpointId of await store.finish([end])) {
      observer.disabled(end.disable ?? 'failing')
      log.warn({ webhook: endpointId, reason: end.disable }, 'a webhook was disabled; its owner can enable it again')
    }
  }

  return deliver
}

interface EndOptions {
  readonly firstRetryMs: number
  readonly random?: () => number
  readonly now: Date
}

type Tried = SendAnswer & Pick<AttemptEnd['attempt'], 'at' | 'tookMs'>

function toEnd(claimed: ClaimedDelivery, attempt: Tried, options: EndOptions): AttemptEnd {
  const result = toFate(claimed, attempt, options)
  const { failingSince } = claimed.endpoint
  const hasFailedLong = failingSince !== null && options.now.getTime() - failingSince.getTime() >= RETRY_WINDOW_MS
  const isHopeless = result.fate === 'failed' && hasFailedLong
  const disable = attempt.outcome === 'gone' ? 'gone' : isHopeless ? 'failing' : null
  return { deliveryId: claimed.id, leaseId: claimed.leaseId, attempt, result, disable }
}

function toFate(claimed: ClaimedDelivery, { outcome, at }: Tried, options: EndOptions): DeliveryFate {
  if (outcome === 'delivered') return { fate: 'delivered' }
  if (outcome === 'gone') return { fate: 'failed' }
  const tries = { attempts: claimed.attempts + 1, firstAt: claimed.firstAt ?? at, now: options.now }
  const { firstRetryMs: firstMs, random } = options
  const nextAt = nextTryAt(tries, { firstMs, ...(random !== undefined && { random }) })
  return nextAt === null ? { fate: 'failed' } : { fate: 'retry', nextAt }
}

/** When a message is tried again: soon at first, then ever more rarely, until three days after the first try. */

const DAY_MS = 86_400_000
const RETRY_WINDOW_MS = 3 * DAY_MS

// Multiples of the first pause. With five seconds: 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 2 h, 4 h, 8 h, and 12 h from then on.
const STEPS = [1, 6, 24, 120, 360, 720, 1440, 2880, 5760, 8640]
// Messages that failed together do not come back together.
const JITTER = 0.2

interface RetryOptions {
  readonly firstMs: number
  readonly random?: () => number
}

/** `attempts`: how many have failed, this one included. null: it is given up. */
function nextTryAt(
  { attempts, firstAt, now }: { readonly attempts: number; readonly firstAt: Date; readonly now: Date },
  { firstMs, random = Math.random }: RetryOptions,
): Date | null {
  const step = STEPS[Math.min(attempts, STEPS.length) - 1] ?? 1
  const pauseMs = firstMs * step * (1 + JITTER * (2 * random() - 1))
  const next = new Date(now.getTime() + pauseMs)
  return next.getTime() - firstAt.getTime() > RETRY_WINDOW_MS ? null : next
}
