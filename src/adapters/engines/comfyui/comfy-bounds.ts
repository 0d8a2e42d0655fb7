/** Every bound of the adapter in one record, each with the reason for its default. Times in milliseconds, sizes in bytes. */
export interface ComfyBounds {
  /** A small call: queue, history, interrupt. A loaded server answers late, a dead one not at all. */
  readonly callMs: number
  /** Answers of small calls. A history entry holds the whole graph and every reported text. */
  readonly maxAnswerBytes: number
  /** The node classes: megabytes, built anew by the server for every call. */
  readonly objectInfoMs: number
  readonly maxObjectInfoBytes: number
  /** Handing over a graph; validation of a large one takes seconds. */
  readonly submitMs: number
  /** Uploads: a pause this long means that nobody reads. */
  readonly uploadIdleMs: number

  /** Without any answer for so long, the run is lost. Shorter than a lease, so that recovery is ours and not the reaper's. */
  readonly unreachableMs: number
  /** Nobody listens at its port for so long: the process is gone. */
  readonly refusedMs: number
  /** In neither queue nor history for so long: forgotten. Old servers write history a moment after the queue. */
  readonly vanishedMs: number
  /** Polling of queue and history beside the socket: first and slowest pace. */
  readonly pollFirstMs: number
  readonly pollMaxMs: number
  /** Between the last word about the nodes and the history entry; then the history is asked, whatever was heard. */
  readonly endLagMs: number

  /** No event for so long while the queue says `running`: the socket is taken for dead and opened anew. */
  readonly socketSilenceMs: number
  /** No event for so long while the queue says `running`: the node hangs. Twice that without a socket. null: never. */
  readonly stallMs: number | null
  /**
   * It waits in the server's queue and nothing at all runs there, or only what we gave up: nothing will start. Also the time from a
   * run's last word to its record. Far above what a server needs between two prompts, which is at most to unload its weights.
   */
  readonly idleMs: number
  /**
   * It waits behind one and the same prompt for so long: of somebody else, whose progress nobody tells us, or of ours without any
   * news. null: it may take for ever.
   */
  readonly queueStillMs: number | null
  /** How long a run waits for the socket before it goes on without. */
  readonly socketWaitMs: number
  /** How long a connecting socket may take, and the pauses between tries. */
  readonly socketOpenMs: number
  readonly reconnectFirstMs: number
  readonly reconnectMaxMs: number
  /** Before the same client id is used again: the server forgets the id when it notices the end of the old connection. */
  readonly sameIdPauseMs: number
  /** A larger frame closes the socket: previews are small, full pictures of SaveImageWebsocket are not. */
  readonly maxFrameBytes: number
  /** Events that wait for a slow reader of a run; of previews only the newest is kept beyond it. */
  readonly maxWaitingEvents: number

  /** How long an interrupted run may go on. Above the worker's own grace: it is the one to give an engine up. */
  readonly stopGraceMs: number
  /** The interrupt is one flag, cleared at the start of every prompt: it is repeated. */
  readonly interruptEveryMs: number

  /** One try at a file: the first byte, a pause within, and the least pace over a window. */
  readonly fileFirstByteMs: number
  readonly fileIdleMs: number
  readonly fileMinBytesPerSecond: number
  readonly filePaceWindowMs: number
  readonly fileTries: number
  readonly fileRetryMs: number
  readonly maxFileBytes: number

  /** Probing an idle engine, and an absent one at the slowest. */
  readonly probeEveryMs: number
  readonly probeMaxMs: number
  /** The node classes are read again at this pace, and never more often than the second figure. */
  readonly catalogEveryMs: number
  readonly catalogMinMs: number

  /** What is left of runs that are over is removed together with what comes within this time. */
  readonly forgetAfterMs: number
  /** Inputs that are kept on a server for the runs to come. */
  readonly maxStagedFiles: number
  /** Files of a run go so long after the last of them was read; those that nobody reads, after the second figure. */
  readonly removeAfterMs: number
  readonly giveUpAfterMs: number
  /** The server frees on its own thread after it answered. */
  readonly freeSettleMs: number
  /** Of a failure's message and traceback. */
  readonly maxMessageBytes: number
  readonly maxTracebackBytes: number
  /** Of one printed line. */
  readonly maxLogLineBytes: number
}

export const DEFAULT_BOUNDS: ComfyBounds = {
  callMs: 10_000,
  maxAnswerBytes: 64 * 1024 ** 2,
  objectInfoMs: 120_000,
  maxObjectInfoBytes: 128 * 1024 ** 2,
  submitMs: 60_000,
  uploadIdleMs: 30_000,
  unreachableMs: 15_000,
  refusedMs: 3_000,
  vanishedMs: 2_000,
  pollFirstMs: 100,
  pollMaxMs: 2_000,
  endLagMs: 25,
  socketSilenceMs: 20_000,
  stallMs: 1_800_000,
  idleMs: 30_000,
  queueStillMs: 600_000,
  socketWaitMs: 2_000,
  socketOpenMs: 10_000,
  reconnectFirstMs: 100,
  reconnectMaxMs: 10_000,
  sameIdPauseMs: 500,
  maxFrameBytes: 256 * 1024 ** 2,
  maxWaitingEvents: 4_096,
  stopGraceMs: 20_000,
  interruptEveryMs: 500,
  fileFirstByteMs: 30_000,
  fileIdleMs: 15_000,
  fileMinBytesPerSecond: 1_024,
  filePaceWindowMs: 15_000,
  fileTries: 4,
  fileRetryMs: 250,
  maxFileBytes: 64 * 1024 ** 3,
  probeEveryMs: 5_000,
  probeMaxMs: 10_000,
  catalogEveryMs: 300_000,
  catalogMinMs: 10_000,
  forgetAfterMs: 250,
  maxStagedFiles: 500,
  removeAfterMs: 10_000,
  giveUpAfterMs: 900_000,
  freeSettleMs: 500,
  maxMessageBytes: 8_192,
  maxTracebackBytes: 65_536,
  maxLogLineBytes: 8_192,
}
