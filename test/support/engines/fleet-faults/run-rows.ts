/** Faults of running: nodes that hang or raise, servers that die, and runs that somebody cancels. */
import type { Phase } from '../fake-comfyui/executor.ts'
import { ALWAYS, type FaultRow, type Within } from './row.ts'

const NO_MORE_NODES = 'at the end of a run no node is left that could hang or raise'
const NOT_AT_END = { finishing: NO_MORE_NODES }
const TOLD = 'at the end of a run its outputs have been told, cached or not'
const NOT_BEGUN: Readonly<Record<Phase, number>> = { queued: 1, running: 2, finishing: 2 }
const stop: Within = { pollMaxMs: 2, interruptEveryMs: 2 }
const gone: Within = { refusedMs: 1, vanishedMs: 1, pollMaxMs: 2 }
/** What a run reached before it could be stopped counts. */
const TOO_LATE = { queued: 'canceled', running: 'canceled', finishing: 'succeeded' } as const

const NO_ROOM = { type: 'OSError', message: "[Errno 28] No space left on device: 'output/a_00001_.png'" }

const NODE_ROWS: readonly FaultRow[] = [
  {
    name: 'a node that hangs',
    faults: { hang: true },
    since: 'point',
    ends: 'failed:stalled',
    never: NOT_AT_END,
    within: { ...stop, stallMs: 1 },
  },
  {
    name: 'a node that hangs, and a silent socket',
    faults: { hang: true, silentSocket: true },
    since: 'point',
    ends: 'failed:stalled',
    never: NOT_AT_END,
    within: { ...stop, stallMs: 2 },
  },
  {
    name: 'a node that hangs, and no socket at all',
    faults: { hang: true, refuseSocket: true },
    act: (fake) => fake.cutSockets(),
    since: 'point',
    ends: 'failed:stalled',
    never: NOT_AT_END,
    within: { ...stop, stallMs: 2 },
  },
  {
    name: 'a node that hangs and ignores interrupts',
    faults: { hang: true, ignoreInterrupt: true },
    since: 'point',
    ends: 'moved',
    never: NOT_AT_END,
    quarantines: ['queued', 'running'],
    within: { ...stop, stallMs: 1, stopGraceMs: 1 },
  },
  {
    name: 'no memory, once',
    faults: { outOfMemory: 1 },
    since: 'point',
    ends: 'again',
    never: NOT_AT_END,
    within: { freeSettleMs: 1, pollMaxMs: 2 },
  },
  {
    name: 'no memory, wherever it runs',
    faults: { outOfMemory: ALWAYS },
    isEverywhere: true,
    since: 'point',
    ends: 'failed:out_of_memory',
    never: NOT_AT_END,
    executions: { queued: 2, running: 2, finishing: 1 },
    within: { freeSettleMs: 1, pollMaxMs: 2 },
  },
  {
    name: 'a fault of the graphics card',
    faults: { cudaFault: true },
    since: 'point',
    ends: 'moved',
    isUnspent: true,
    never: NOT_AT_END,
    quarantines: ['queued', 'running'],
    within: { pollMaxMs: 2 },
  },
  {
    name: 'a fault of the graphics card, wherever it runs',
    faults: { cudaFault: true },
    isEverywhere: true,
    since: 'point',
    ends: 'failed:cuda_fault',
    isUnspent: true,
    never: NOT_AT_END,
    executions: { queued: 2, running: 2, finishing: 1 },
    quarantines: ['queued', 'running'],
    within: { pollMaxMs: 2 },
  },
  {
    name: 'a full disk',
    faults: { raises: NO_ROOM },
    since: 'point',
    ends: 'moved',
    isUnspent: true,
    never: NOT_AT_END,
    quarantines: ['queued', 'running'],
    within: { pollMaxMs: 2 },
  },
  {
    name: 'a full disk, wherever it runs',
    faults: { raises: NO_ROOM },
    isEverywhere: true,
    since: 'point',
    ends: 'failed:node_execution_error',
    isUnspent: true,
    never: NOT_AT_END,
    executions: { queued: 2, running: 2, finishing: 1 },
    within: { pollMaxMs: 2 },
  },
  {
    name: 'a library that is missing',
    faults: { raises: { type: 'ImportError', message: 'libcudnn.so.9: cannot open shared object file' } },
    since: 'point',
    ends: 'moved',
    isUnspent: true,
    never: NOT_AT_END,
    quarantines: ['queued', 'running'],
    within: { pollMaxMs: 2 },
  },
  {
    name: 'an exception with a huge traceback',
    faults: { tracebackBytes: 5_000_000 },
    graph: 'raising',
    since: 'point',
    ends: 'failed:node_execution_error',
    never: { finishing: 'a run whose node raised never comes to its end' },
    within: { pollMaxMs: 1 },
  },
  {
    name: 'a cached run without its outputs',
    faults: { cachedEmptyOutputs: true },
    graph: 'text',
    since: 'point',
    ends: 'succeeded',
    never: { finishing: TOLD },
    // The first of them runs nothing: everything is in the cache. The second makes the outputs anew.
    executions: { queued: 2, running: 2, finishing: 1 },
    within: { pollMaxMs: 2 },
  },
]

const BEGUN = 'a run that the server has begun does not wait in its queue any more'
/** The thread that runs prompts is dead, and the server answers as always. */
const DEAD_WORKER_ROWS: readonly FaultRow[] = [
  {
    name: 'a server that takes prompts and starts none',
    faults: { deadWorker: true },
    since: 'point',
    ends: 'moved',
    never: { running: BEGUN, finishing: BEGUN },
    executions: { queued: 1, running: 1, finishing: 1 },
    quarantines: ['queued'],
    within: { ...stop, idleMs: 1 },
  },
  {
    name: 'a worker thread that dies at a node',
    faults: { diesAtNode: true },
    since: 'point',
    ends: 'failed:node_execution_error',
    never: NOT_AT_END,
    quarantines: ['queued', 'running'],
    within: { ...stop, idleMs: 1 },
  },
  {
    name: 'a run whose end is told and never recorded',
    faults: { diesUnrecorded: true },
    since: 'point',
    ends: 'succeeded',
    quarantines: ['queued', 'running', 'finishing'],
    within: { ...stop, idleMs: 1 },
  },
  {
    name: 'a node that raises, which is told and never recorded',
    faults: { diesUnrecorded: true },
    graph: 'raising',
    since: 'point',
    ends: 'failed:node_execution_error',
    never: { finishing: 'a run whose node raised never comes to its end' },
    quarantines: ['queued', 'running'],
    within: { ...stop, idleMs: 1 },
  },
]

/** As if the network cable was unplugged: connections stay open, and nothing comes through them. */
const CUT_OFF = { mute: { '': ALWAYS }, silentSocket: true }
const cut: Within = { unreachableMs: 1, callMs: 1, pollMaxMs: 2 }

const DEATH_ROWS: readonly FaultRow[] = [
  {
    name: 'a server that is cut off',
    faults: CUT_OFF,
    since: 'point',
    ends: 'moved',
    isDeath: true,
    within: cut,
  },
  {
    name: 'a server that is cut off while it is handed a prompt',
    faults: CUT_OFF,
    since: 'submit',
    ends: 'moved',
    executions: { queued: 1, running: 1, finishing: 1 },
    isDeath: true,
    within: cut,
  },
  {
    name: 'a server that is cut off while it is handed a file',
    faults: CUT_OFF,
    since: 'submit',
    graph: 'loaded',
    ends: 'moved',
    executions: { queued: 1, running: 1, finishing: 1 },
    isDeath: true,
    within: cut,
  },
  {
    name: 'a server that is killed',
    act: (fake) => fake[Symbol.asyncDispose](),
    since: 'point',
    ends: 'moved',
    executions: NOT_BEGUN,
    isDeath: true,
    within: gone,
  },
  {
    name: 'a server that is restarted at once',
    act: (fake) => fake.restart(),
    since: 'point',
    ends: 'moved',
    executions: NOT_BEGUN,
    isDeath: true,
    within: gone,
  },
  {
    name: 'a server that is restarted after a while',
    act: (fake) => fake.restart({ downMs: 300 }),
    since: 'point',
    ends: 'moved',
    executions: NOT_BEGUN,
    isDeath: true,
    within: gone,
  },
  {
    name: 'a server that is restarted with an empty input folder',
    act: (fake) => fake.restart({ wipe: true }),
    graph: 'loaded',
    since: 'point',
    ends: 'moved',
    executions: NOT_BEGUN,
    isDeath: true,
    within: gone,
  },
]

const CANCELED_AT: Readonly<Record<Phase, number>> = { queued: 0, running: 1, finishing: 1 }

const CANCEL_ROWS: readonly FaultRow[] = [
  {
    name: 'a cancel',
    isCanceled: true,
    isKept: true,
    since: 'point',
    ends: TOO_LATE,
    executions: CANCELED_AT,
    within: stop,
  },
  {
    name: 'a cancel, and no jobs API',
    faults: { noJobsApi: true },
    isCanceled: true,
    isKept: true,
    since: 'birth',
    ends: TOO_LATE,
    executions: CANCELED_AT,
    within: stop,
  },
  {
    name: 'a cancel, and interrupts that stop whatever runs',
    faults: { noJobsApi: true, blindInterrupt: true },
    isCanceled: true,
    isKept: true,
    since: 'birth',
    ends: TOO_LATE,
    executions: CANCELED_AT,
    within: stop,
  },
  {
    name: 'a cancel, and interrupts that are ignored',
    faults: { ignoreInterrupt: true },
    isCanceled: true,
    isKept: true,
    since: 'point',
    ends: 'canceled',
    executions: CANCELED_AT,
    quarantines: ['running', 'finishing'],
    within: { ...stop, cancelGraceMs: 1 },
  },
  {
    name: 'a cancel, and a silent socket',
    faults: { silentSocket: true },
    isCanceled: true,
    isKept: true,
    since: 'point',
    ends: TOO_LATE,
    executions: CANCELED_AT,
    within: stop,
  },
  {
    name: 'a cancel of what is lost with its server',
    act: (fake) => fake[Symbol.asyncDispose](),
    isCanceled: true,
    isKept: true,
    since: 'point',
    ends: 'canceled',
    executions: CANCELED_AT,
    within: { ...gone, cancelGraceMs: 1 },
  },
]

export const RUN_ROWS: readonly FaultRow[] = [...NODE_ROWS, ...DEAD_WORKER_ROWS, ...DEATH_ROWS, ...CANCEL_ROWS]
