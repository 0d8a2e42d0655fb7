/** What the engine thread and the threads of custom nodes say to each other, over a channel that node code never sees. */
import type { MessagePort } from 'node:worker_threads'
import type { FailureText } from '../node/node-error.ts'
import type { CancelFlag, MemoryLine, WireResult } from '../threads/protocol.ts'
import type { WireRecord } from '../values/wire-value.ts'
import type { CustomNodes } from './custom-nodes.ts'
import type { EncodedPicture } from './nodes-api.ts'

/** The first message to a thread, over its public port. */
export interface NodeThreadStart {
  readonly port: MessagePort
  readonly memory: MemoryLine
  readonly nodes: Omit<CustomNodes, 'declarations'>
  /** What its buffers may occupy. */
  readonly bufferBytes: number
}

export type ToNodeThread =
  | {
      readonly type: 'call'
      readonly classType: string
      readonly nodeId: string
      readonly inputs: WireRecord
      readonly cancelFlag: CancelFlag
    }
  | { readonly type: 'cancel' }
  | { readonly type: 'collect' }

export type FromNodeThread =
  | { readonly type: 'ready' }
  | { readonly type: 'progress'; readonly value: number; readonly max: number; readonly picture?: EncodedPicture }
  | { readonly type: 'preview'; readonly contentType: string; readonly bytes: Uint8Array }
  | { readonly type: 'log'; readonly text: string }
  /** isSpent: something of the call still goes on in the thread, so that it must not be used again. */
  | { readonly type: 'done'; readonly result: WireResult; readonly isSpent: boolean }
  | { readonly type: 'failed'; readonly failure: FailureText | 'interrupted'; readonly isSpent: boolean }
