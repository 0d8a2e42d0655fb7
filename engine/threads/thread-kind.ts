/** What a pool has to know of the threads that it keeps. */
import type { Worker } from 'node:worker_threads'
import type { ComputeTask } from '../run/calls/call-node.ts'
import type { CallMessage, FromThread, MemoryLine, ToThread } from './protocol.ts'

interface ThreadPort {
  postMessage(message: ToThread<unknown>): void
  on(event: 'message', listener: (message: FromThread) => void): unknown
}

export interface OpenedThread {
  readonly worker: Worker
  /** Where calls go and answers come from. */
  readonly port: ThreadPort
  /** Called once the thread has ended. */
  close(): void
}

export interface ThreadKind {
  readonly size: number
  /** All threads are started at once and kept; otherwise the first one, and others when calls wait. */
  readonly isEager: boolean
  /** How many further threads, for each of the pool's own, may be opened while all of these are held by long calls. */
  readonly furtherShare: number
  /** The longest time that one call may take. */
  readonly timeoutMs: number
  /** How long a call may go on after its cancel. */
  readonly cancelGraceMs: number
  /** What the buffers of one thread may occupy beside tensors. */
  readonly bufferBytes: number
  /** Told whenever the number of threads with a call may have changed. */
  showBusy(threads: number): void
  /** `memory` is the thread's line to the engine's memory, whose port has to be transferred. */
  open(memory: MemoryLine): OpenedThread
  toCall(task: ComputeTask): CallMessage<unknown>
  /** Why a call failed whose thread ended without being told to. */
  describeLoss(classType: string): string
  describeFailedLoad(why: string): string
}
