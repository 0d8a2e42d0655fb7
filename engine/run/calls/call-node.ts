/**
 * Where a call runs: cheap nodes here on the engine thread, heavy ones on a pool. Either way the memory that the call
 * asked for belongs to the call until the executor has taken over what it wants to keep.
 */
import type { Cost, EngineNode } from '../../node/define-node.ts'
import { type CallHost, type CallSurroundings, performCall, readInputs } from '../../node/node-call.ts'
import type { CallResult } from '../../node/node-context.ts'
import type { MemoryLedger, MemoryOwner } from '../../tensor/memory-ledger.ts'
import { buffersOf, fileBytesOf } from '../results/result-cache.ts'
import type { CallInputs } from './map-calls.ts'

/** Heavy calls go here. Resolves or rejects with what the node did; rejects too when its thread is lost. */
export interface ComputePool {
  readonly size: number
  call(task: ComputeTask): Promise<CallResult>
}

export interface ComputeTask {
  readonly node: EngineNode
  readonly inputs: CallInputs
  readonly call: CallSurroundings
  readonly host: CallHost
  readonly cancelFlag: Int32Array<SharedArrayBuffer>
}

export interface CallOutcome {
  readonly result: CallResult
  /** Gives the call's memory back, except what has been retained meanwhile. */
  free(): void
}

interface CallNodeDeps {
  readonly ledger: MemoryLedger
  readonly pools: Readonly<Record<Exclude<Cost, 'inline'>, ComputePool>>
  readonly cancelFlag: Int32Array<SharedArrayBuffer>
}

/** What a call gets of its run; its memory comes from here. */
export type RunHost = Omit<CallHost, 'allocate' | 'reserve' | 'isCancelled'>

export type NodeCalls = (
  node: EngineNode,
  inputs: CallInputs,
  around: { readonly call: CallSurroundings; readonly host: RunHost },
) => CallOutcome | Promise<CallOutcome>

/** The calls of one run. */
export function createNodeCalls({ ledger, pools, cancelFlag }: CallNodeDeps): NodeCalls {
  const owner: MemoryOwner = { liveBytes: 0 }

  function runOnPool(pool: ComputePool, task: ComputeTask, free: () => void): Promise<CallResult> {
    // The inputs stay alive until the thread is done, even when the run has been given up meanwhile.
    const inputBuffers = buffersOf([Object.values(task.inputs)])
    for (const buffer of inputBuffers) ledger.retain(buffer)
    return pool.call(task).then(
      (result) => {
        for (const buffer of inputBuffers) ledger.release(buffer)
        return result
      },
      (error) => {
        for (const buffer of inputBuffers) ledger.release(buffer)
        free()
        throw error
      },
    )
  }

  return function callNode(node, inputs, { call, host: parts }) {
    const allocated: SharedArrayBuffer[] = []
    const reserved: (() => void)[] = []
    let isOver = false
    const free = () => {
      isOver = true
      for (const buffer of allocated.splice(0)) ledger.release(buffer)
      for (const end of reserved.splice(0)) end()
    }
    /** What a call has made of files is there until its node is done, and only then known. */
    const keep = (result: CallResult): CallOutcome => {
      try {
        const fileBytes = fileBytesOf(result.report ?? null)
        if (fileBytes > 0) reserved.push(ledger.reserve(fileBytes, { owner }))
      } catch (error) {
        free()
        throw error
      }
      return { result, free }
    }
    const host: CallHost = {
      ...parts,
      isCancelled: () => Atomics.load(cancelFlag, 0) !== 0,
      allocate(bytes) {
        const buffer = ledger.allocate(bytes, owner)
        allocated.push(buffer)
        return buffer
      },
      async reserve(bytes, besideBytes = 0) {
        const end = await ledger.reserveOrWait(bytes, { besideBytes, owner })
        if (isOver) end()
        else reserved.push(end)
        return end
      },
    }
    const read = readInputs(node, inputs)
    const cost = node.costOf(read)
    if (cost !== 'inline') {
      return runOnPool(pools[cost], { node, inputs, call, host, cancelFlag }, free).then(keep)
    }
    try {
      const result = performCall(node, read, { call, host })
      if (!(result instanceof Promise)) return keep(result)
      return result.then(keep, (error) => {
        free()
        throw error
      })
    } catch (error) {
      free()
      throw error
    }
  }
}
