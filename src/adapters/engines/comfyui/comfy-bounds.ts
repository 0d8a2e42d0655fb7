import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { Tracer } from '../../../../lib/tracing/tracer.ts'
import type { EngineRun } from '../../../domain/engine/engine-port.ts'
import type { LaunchOptions } from './launch/supervisor.ts'

/** Every bound of the adapter in one record, each with the reason for its default. Times in milliseconds, sizes in bytes. */
export interface ComfyBounds {
  /** For small calls: queue, history, interrupt. A loaded server answers late, a dead one not at all. */
  readonly callMs: number
  /** For answers of small calls. A history entry holds the whole graph and every reported text. */
  readonly maxAnswerBytes: number
  /** For the list of node classes: megabytes, which the server builds for every call. */
  readonly objectInfoMs: number
  readonly maxObjectInfoBytes: number
  /** For submitting a graph; the validation of a large one takes seconds. */
  readonly submitMs: number
  /** For uploads: a pause this long means that the server does not read any more. */
  readonly uploadIdleMs: number

  /** A run is lost after this time without any answer. Shorter than a lease, so that it ends here before its lease expires. */
  readonly unreachableMs: number
  /** The same for one that no other engine could run: it is followed when the server is back, where its prompt has gone on. */
  readonly cutMs: number
  /** Connections are refused, and are again after this time: the process is gone. */
  readonly refusedMs: number
  /** A run is forgotten when it is in neither queue nor history for this long: old servers write the history a moment late. */
  readonly vanishedMs: number
  /** Queue and history are polled beside the socket: the first and the longest pause. */
  readonly pollFirstMs: number
  readonly pollMaxMs: number
  /** After the last message about the nodes the history gets its entry; it is asked for after this time. */
  readonly endLagMs: number
  /**
   * How long the socket is waited for after the end of a run whose pictures it brings: without a single byte, and in all. They exist
   * nowhere else.
   */
  readonly drainQuietMs: number
  readonly drainMs: number

  /** No event for this long while the queue says `running`: the socket is taken for dead and opened again. */
  readonly socketSilenceMs: number
  /** No event for this long while the queue says `running`: the node hangs. Twice as long without a socket. null: never. */
  readonly stallMs: number | null
  /**
   * A run waits in the server's queue for this long while nothing runs there, or only prompts that we gave up: it will not start.
   * Also the time between a run's last message and its history entry. Far more than a server needs between two prompts, where at
   * most it unloads weights.
   */
  readonly idleMs: number
  /**
   * A run waits behind the same prompt for this long: one of another client, whose progress we do not hear, or one of ours without
   * any message.
   */
  readonly queueStillMs: number
  /** How long a run waits for the socket before it starts without one. */
  readonly socketWaitMs: number
  /** How long a connecting socket may take, and the pauses between tries. */
  readonly socketOpenMs: number
  readonly reconnectFirstMs: number
  readonly reconnectMaxMs: number
  /** Before the same client id is used again: the server forgets the id when it notices the end of the old connection. */
  readonly sameIdPauseMs: number
  /** A larger frame closes the socket: previews are small, full pictures of SaveImageWebsocket are not. */
  readonly maxFrameBytes: number
  /** Events that may wait for a slow reader of a run before previews and progress are dropped. */
  readonly maxWaitingEvents: number

  /** How long an interrupted run may go on. Longer than the worker's own grace: the worker decides when to give an engine up. */
  readonly stopGraceMs: number
  /** The interrupt is a single flag that the server clears at the start of every prompt, so it is repeated at this pace. */
  readonly interruptEveryMs: number

  /** For one try to read a file: until the first byte, for a pause within, and the slowest pace over a window of time. */
  readonly fileFirstByteMs: number
  readonly fileIdleMs: number
  readonly fileMinBytesPerSecond: number
  readonly filePaceWindowMs: number
  readonly fileTries: number
  readonly fileRetryMs: number
  readonly maxFileBytes: number

  /** How often an idle engine is asked, and the longest pause for an absent one. */
  readonly probeEveryMs: number
  readonly probeMaxMs: number
  /** The node classes are read again at this pace, and never more often than the second figure. */
  readonly catalogEveryMs: number
  readonly catalogMinMs: number

  /** History entries of runs that end within this time are removed together. */
  readonly forgetAfterMs: number
  /** Inputs that are kept on a server for later runs. */
  readonly maxStagedFiles: number
  /** Files of a run are removed this long after the last of them was read; those that are never read, after the second figure. */
  readonly removeAfterMs: number
  readonly giveUpAfterMs: number
  /** The server frees memory on another thread after it has answered. */
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
  cutMs: 600_000,
  refusedMs: 300,
  vanishedMs: 2_000,
  pollFirstMs: 100,
  pollMaxMs: 2_000,
  endLagMs: 25,
  drainQuietMs: 10_000,
  drainMs: 120_000,
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

/** How a ComfyUI server is reached or started, and for whom: the options of its engine. */
export type ComfyServer =
  | {
      readonly kind: 'remote'
      /** May carry a path, and a name and password for a proxy. */
      readonly url: URL
      /** Sent with every call, for example a proxy's token. */
      readonly headers?: Readonly<Record<string, string>>
    }
  | ({ readonly kind: 'supervised' } & LaunchOptions)

export interface ComfyEngineOptions {
  readonly server: ComfyServer
  /** Stays the same when we restart; absent: the address. */
  readonly id?: string
  /**
   * Names this service towards servers that it shares with others. What an earlier process left on a server under this name is
   * ended there; without a name, nothing is.
   */
  readonly ownerId?: string
  /** Names the present process of this service: prompts under this name are not left over, whichever of its engines posted them. */
  readonly instanceId?: string
  /** Other processes of this service, whose prompts are not left over while they live; left out: there can be none. */
  readonly siblings?: Siblings
  /**
   * The runs of this service that have not ended, and that this server may have: what an earlier process left of them is kept for whoever
   * adopts them. Left out: runs end with the process that follows them.
   */
  readonly findRuns?: () => Promise<readonly ServerRun[]>
  /** How many runs it is given at a time; ComfyUI itself runs one and keeps the others waiting. */
  readonly concurrency?: number
  readonly bounds?: Partial<ComfyBounds>
  /** The credentials that a run's partner nodes get; left out: those of the job. */
  readonly equip?: Equip
  /** The process that we started has ended, and is started again: why, and what it printed last. */
  readonly onEnd?: (reason: string, lastLines: readonly string[]) => void
  /** Left out: tracing is off. */
  readonly tracer?: Tracer
  readonly log: Log
  readonly clock: Clock
}

/** `extra_data` of a run, with a credential for the paths of this service that partner nodes call. */
export type Equip = (run: EngineRun) => Promise<EngineRun['extraData']>

interface ServerRun extends Pick<EngineRun, 'jobId' | 'attempt'> {
  /** `claimId` of the run when it began. */
  readonly runId: string
}

interface Siblings {
  /** The names of the processes that live, this one included. */
  findLive(): Promise<ReadonlySet<string>>
  /** Whether this process may end what dead ones left: it is the one that gives this server work. */
  mayEndOrphans(): boolean
}
