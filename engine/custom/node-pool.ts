/**
 * The threads of custom nodes: the first opened at once, others when they are needed. Nothing else runs in them, so a node that hangs
 * can only hold up other custom nodes. A call that takes too long, uses too much memory or ignores a cancel loses its thread.
 */
import { MessageChannel, Worker } from 'node:worker_threads'
import { toHeapLimits } from '../../lib/threads/garbage.ts'
import type { MemoryLine } from '../threads/protocol.ts'
import { createThreadPool, type OpenedThread, type ThreadKind, type ThreadPool } from '../threads/thread-pool.ts'
import { type Recognise, toWireRecord } from '../values/wire-value.ts'
import type { CustomNodes, NodeLimits } from './custom-nodes.ts'
import type { NodeThreadStart } from './describe-modules.ts'

interface NodePoolDeps {
  readonly size: number
  readonly nodes: CustomNodes
  readonly limits: NodeLimits
  readonly recognise: Recognise
}

// A node that listens to its signal is done within milliseconds; one that does not will not be any more.
const CANCEL_GRACE_MS = 2_000
// They loaded when the service started; what hangs now would hang again.
const LOAD_LIMIT_MS = 60_000
const MIB = 1_048_576

export function createNodePool({ size, nodes, limits, recognise }: NodePoolDeps): ThreadPool {
  const kind: ThreadKind = {
    size,
    isEager: false,
    furtherShare: 0,
    timeoutMs: limits.timeoutMs,
    loadLimitMs: LOAD_LIMIT_MS,
    loadTries: 1,
    cancelGraceMs: CANCEL_GRACE_MS,
    bufferBytes: limits.bufferBytes,
    showBusy() {},
    open: (memory) => openNodeThread(memory, nodes, limits),
    toCall: ({ node, inputs, call, cancelFlag }) => ({
      type: 'call',
      classType: node.classType,
      inputs: toWireRecord(inputs),
      call: { nodeId: call.nodeId },
      cancelFlag,
    }),
    describeLoss: (classType) => `${classType} ended its thread; the thread was replaced`,
    describeFailedLoad: (why) => `the custom nodes could not be loaded again (${why}); restart the service`,
  }
  return createThreadPool(kind, recognise)
}

function openNodeThread(memory: MemoryLine, nodes: CustomNodes, limits: NodeLimits): OpenedThread {
  const { port1, port2 } = new MessageChannel()
  const worker = new Worker(new URL('./node-thread.ts', import.meta.url), {
    // No variables of the process: they may be secrets.
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: toHeapLimits(limits.heapBytes / MIB),
  })
  worker.stdout.resume()
  worker.stderr.resume()
  const { folders, modules, sources } = nodes
  const { bufferBytes } = limits
  const start: NodeThreadStart = { port: port2, memory, nodes: { folders, modules, sources }, bufferBytes }
  worker.postMessage(start, [port2, memory.port])
  return { worker, port: port1, close: () => port1.close() }
}
