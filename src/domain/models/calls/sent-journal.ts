/**
 * Which calls may have reached their provider. A call is admitted some time before its first byte leaves: it waits for a free
 * slot, its media are fetched, a busy provider is waited for. A process that dies in that time has made nothing. Only an entry
 * that is written before the first byte, and outlives the process, tells such a call from one whose answer was lost.
 */
export interface SentJournal {
  /** Returns when the entry outlives this process; throws when it cannot be written, and then nothing may be sent. */
  record(callId: string): void
  /** The provider surely took nothing: as if the call had never been recorded. */
  retract(callId: string): void
  /** The store knows how the call goes on; its entry is of no further use. */
  forget(callId: string): void
  /** Whether a call that an earlier process left may have reached its provider; true where nobody can tell. */
  mayHaveLeft(callId: string): boolean
  /** The calls that earlier processes left have been dealt with: their entries are dropped. */
  dropEarlier(): void
}

/** The entry could not be written, so nothing was sent. */
export class SentJournalError extends Error {
  override readonly name = 'SentJournalError'
}

/** What a provider reports about a submit while it runs. */
export interface Sending {
  /** To be called before the first byte leaves; throws SentJournalError, to be passed on, when nothing may be sent. */
  begins(): void
  /** The provider surely did not take what was sent; it may be sent again later. */
  leftNothing(): void
}

export function createSending(journal: Pick<SentJournal, 'record' | 'retract'>, callId: string): Sending {
  return {
    begins() {
      try {
        journal.record(callId)
      } catch (error) {
        throw new SentJournalError('what is about to be sent could not be written down', { cause: error })
      }
    },
    leftNothing: () => journal.retract(callId),
  }
}
