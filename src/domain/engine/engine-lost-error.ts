/**
 * Thrown by the iterator of a run, or by the reading of a file it reported, when this engine cannot bring the run to an end:
 * the attempt is lost, not the job. `code` says in a stable word what happened.
 */
type EngineLossCode =
  | 'engine_unreachable' // no answer within the stated bound
  | 'engine_restarted' // it answers, but has forgotten the run
  | 'engine_overloaded' // it answers, but only with server errors or nonsense
  | 'engine_stuck' // it ignored an interrupt, or its worker has died
  | 'engine_idle' // it took the run and started nothing
  | 'output_unreadable' // it finished, but does not hand out what it made

export class EngineLostError extends Error {
  readonly code: EngineLossCode
  /** The engine itself is unfit until it was restarted: recycle it, or send nothing there. */
  readonly isUnfit: boolean
  /** Another run is known to be the cause: this one is run again without having spent an attempt. */
  readonly isBlameless: boolean
  /** The run never began and never will: the attempt need not be spent. */
  readonly isUntouched: boolean

  constructor(
    code: EngineLossCode,
    message: string,
    options: {
      readonly cause?: unknown
      readonly isUnfit?: boolean
      readonly isBlameless?: boolean
      readonly isUntouched?: boolean
    } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'EngineLostError'
    this.code = code
    this.isUnfit = options.isUnfit ?? false
    this.isBlameless = options.isBlameless ?? false
    this.isUntouched = options.isUntouched ?? false
  }
}
