/**
 * What clients were told, as a journal that is kept outside of the service: one line for each promise, written when it was given.
 * Everything in it must still hold at the end, whatever happened meanwhile.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

export type FlawKind =
  /** Something that was acknowledged is gone, or never ended. */
  | 'lost'
  /** Something ended twice, or ended differently after it had ended. */
  | 'doubled'
  | 'wrong bytes'
  | 'double charge'
  /** Ledger, counters or holds do not agree with each other. */
  | 'books'
  /** A stream or a socket did not tell its client the right end. */
  | 'stream'
  /** Something is still leased, held or counted when nothing is under way. */
  | 'left over'
  /** Bytes that no record knows and no sweep will find. */
  | 'orphan'
  /** An account had more under way than it may. */
  | 'over a limit'
  /** What may happen to a few happened to many. */
  | 'too many excuses'
  /** A process of the service ended without being asked to. */
  | 'died'
  /** An answer that the documents do not allow. */
  | 'contract'

export type JobPath = 'v2' | 'v1' | 'deployment'

export type Told =
  | {
      readonly what: 'job'
      readonly id: string
      readonly account: string
      readonly path: JobPath
      /** As its metadata has it; null where a client cannot give any. */
      readonly label: string | null
      /** Of the picture; null: the bytes are known by the hash that the service tells alone. */
      readonly color: number | null
    }
  | { readonly what: 'ended'; readonly id: string; readonly end: string; readonly error: string | null }
  /** A cancel was acknowledged; the job was said to be so. */
  | { readonly what: 'cancel'; readonly id: string; readonly status: string }
  | { readonly what: 'watched'; readonly id: string; readonly by: 'stream' | 'socket' | 'polls' }
  | { readonly what: 'asset'; readonly id: string; readonly account: string; readonly sha256: string }
  /** The client asked for its removal; whether it took place may not be known. */
  | { readonly what: 'removed'; readonly id: string }
  | {
      readonly what: 'call'
      readonly key: string
      readonly account: string
      readonly model: 'paint' | 'film'
      readonly isQueued: boolean
      /** null: it ended without a result, and must not be charged. */
      readonly generation: string | null
    }
  | { readonly what: 'refused'; readonly word: string }
  | { readonly what: 'flaw'; readonly kind: FlawKind; readonly text: string; readonly id: string | null }

export type ToldAt = Told & { readonly at: number }

export interface Journal {
  tell(told: Told): void
}

export function openJournal(path: string): Journal {
  return { tell: (told) => appendFileSync(path, `${JSON.stringify({ at: Date.now(), ...told })}\n`) }
}

export function readJournal(path: string): ToldAt[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as ToldAt)
}
