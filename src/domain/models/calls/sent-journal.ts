/**
 * Which calls may have reached their provider. A call is let in some time before its first byte leaves: it waits for a place,
 * its media are fetched, a busy provider is waited for. A process that dies in that time has made nothing, and only a mark
 * that is set before the first byte, and outlives the process, can tell such a call from one whose answer was lost.
 */
export interface SendMarks {
  /** Returns when the mark outlives this process; throws when it cannot be set, and then nothing may be sent. */
  set(callId: string): void
  /** The provider surely took nothing: as if it had never been set. */
  retract(callId: string): void
  /** How the call stands is stored elsewhere; its mark is of no further use. */
  forget(callId: string): void
  /** Whether a call that a process before us left may have reached its provider; true where nobody can tell. */
  mayHaveLeft(callId: string): boolean
  /** What processes before us left has been dealt with. */
  begin(): void
}

/** The mark could not be set, so nothing was sent. */
export class SendMarkError extends Error {
  override readonly name = 'SendMarkError'
}

/** What a provider tells about a submit while it runs. */
export interface Sending {
  /** To be called before the first byte leaves; throws SendMarkError, to be passed on, when nothing may be sent. */
  begins(): void
  /** What was sent was surely not taken; the provider may wait and send again. */
  leftNothing(): void
}

export function createSending(marks: Pick<SendMarks, 'set' | 'retract'>, callId: string): Sending {
  return {
    begins() {
      try {
        marks.set(callId)
      } catch (error) {
        throw new SendMarkError('what is about to be sent could not be written down', { cause: error })
      }
    },
    leftNothing: () => marks.retract(callId),
  }
}
