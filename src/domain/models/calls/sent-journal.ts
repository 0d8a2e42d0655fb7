/**
 * Which calls may have reached their provider. A call is admitted some time before its first byte leaves: it waits for a free
 * slot, its media are fetched, a busy provider is waited for. A process that dies in that time has made nothing. Only an entry
 * that is written before the first byte, and outlives the process, tells such a call from one whose answer was lost.
 */
import type { HeldCall, UnfinishedCall } from './call-store.ts'

export interface SentJournal {
  /**
   * Done when the entry outlives this process. Throws when it cannot be written, or when the journal knows that the call is not
   * this node's any more: then nothing may be sent.
   */
  record(call: HeldCall): void | Promise<void>
  /** The provider surely took nothing: as if the call had never been recorded. To be awaited before the next entry; never fails. */
  retract(call: HeldCall): void | Promise<void>
  /** The store knows how the call goes on; its entry is of no further use. */
  forget(callId: string): void
  /** Whether a call that was taken over may have reached its provider; true where nobody can tell. */
  mayHaveLeft(call: Pick<UnfinishedCall, 'ref' | 'isSent'>): boolean
  /** The calls that earlier processes left have been dealt with: their entries are dropped. */
  dropEarlier(): void
}

/** The entry could not be written, so nothing was sent. */
export class SentJournalError extends Error {
  override readonly name = 'SentJournalError'
}

/** What a provider reports about a submit while it runs. */
export interface Sending {
  /** To be awaited before the first byte leaves; throws SentJournalError, to be passed on, when nothing may be sent. */
  begins(): void | Promise<void>
  /** The provider surely did not take what was sent; it may be sent again later. To be awaited before that. */
  leftNothing(): void | Promise<void>
}

/** `isLost`: whether the node was told that another one has the call. */
export function createSending(
  journal: Pick<SentJournal, 'record' | 'retract'>,
  call: HeldCall,
  isLost: () => boolean,
): Sending {
  return {
    begins() {
      if (isLost()) throw new SentJournalError('another node looks after this call now')
      try {
        const recording = journal.record(call)
        if (recording instanceof Promise) return recording.catch(refuse)
      } catch (error) {
        refuse(error)
      }
    },
    leftNothing: () => journal.retract(call),
  }
}

function refuse(error: unknown): never {
  throw new SentJournalError('what is about to be sent could not be written down', { cause: error })
}
