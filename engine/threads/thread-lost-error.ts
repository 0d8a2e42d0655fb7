/**
 * Thrown to the reader of a run when the thread of the engine has ended and this run was not the one that it was working on.
 * The engine goes on with a new thread, so the graph may be run again.
 */
export class EngineThreadLostError extends Error {
  /** The run that took the thread down is known, and it was another one. */
  readonly isBlameless: boolean

  constructor(message: string, { isBlameless }: { readonly isBlameless: boolean }) {
    super(message)
    this.name = 'EngineThreadLostError'
    this.isBlameless = isBlameless
  }
}
