/**
 * How a thread that runs nodes gets tensor memory from the engine thread, and has other memory counted there, in the middle of
 * synchronous code: it asks over a port of its own, waits for a bell in shared memory, and takes the answer out of the port. It waits
 * for as long as its call may take: giving up would leave an answer in the port that the next request would take for its own.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { CallHost } from '../node/node-call.ts'
import { NodeError, toFailureText } from '../node/node-error.ts'
import type { ComputeTask } from '../run/calls/call-node.ts'
import type { MemoryAnswer, MemoryLine, MemoryRequest } from './protocol.ts'

interface MemoryDesk extends Disposable {
  /** To be transferred together with its port. */
  readonly line: MemoryLine
}

/** The engine thread's end. `answer` never rejects; null: nobody waits for an answer. */
export function openMemoryDesk(answer: (request: MemoryRequest) => Promise<MemoryAnswer> | null): MemoryDesk {
  const { port1, port2 }: { port1: MessagePort; port2: MessagePort } = new MessageChannel()
  const bell = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  port1.on('message', (request: MemoryRequest) => {
    const answered = answer(request)
    void answered?.then((message) => {
      port1.postMessage(message)
      Atomics.store(bell, 0, 1)
      Atomics.notify(bell, 0)
    })
  })
  return { line: { port: port2, bell }, [Symbol.dispose]: () => port1.close() }
}

/** Memory belongs to a call; outside of one there is none. */
export function createMemoryAnswers(currentTask: () => ComputeTask | null) {
  let unreserve = () => {}

  async function answer(request: Exclude<MemoryRequest, { type: 'unreserve' }>): Promise<MemoryAnswer> {
    try {
      const task = currentTask()
      if (task === null) throw new NodeError('MemoryError', 'memory was asked for outside a call')
      if (request.type === 'allocate') return { buffer: task.host.allocate(request.bytes) }
      unreserve = await task.host.reserve(request.bytes, request.besideBytes)
      return { buffer: null }
    } catch (error) {
      return { failure: toFailureText(error) }
    }
  }

  return (request: MemoryRequest): Promise<MemoryAnswer> | null => {
    if (request.type !== 'unreserve') return answer(request)
    unreserve()
    return null
  }
}

/** The other end. */
export function openMemoryLine({ port, bell }: MemoryLine): Pick<CallHost, 'allocate' | 'reserve'> {
  function ask(request: MemoryRequest): SharedArrayBuffer | null {
    Atomics.store(bell, 0, 0)
    port.postMessage(request)
    // The engine thread sets the bell and then wakes us, which may happen so late that it wakes us out of the next wait.
    while (Atomics.load(bell, 0) === 0) Atomics.wait(bell, 0, 0)
    const answer = receiveMessageOnPort(port)?.message as MemoryAnswer | undefined
    if (answer === undefined) throw new NodeError('MemoryError', 'the engine gave no answer to a request for memory')
    if ('failure' in answer) throw new NodeError(answer.failure.exceptionType, answer.failure.message)
    return answer.buffer
  }
  return {
    allocate(bytes) {
      const buffer = ask({ type: 'allocate', bytes })
      if (buffer === null) throw new NodeError('MemoryError', 'the engine gave no memory')
      return buffer
    },
    async reserve(bytes, besideBytes = 0) {
      ask({ type: 'reserve', bytes, besideBytes })
      return () => port.postMessage({ type: 'unreserve' } satisfies MemoryRequest)
    },
  }
}
