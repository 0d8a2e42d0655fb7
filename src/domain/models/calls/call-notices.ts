/** Tells the other nodes that a call has ended or is to stop. Best effort: whoever hears nothing finds out by its next look. */
export interface CallNotices {
  /** Must not throw and must not wait. */
  tell(callId: string): void
  /** Called with what other nodes tell. */
  onTold(listener: (callId: string) => void): void
}

/** For a process that has the store to itself. */
export const NO_NOTICES: CallNotices = { tell() {}, onTold() {} }
