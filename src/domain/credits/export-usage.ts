/**
 * Sends usage events to one address of the operator, in batches, in the order of the ledger. Where a batch begins and ends is written down
 * before it is sent, and that it has arrived when it has: a process that dies in between, or an answer that is lost, makes the same batch be
 * sent again under the same id, and none is ever left out. So a receiver that takes no id twice has each event exactly once. One that does not
 * answer is asked again for as long as there is an export.
 */
import type { Clock } from '../../../lib/clock.ts'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { invalidField, ServiceError } from '../errors.ts'
import type { LedgerTop } from './ledger.ts'
import { type ReadUsage, toUsageEvent } from './usage-events.ts'

interface Stored {
  readonly id: string
  readonly url: string
  /** Sealed, in base64. */
  readonly secret: string
  /** Everything up to this number has arrived. */
  readonly after: number
  /** The last number of the batch that is being sent; null: none is. */
  readonly upTo: number | null
  readonly since: string
  readonly sentAt: string | null
  /** Why the last try came to nothing; null: it arrived. */
  readonly failure: string | null
}

export type UsageExportState = Pick<Stored, 'url' | 'after' | 'since' | 'sentAt' | 'failure'>

export interface UsageExport {
  /** null: there is none. */
  find(): Promise<UsageExportState | null>
  /** Begins one, or sends what is left to another address. The secret is told this once. `from` null: go on, or begin now. */
  put(
    url: string,
    from: 'beginning' | 'now' | null,
  ): Promise<{ readonly state: UsageExportState; readonly secret: Uint8Array }>
  /** Throws not_found. */
  remove(): Promise<void>
  /** Sends what is there, until there is no more or a batch does not arrive. */
  run(signal: AbortSignal): Promise<void>
}

/** One batch: its id and its content are the same in every try. */
export interface UsageBatch extends Pick<Stored, 'url' | 'secret'> {
  readonly exportId: string
  readonly id: string
  /** When the last of its events happened. */
  readonly at: Date
  readonly events: readonly JsonObject[]
}

interface UsageExportDeps {
  readonly meta: {
    readMeta(key: string): Promise<string | null>
    /** Compare and set. */
    changeMeta(key: string, change: (value: string | null) => string): Promise<string>
  }
  readonly readUsage: ReadUsage
  readonly top: () => Promise<Pick<LedgerTop, 'seq'>>
  /** null: it has arrived; otherwise why not. */
  readonly send: (batch: UsageBatch, signal: AbortSignal) => Promise<string | null>
  readonly makeSecret: (exportId: string) => { readonly secret: Uint8Array; readonly sealed: Uint8Array }
  readonly newId: () => string
  readonly clock: Clock
}

const KEY = 'usage-export'
const BATCH = 500
const MAX_URL = 2048
const MAX_FAILURE = 300

export function createUsageExport(deps: UsageExportDeps): UsageExport {
  const { meta, readUsage, clock } = deps
  const find = async () => parse(await meta.readMeta(KEY))

  /** Writes what follows from `before`, unless it has changed meanwhile; whether it was written. */
  async function advance(before: Stored, change: Partial<Stored>): Promise<boolean> {
    const after = JSON.stringify({ ...before, ...change })
    const isBefore = (value: string | null) => {
      const now = parse(value)
      return now?.id === before.id && now.after === before.after && now.upTo === before.upTo
    }
    return (await meta.changeMeta(KEY, (value) => (isBefore(value) ? after : (value ?? '')))) === after
  }

  /** The batch that was begun, or the next one; null: there is nothing to send. */
  async function begin(known: Stored): Promise<Stored | null> {
    if (known.upTo !== null) return known
    const { entries, after } = await readUsage({ after: known.after, limit: BATCH })
    if (entries.length === 0) return null
    return (await advance(known, { upTo: after })) ? { ...known, upTo: after } : null
  }

  async function send(batch: Stored, signal: AbortSignal): Promise<boolean> {
    const { id, url, secret, after, upTo } = batch
    const end = upTo ?? after
    const entries = (await readUsage({ after, limit: BATCH })).entries.filter(({ seq }) => seq <= end)
    const at = entries.at(-1)?.at ?? clock.now()
    const events = entries.map(toUsageEvent)
    const failure = await deps.send({ exportId: id, id: `msg_${id}_${end}`, url, secret, at, events }, signal)
    if (failure === null)
      return advance(batch, { after: end, upTo: null, sentAt: clock.now().toISOString(), failure: null })
    await advance(batch, { failure: failure.slice(0, MAX_FAILURE) })
    return false
  }

  return {
    find,
    async put(url, from) {
      mustBeAddress(url)
      const id = deps.newId()
      const { secret, sealed } = deps.makeSecret(id)
      const known = from === null ? await find() : null
      const after = from === 'beginning' ? 0 : (known?.after ?? (await deps.top()).seq)
      const [since, text] = [clock.now().toISOString(), Buffer.from(sealed).toString('base64')]
      const state: Stored = { id, url, secret: text, after, upTo: null, since, sentAt: null, failure: null }
      await meta.changeMeta(KEY, () => JSON.stringify(state))
      return { state, secret }
    },
    async remove() {
      if ((await find()) === null) throw new ServiceError('not_found', 'usage events are not sent anywhere')
      await meta.changeMeta(KEY, () => '')
    },
    async run(signal) {
      while (!signal.aborted) {
        const known = await find()
        const batch = known === null ? null : await begin(known)
        if (batch === null || !(await send(batch, signal))) return
      }
    },
  }
}

function parse(value: string | null): Stored | null {
  return value === null || value === '' ? null : (JSON.parse(value) as Stored)
}

function mustBeAddress(text: string): void {
  const url = URL.canParse(text) ? new URL(text) : null
  const isGood = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  if (!isGood || text.length > MAX_URL)
    throw invalidField(
      'url',
      `must be an http(s) address of at most ${MAX_URL} characters, without a name or password in it`,
    )
}
