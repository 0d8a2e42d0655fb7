/**
 * The threads that run heavy built-in nodes, which look at the cancel flag by themselves and ask for their memory. While
 * every thread is held by a long call, further ones are opened for a while, so that short calls of others go on.
 */
import { Worker } from 'node:worker_threads'
import { toHeapLimits } from '../../lib/threads/garbage.ts'
import { createCorePlaces, freeAllPlaces, showBusy } from '../bands/band-board.ts'
import { type Recognise, toWireRecord } from '../values/wire-value.ts'
import type { ComputeThreadData } from './protocol.ts'
import { createThreadPool, type OpenedThread, type ThreadKind, type ThreadPool } from './thread-pool.ts'

interface ComputePoolDeps {
  readonly size: number
  /** How many cores the work on one large picture may use. */
  readonly cores: number
  /** The longest time that one call may take. */
  readonly timeoutMs: number
  /** What one thread may hold beside tensors: whatever a node has not asked for must not fill the machine. */
  readonly bufferBytes: number
  readonly nodeModules: readonly string[]
  readonly recognise: Recognise
}

// Most nodes look at the flag every few milliseconds; those that are inside a library call finish it first.
const CANCEL_GRACE_MS = 5_000
const FURTHER_SHARE = 2
// With the pauses between them about a second and a half.
const LOAD_TRIES = 4
// What nodes build of texts and lists; tensors lie elsewhere.
const HEAP_MB = 1024

export function createComputePool(deps: ComputePoolDeps): ThreadPool {
  const { size, cores, timeoutMs, bufferBytes, nodeModules, recognise } = deps
  const places = createCorePlaces(cores)
  let opened = 0
  const kind: ThreadKind = {
    size,
    isEager: true,
    furtherShare: FURTHER_SHARE,
    timeoutMs,
    // A machine that is slow, or out of memory for a moment, is nothing that the node of a job has done.
    loadLimitMs: null,
    loadTries: LOAD_TRIES,
    cancelGraceMs: CANCEL_GRACE_MS,
    bufferBytes,
    showBusy: (threads) => showBusy(places, threads),
    open: (memory) => openComputeThread({ nodeModules, memory, places, owner: ++opened }),
    toCall: ({ node, inputs, call, cancelFlag }) => ({
      type: 'call',
      classType: node.classType,
      inputs: toWireRecord(inputs),
      call,
      cancelFlag,
    }),
    describeLoss: (classType) => `${classType} took its compute thread down; the thread was replaced`,
    describeFailedLoad: (why) => `the compute threads of the engine could not be started (${why})`,
  }
  return createThreadPool(kind, recognise)
}

function openComputeThread(workerData: ComputeThreadData): OpenedThread {
  const worker = new Worker(new URL('./compute-thread.ts', import.meta.url), {
    workerData,
    transferList: [workerData.memory.port],
    resourceLimits: toHeapLimits(HEAP_MB),
  })
  return { worker, port: worker, close: () => freeAllPlaces(workerData.places, workerData.owner) }
}
