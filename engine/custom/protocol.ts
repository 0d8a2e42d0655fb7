/** What the engine thread and the threads of custom nodes say to each other, over a channel that node code never sees. */
import type { MessagePort } from 'node:worker_threads'
import type { CallSurroundings } from '../node/node-call.ts'
import type { MemoryLine, ToThread } from '../threads/protocol.ts'
import type { CustomNodes } from './custom-nodes.ts'

/** The first message to a thread, over its public port. */
export interface NodeThreadStart {
  readonly port: MessagePort
  readonly memory: MemoryLine
  readonly nodes: Omit<CustomNodes, 'declarations'>
  /** What its buffers may occupy. */
  readonly bufferBytes: number
}

export type ToNodeThread = ToThread<Pick<CallSurroundings, 'nodeId'>>
