/**
 * What runs print, as `logs` messages for the clients that asked for them. Lines are gathered for a moment, since a node may print
 * thousands; clients that did not subscribe cost nothing.
 */
import { BoundedSet } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { AccountChannel } from './account-channel.ts'
import { encodeText } from './frames.ts'
import { logsMessage } from './run-messages.ts'

/** Which clients want to hear what runs print. */
export interface LogReaders {
  set(accountId: string, clientId: string, isReading: boolean): void
  has(accountId: string, clientId: string): boolean
  isEmpty(): boolean
}

export interface LogEntry {
  readonly t: string
  readonly m: string
}

interface LogNews {
  note(accountId: string, text: string): void
  stop(): void
}

const MAX_READERS = 10_000
const GATHER_MS = 100
const MAX_ENTRIES = 1000
const MAX_TEXT = 16_384

export function createLogReaders(): LogReaders {
  const readers = new BoundedSet<string>(MAX_READERS)
  const keyOf = (accountId: string, clientId: string) => `${accountId}\n${clientId}`
  return {
    set(accountId, clientId, isReading) {
      if (isReading) readers.add(keyOf(accountId, clientId))
      else readers.delete(keyOf(accountId, clientId))
    },
    has: (accountId, clientId) => readers.has(keyOf(accountId, clientId)),
    isEmpty: () => readers.size === 0,
  }
}

interface LogNewsDeps {
  readonly readers: LogReaders
  readonly channelOf: (accountId: string) => AccountChannel | undefined
  readonly clock: Clock
}

export function createLogNews({ readers, channelOf, clock }: LogNewsDeps): LogNews {
  const gathered = new Map<string, LogEntry[]>()
  let timer: NodeJS.Timeout | null = null

  function tellAll(): void {
    timer = null
    for (const [accountId, entries] of gathered) tell(accountId, entries)
    gathered.clear()
  }

  function tell(accountId: string, entries: readonly LogEntry[]): void {
    const channel = channelOf(accountId)
    const listening = [...(channel?.readers ?? [])].filter(({ clientId }) => readers.has(accountId, clientId))
    if (channel === undefined || listening.length === 0) return
    const frame = encodeText(logsMessage(entries))
    for (const reader of listening) channel.tell(reader, frame)
  }

  return {
    note(accountId, text) {
      if (readers.isEmpty() || channelOf(accountId) === undefined) return
      const entries = gathered.get(accountId) ?? []
      entries.push({ t: clock.now().toISOString(), m: text.slice(0, MAX_TEXT) })
      if (entries.length > MAX_ENTRIES) entries.shift()
      gathered.set(accountId, entries)
      timer ??= setTimeout(tellAll, GATHER_MS)
    },
    stop() {
      if (timer !== null) clearTimeout(timer)
      gathered.clear()
    },
  }
}
