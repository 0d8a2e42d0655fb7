/**
 * What can go wrong with the fake server, as switches that a test turns while it runs. Counts say how often: 0 never,
 * Infinity always; each time that a fault strikes, its count falls by one.
 */
export interface FakeFaults {
  // The socket
  /** It stays open and answers pings, but after its first words nothing is sent any more. */
  silentSocket: boolean
  /** New connections are refused. */
  refuseSocket: boolean
  /** A closed connection is unwound so much later, and then takes whatever is registered under its id with it. */
  unwindSocketMs: number
  /** The connection is cut after so many more frames. */
  cutSocketAfterFrames: number | null

  // Taking a prompt
  /** The prompt is queued, but the connection ends before the answer. */
  dropPromptReply: number
  /** The connection ends and nothing was queued. */
  dropPrompt: number
  /** POST /prompt answers 503. */
  busyPrompt: number
  /** Another prompt id than the one that was asked for, as very old servers do. */
  ignorePromptId: boolean
  /** The graph is taken, but one of its outputs is reported as invalid. */
  partialAcceptance: boolean

  // Running
  /** A node never ends; it listens to interrupts. */
  hang: boolean
  /** Interrupts and cancels are answered and forgotten. */
  ignoreInterrupt: boolean
  /** The thread that runs prompts is dead: they are taken, and stay in the queue. */
  deadWorker: boolean
  /** It dies at a node: Python prints that, nothing is told, and the prompt is said to run for ever. */
  diesAtNode: boolean
  /** It dies at the end of a run: that is told, but not recorded, and the prompt is said to run for ever. */
  diesUnrecorded: boolean
  /** So many nodes raise torch.OutOfMemoryError. */
  outOfMemory: number
  /** From the first time on every node raises a CUDA error, until a restart. */
  cudaFault: boolean
  /** Every node raises this: the machine is ill. */
  raises: { readonly type: string; readonly message: string } | null
  /** A raised error comes with a traceback of so many bytes. */
  tracebackBytes: number
  /** Outputs that are in the cache are not told: success without outputs. */
  cachedEmptyOutputs: boolean
  /** Every save writes to the same name, whatever is there. */
  duplicateNames: boolean
  /** Everybody else's progress and texts are sent to us as well. */
  strangersFrames: boolean

  // History and queue
  /** Finished prompts are not remembered. */
  evictHistory: boolean
  /** They appear so much later. */
  historyLagMs: number
  /** Answers of these paths (`/history`, `/queue`, `/prompt` ...) are not JSON. */
  garbage: Record<string, number>
  /** Answers of these paths are 503. */
  unavailable: Record<string, number>
  /** Answers of these paths never come. */
  mute: Record<string, number>

  // Files
  viewError: number
  viewMissing: number
  /** The connection ends instead of an answer, also for whoever only asks whether the file is there. */
  dropView: number
  /** What whoever only asks whether the file is there gets to hear instead of the truth. */
  viewHeadStatus: number | null
  /** The connection ends after half of the bytes. */
  viewTruncated: number
  /** The answer promises more bytes than it has. */
  viewWrongLength: number
  viewBytesPerSecond: number | null
  /** Ranges are ignored. */
  noRanges: boolean
  uploadError: number

  // What the server can do
  objectInfoMs: number
  /** No `/api/jobs`. */
  noJobsApi: boolean
  /** Its asset store is on: files have ids, and can be deleted by them. */
  hasAssets: boolean
  /** No `/features`. */
  noFeatures: boolean
  /** No `/internal/logs`. */
  noLogs: boolean
  /** What is printed only shows in the record of the server: it has no terminal, and nothing flushes. */
  quietOutput: boolean
  /** What its local time is ahead of UTC, in minutes. */
  zoneMinutes: number
  /** Only what a run needs is answered: 404 to every other question. */
  isBare: boolean
  /** `/interrupt` does not look at the id and stops whatever runs. */
  blindInterrupt: boolean
}

export function noFaults(): FakeFaults {
  return {
    silentSocket: false,
    refuseSocket: false,
    unwindSocketMs: 0,
    cutSocketAfterFrames: null,
    dropPromptReply: 0,
    dropPrompt: 0,
    busyPrompt: 0,
    ignorePromptId: false,
    partialAcceptance: false,
    hang: false,
    ignoreInterrupt: false,
    deadWorker: false,
    diesAtNode: false,
    diesUnrecorded: false,
    outOfMemory: 0,
    cudaFault: false,
    raises: null,
    tracebackBytes: 0,
    cachedEmptyOutputs: false,
    duplicateNames: false,
    strangersFrames: false,
    evictHistory: false,
    historyLagMs: 0,
    garbage: {},
    unavailable: {},
    mute: {},
    viewError: 0,
    viewMissing: 0,
    dropView: 0,
    viewHeadStatus: null,
    viewTruncated: 0,
    viewWrongLength: 0,
    viewBytesPerSecond: null,
    noRanges: false,
    uploadError: 0,
    objectInfoMs: 0,
    noJobsApi: false,
    hasAssets: false,
    noFeatures: false,
    noLogs: false,
    quietOutput: false,
    zoneMinutes: 0,
    isBare: false,
    blindInterrupt: false,
  }
}

type Counted = { [Name in keyof FakeFaults]: FakeFaults[Name] extends number ? Name : never }[keyof FakeFaults]

/** True when the fault strikes now. */
export function strikes(faults: FakeFaults, name: Counted): boolean {
  if (faults[name] <= 0) return false
  faults[name] -= 1
  return true
}

export function strikesPath(table: Record<string, number>, path: string): boolean {
  const entry = Object.keys(table).find((prefix) => path === prefix || path.startsWith(`${prefix}/`))
  if (entry === undefined || (table[entry] ?? 0) <= 0) return false
  table[entry] = (table[entry] ?? 0) - 1
  return true
}
