/**
 * How a thread that computes gets tensor memory from the engine thread without leaving its loop: it asks over a port of
 * its own, waits for a bell in shared memory, and takes the answer out of the port.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { NodeError } from '../node-error.ts'
import type { MemoryAnswer, MemoryLine } from './protocol.ts'

// The engine thread answers within microseconds; if it does not within this time, it is gone.
const WAIT_MS = 30_000

export interface MemoryDesk extends Disposable {
  /** To be transferred together with its port. */
  readonly line: MemoryLine
}

/** The engine thread's end. */
export function openMemoryDesk(answer: (bytes: number) => MemoryAnswer): MemoryDesk {
  const { port1, port2 }: { port1: MessagePort; port2: MessagePort } = new MessageChannel()
  const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  port1.on('message', (bytes: number) => {
    port1.postMessage(answer(bytes))
    Atomics.store(bell, 0, 1)
    Atomics.notify(bell, 0)
  })
  return { line: { port: port2, bell }, [Symbol.dispose]: () => port1.close() }
}

/** The other end. */
export function createAllocate({ port, bell }: MemoryLine): (bytes: number) => SharedArrayBuffer {
  return function allocate(bytes) {
    Atomics.store(bell, 0, 0)
    port.postMessage(bytes)
    Atomics.wait(bell, 0, 0, WAIT_MS)
    const answer = receiveMessageOnPort(port)?.message as MemoryAnswer | undefined
    if (answer === undefined) throw new NodeError('MemoryError', 'the engine did not answer a request for memory')
    if ('failure' in answer) throw new NodeError(answer.failure.exceptionType, answer.failure.message)
    return answer.buffer
  }
}
