/** Webhooks: their secrets, the sender, the delivery loop, and the pool hook as one more endpoint. */
import { createHash, createHmac } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import { newUuidV4 } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { type Network, privateNetwork, publicInternet } from '../../lib/outbound/network.ts'
import { createSealer, type Sealer } from '../../lib/sealer.ts'
import { readSecretText } from '../../lib/standard-webhooks.ts'
import { sleep } from '../../lib/waiting/sleep.ts'
import { toPoolFacts } from '../adapters/hooks/pool-event-hooks.ts'
import { openHttpSender } from '../adapters/webhooks/http-sender.ts'
import type { Config } from '../config/config.ts'
import type { Secrets } from '../config/secrets.ts'
import type { SigningKey } from '../domain/assets/signed-url.ts'
import { createUsageExport, type UsageExport } from '../domain/credits/export-usage.ts'
import { createReadUsage } from '../domain/credits/usage-events.ts'
import type { CallHook } from '../domain/deployments/pool-hooks.ts'
import type { EventBus } from '../domain/events/event-bus.ts'
import type { Chore } from '../domain/jobs/sweeps/housekeeping.ts'
import type { Store, StoreGlance } from '../domain/store.ts'
import { createDeliverer, type DeliveryObserver } from '../domain/webhooks/deliver-webhooks.ts'
import { createToHook, createWebhookSecrets, type ToHook, type WebhookSecrets } from '../domain/webhooks/job-hooks.ts'
import { createWebhooks, type Webhooks } from '../domain/webhooks/manage-webhooks.ts'
import type { WebhookSender } from '../domain/webhooks/sender.ts'
import type { TellAs } from '../domain/webhooks/webhook.ts'

import { PARTS_OF } from './roles.ts'

interface WebhookParts {
  readonly store: Pick<Store, 'webhooks' | 'ledger' | 'readMeta' | 'changeMeta'>
  readonly secrets: Pick<Secrets, 'secretKey' | 'formerSecretKeys' | 'poolHook'>
  readonly signingKeys: readonly SigningKey[]
  readonly bus: Pick<EventBus<never>, 'onChanged' | 'onCall'>
  /** What the store showed a moment ago; null: it was not looked at. */
  readonly glance: () => Pick<StoreGlance, 'hasPendingMessages'> | null
  readonly observer: DeliveryObserver
  /** null: what the settings say. */
  readonly network: Network | null
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

export interface OpenedWebhooks extends AsyncDisposable {
  readonly webhooks: Webhooks
  readonly toHook: ToHook
  /** Sends a message about a pool to the configured pool hook; null: none is configured. */
  readonly tellPool: CallHook | null
  readonly chores: readonly Chore[]
  /** What was charged and refunded, sent to the operator's billing system. */
  readonly usageExport: UsageExport
  /** Messages in this form are told so. */
  tellAs(form: string, tell: TellAs): void
  /** Begins to deliver. */
  start(): void
}

const MINUTE_MS = 60_000
const EXPORT_EVERY_MS = 5000
const LOOK_AGAIN_MS = 25
const KEEP_MS = 7 * 24 * 60 * MINUTE_MS
const SWEPT = 1000

export async function openWebhooks(config: Config, parts: WebhookParts): Promise<OpenedWebhooks> {
  const { signingKeys, bus, observer, clock, log, version } = parts
  const store = parts.store.webhooks
  const { allowsPrivateNetwork, timeoutMs, firstRetryMs, perEndpoint } = config.webhooks
  await using opening = new AsyncDisposableStack()
  const network = parts.network ?? (allowsPrivateNetwork ? privateNetwork : publicInternet)
  const sender = opening.use(openHttpSender({ network, timeoutMs, version }))
  const roots = signingKeys.map(({ secret }) => deriveKey(secret, 'webhook-roots'))
  const secrets = createWebhookSecrets(openWebhookSealer(parts), roots)
  const forms = new Map<string, TellAs>()
  const deliverer = opening.use(
    createDeliverer({
      // What other forms say, surfaces know.
      forms: PARTS_OF[config.role].surfaces ? forms : null,
      ...{ store, sender, secrets, newId: newUuidV4, clock, log, observer, perEndpoint, timeoutMs, firstRetryMs },
      mayHavePending: () => parts.glance()?.hasPendingMessages !== false,
    }),
  )
  opening.defer(bus.onChanged(({ move }) => move === 'ended' && deliverer.moved()))
  opening.defer(bus.onCall(({ move }) => move === 'ended' && deliverer.moved()))
  const check = createToHook({ sender, secrets })
  const usageExport = openUsageExport({ ...parts, sender, secrets })
  const url = config.deployments?.hook?.kind === 'webhook' ? config.deployments.hook.url : null
  const tellPool =
    url === null
      ? null
      : await openPoolEndpoint(url, { ...parts, secrets, poolSecret: readPoolSecret(parts), wake: deliverer.wake })
  const open = opening.move()
  return {
    webhooks: createWebhooks({ store, sender, secrets, newId: newUuidV4, clock, wake: deliverer.wake }),
    async toHook(accountId, wish) {
      const hook = await check(accountId, wish)
      deliverer.expect()
      return hook
    },
    tellPool,
    usageExport,
    chores: [
      { name: 'export-usage', runs: 'once', everyMs: EXPORT_EVERY_MS, run: usageExport.run },
      {
        name: 'sweep-webhooks',
        runs: 'once',
        everyMs: 10 * MINUTE_MS,
        run: () => store.sweep(new Date(clock.now().getTime() - KEEP_MS), SWEPT),
      },
    ],
    tellAs: (form, tell) => void forms.set(form, tell),
    start: () => deliverer.start(),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/** Under the secret key where there is one; else under keys that follow from those that sign addresses, which are kept anyway. */
function openWebhookSealer({ secrets, signingKeys }: Pick<WebhookParts, 'secrets' | 'signingKeys'>): Sealer {
  const derived = signingKeys.map(({ secret }) => deriveKey(secret, 'webhook-seal'))
  const given = [secrets.secretKey, ...secrets.formerSecretKeys].flatMap((key) => (key === null ? [] : [key.reveal()]))
  const [key, ...former] = [...given, ...derived]
  return createSealer(key, former)
}

function deriveKey(secret: Uint8Array, purpose: string): Uint8Array {
  return createHmac('sha256', secret).update(purpose).digest()
}

interface PoolEndpointParts extends Omit<WebhookParts, 'secrets'> {
  readonly secrets: WebhookSecrets
  readonly poolSecret: Uint8Array | null
  readonly wake: () => void
}

function readPoolSecret({ secrets: { poolHook } }: Pick<WebhookParts, 'secrets'>): Uint8Array | null {
  return poolHook === null ? null : readSecretText(poolHook.reveal())
}

interface UsageExportParts extends Pick<WebhookParts, 'store' | 'clock'> {
  readonly sender: WebhookSender
  readonly secrets: WebhookSecrets
}

function openUsageExport({ store, sender, secrets, clock }: UsageExportParts): UsageExport {
  return createUsageExport({
    meta: store,
    readUsage: createReadUsage({ ledger: store.ledger, pause: () => sleep(LOOK_AGAIN_MS) }),
    top: () => store.ledger.top(),
    newId: () => newUuidV4().replaceAll('-', ''),
    clock,
    makeSecret(exportId) {
      const secret = secrets.make()
      return { secret, sealed: secrets.seal(secret, exportId) }
    },
    async send({ exportId, id, url, secret, at, events }, signal) {
      const kept = { secret: Buffer.from(secret, 'base64'), previousSecret: null, previousUntil: null }
      const keys = secrets.of({ id: exportId, accountId: OPERATOR, ...kept }, clock.now())
      if (keys.length === 0)
        return 'its secret cannot be read, because ATELIER_SECRET_KEY is another one; set the export again'
      const facts = JSON.stringify({ events })
      const message = { id, type: 'usage.events', subject: 'usage', at, facts } as const
      const endpoint = { url, kind: 'operator' } as const
      const sent = { message, body: null, endpoint, secrets: keys, at: clock.now(), signal }
      const { outcome, status, response } = await sender.send(sent)
      return outcome === 'delivered' ? null : [outcome, status, response].filter((word) => word !== null).join(' ')
    },
  })
}

const OPERATOR = ''

/** The configured pool hook as an endpoint without an account. A pool has one message of a kind under way at a time. */
async function openPoolEndpoint(
  url: string,
  { store: { webhooks }, secrets, poolSecret, clock, wake }: PoolEndpointParts,
): Promise<CallHook> {
  const id = `who_${createHash('sha256').update(url).digest('hex').slice(0, 32)}`
  const now = clock.now()
  await webhooks.putOperatorEndpoint({
    ...{ id, accountId: OPERATOR, kind: 'operator', url, description: 'the hook of the pools', events: ['pool'] },
    ...{ secret: poolSecret === null ? null : secrets.seal(poolSecret, id), previousSecret: null, previousUntil: null },
    ...{ state: 'enabled', reason: null, disabledAt: null, failingSince: null, creditsLowMicros: null },
    ...{ createdAt: now, changedAt: now },
  })
  return async (event) => {
    const subject = `pool:${event.pool}`
    const waiting = await webhooks.deliveries(OPERATOR, { endpointId: id, subject, state: 'pending', limit: 10 })
    const type = `pool.${event.event}` as const
    if (waiting.some((message) => message.type === type)) return
    const messageId = `msg_${newUuidV4().replaceAll('-', '')}`
    const facts = JSON.stringify(toPoolFacts(event))
    await webhooks.enqueue({ id: messageId, endpointId: id, accountId: OPERATOR, type, subject, at: event.at, facts })
    wake()
  }
}
