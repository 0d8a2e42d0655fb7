/**
 * The entry of a compute thread: takes one call at a time, runs it, answers. Whatever a node throws is its call's failure;
 * a node that takes the whole thread down is noticed by the pool.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { loadSharp } from '../../lib/files/load-sharp.ts'
import { collectGarbage } from '../../lib/threads/garbage.ts'
import { BandCrew } from '../bands/band-crew.ts'
import { type CallHost, performCall, readInputs } from '../node/node-call.ts'
import { Interrupted, NodeError, toFailureText } from '../node/node-error.ts'
import { fromWireRecord } from '../values/wire-value.ts'
import { loadNodes } from './load-nodes.ts'
import { openMemoryLine } from './memory-line.ts'
import { type ComputeThreadData, type FromThread, type ToThread, toWireResult, transferable } from './protocol.ts'

// A loop may report every row: one report per screen refresh is enough.
const PROGRESS_EVERY_MS = 16
// What one call may print; a node in a loop must not fill the memory of its readers.
const LOG_LIMIT = 1_048_576

const { nodeModules, memory, places, owner } = workerData as ComputeThreadData
const port = parentPort
if (port === null) throw new Error('this module runs as a worker thread')
// Parallelism comes from the pool; a library that starts threads of its own would only get in the way.
loadSharp().concurrency(1)
loadSharp().cache(false)

const table = await loadNodes(nodeModules)
const { allocate, reserve } = openMemoryLine(memory)
const crew = new BandCrew({ places, owner })
const waitingForNumbers = new Map<number, PromiseWithResolvers<number>>()
let nextRequestId = 0

function post(message: FromThread, transfer: ArrayBuffer[] = []): void {
  port?.postMessage(message, transfer)
}

function createHost(cancelFlag: Int32Array): CallHost {
  let progressAt = Number.NEGATIVE_INFINITY
  let logRoom = LOG_LIMIT
  return {
    isCancelled: () => Atomics.load(cancelFlag, 0) !== 0,
    progress(value, max, also) {
      const now = performance.now()
      const mayBeLeftOut = value < max && also?.picture?.isResult !== true
      if (mayBeLeftOut && now - progressAt < PROGRESS_EVERY_MS) return
      progressAt = now
      post({ type: 'progress', value, max, also })
    },
    preview: (contentType, bytes) => post({ type: 'preview', contentType, bytes }),
    log(text) {
      if (logRoom <= 0) return
      const shown = text.slice(0, logRoom)
      logRoom -= shown.length
      post({
        type: 'log',
        text: logRoom > 0 ? shown : `${shown}\n(this node printed too much; the rest is left out)\n`,
      })
    },
    text: (text) => post({ type: 'text', text: text.slice(0, LOG_LIMIT) }),
    allocate,
    reserve,
    shareRows: (job, checkpoint) => crew.shareRows(job, checkpoint),
    reserveNumbers(folder, subfolder, prefix, count) {
      const requestId = nextRequestId++
      const answer = Promise.withResolvers<number>()
      waitingForNumbers.set(requestId, answer)
      post({ type: 'reserve', requestId, folder, subfolder, prefix, count })
      return answer.promise
    },
    // A compute thread does not wait for the outside world.
    runModel: null,
  }
}

async function handleCall(message: Extract<ToThread, { type: 'call' }>): Promise<void> {
  const { classType, inputs, call, cancelFlag } = message
  try {
    const node = table.get(classType)
    if (node === undefined) throw new NodeError('KeyError', `this engine has no node class ${classType}`)
    const host = createHost(cancelFlag)
    const result = toWireResult(await performCall(node, readInputs(node, fromWireRecord(inputs)), { call, host }))
    await crew.settled()
    post({ type: 'done', result }, transferable(result.report))
  } catch (error) {
    // With the answer, the memory of the call goes to others.
    await crew.settled()
    post({ type: 'failed', failure: error instanceof Interrupted ? 'interrupted' : toFailureText(error) })
  }
}

port.on('message', (message: ToThread) => {
  if (message.type === 'call') void handleCall(message)
  else if (message.type === 'collect') {
    collectGarbage('major')
    crew.collectGarbage()
  } else if (message.type === 'numbers') {
    const answer = waitingForNumbers.get(message.requestId)
    waitingForNumbers.delete(message.requestId)
    if (message.first === null) answer?.reject(new NodeError('OSError', 'no number for the output name could be had'))
    else answer?.resolve(message.first)
  }
})
post({ type: 'ready' })
