/**
 * The entry of the engine thread: hosts every run's scheduler, the cache and the memory ledger, and executes cheap nodes.
 * It never blocks for long, so compute threads can wait for its answers. One thread for all runs keeps the cache single.
 */
import { randomInt } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { BoundedMap } from '../../lib/bounded-map.ts'
import { loadSharp } from '../../lib/files/load-sharp.ts'
import { parseLosslessJson } from '../../lib/json/lossless-json.ts'
import { collectGarbage, createIdleCollection, IDLE_CHECK_MS } from '../../lib/threads/garbage.ts'
import { createNodePool } from '../custom/node-pool.ts'
import { readGraph } from '../graph/graph-json.ts'
import { createValueBudget } from '../node/node-call.ts'
import { NodeError } from '../node/node-error.ts'
import { createNodeCalls } from '../run/calls/call-node.ts'
import { ResultCache } from '../run/results/result-cache.ts'
import { runGraph } from '../run/run-graph.ts'
import { isReplacedBy, type RunDeps, type RunEvent, type RunRequest, weightOf } from '../run/run-state.ts'
import { MemoryLedger } from '../tensor/tensor.ts'
import { createComputePool } from './compute-pool.ts'
import { loadNodes } from './load-nodes.ts'
import { createModelLine } from './model-line.ts'
import {
  type EngineThreadData,
  type FromEngine,
  type NumberRequest,
  PULSE,
  type RunMessage,
  type ToEngine,
} from './protocol.ts'
import { createAside } from './run-stream.ts'

// Events on their way to the main thread: collected during a turn of the loop and posted in messages of bounded size. When the reader
// falls behind, `room` makes the run wait, so what is under way stays bounded, for each run and for all of them; of a flood of
// progress and previews of one node only the newest of a batch is sent.

interface Outbox {
  emit(event: RunEvent): void
  /** The reader has taken events of this weight. */
  taken(weight: number): void
  hasRoom(): boolean
  room(): Promise<void>
  /** Posts what has been collected, at once. */
  flush(): void
  /** The run is over; nobody takes what is left, and what a call of it still says goes nowhere. */
  close(): void
}

// Enough for the reader never to wait for us, little enough for hundreds of runs.
const MAX_WEIGHT = 33_554_432
// Of all runs. One that has nothing under way may always send: nobody waits for ever because of others.
const MAX_TOTAL_WEIGHT = 268_435_456
// What one message may hold, unless it is a single event: it is copied in one go, by a thread that serves everybody.
const MAX_MESSAGE_WEIGHT = 1_048_576
// What one batch may hold whole: every step of every ordinary node reaches its readers.
const MAX_BATCH_WEIGHT = 1_048_576

/** The outboxes of one thread. */
function createOutboxes(): (post: (events: readonly RunEvent[]) => void) => Outbox {
  let total = 0
  let roomMade = Promise.withResolvers<void>()

  function settle(weight: number): void {
    total -= weight
    roomMade.resolve()
    roomMade = Promise.withResolvers<void>()
  }

  return function openOutbox(post) {
    let batch: RunEvent[] = []
    let batchWeight = 0
    let isScheduled = false
    /** Collected or posted, and not yet taken. */
    let underWay = 0
    let isClosed = false

    function flush(): void {
      if (batch.length === 0) return
      const events = batch
      batch = []
      batchWeight = 0
      for (const message of inMessages(events)) post(message)
    }

    function weighIn(weight: number): void {
      batchWeight += weight
      underWay += weight
      total += weight
    }

    function replaceLast(event: RunEvent): void {
      const last = batch.at(-1)
      if (last === undefined || !isReplacedBy(last, event)) return
      batch.pop()
      weighIn(-weightOf(last))
    }

    const hasRoom = () => underWay === 0 || (underWay <= MAX_WEIGHT && total <= MAX_TOTAL_WEIGHT)

    return {
      flush,
      hasRoom,
      emit(event) {
        if (isClosed) return
        if (batchWeight > MAX_BATCH_WEIGHT) replaceLast(event)
        weighIn(weightOf(event))
        batch.push(event)
        if (isScheduled) return
        isScheduled = true
        setImmediate(() => {
          isScheduled = false
          flush()
        })
      },
      taken(weight) {
        if (isClosed) return
        underWay -= weight
        settle(weight)
      },
      async room() {
        while (!hasRoom()) await roomMade.promise
      },
      close() {
        isClosed = true
        flush()
        settle(underWay)
        underWay = 0
      },
    }
  }
}

function* inMessages(events: readonly RunEvent[]): Generator<readonly RunEvent[]> {
  let message: RunEvent[] = []
  let messageWeight = 0
  for (const event of events) {
    const weight = weightOf(event)
    if (message.length > 0 && messageWeight + weight > MAX_MESSAGE_WEIGHT) {
      yield message
      message = []
      messageWeight = 0
    }
    message.push(event)
    messageWeight += weight
  }
  yield message
}

// What a node keeps between the runs of one owner: five letters, and the last number of its preview names. Both live in
// memory only, like the previews they name, and the least recently used go first.

// ComfyUI's own alphabet: it has `p` twice and no `w`.
const ALPHABET = 'abcdefghijklmnopqrstupvxyz'
const LETTER_COUNT = 5
const MAX_INSTANCES = 10_000

interface Instances {
  letters(owner: string, nodeId: string, classType: string): string
  /** The first of `count` consecutive numbers for temporary files of this name. */
  reserveTempNumbers(owner: string, name: string, count: number): number
}

function randomLetters(): string {
  return Array.from({ length: LETTER_COUNT }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

function createInstances(newLetters: () => string): Instances {
  const lettersByNode = new BoundedMap<string, string>(MAX_INSTANCES)
  const lastNumbers = new BoundedMap<string, number>(MAX_INSTANCES)
  return {
    letters(owner, nodeId, classType) {
      const key = JSON.stringify([owner, nodeId, classType])
      const letters = lettersByNode.get(key) ?? newLetters()
      lettersByNode.set(key, letters)
      return letters
    },
    reserveTempNumbers(owner, name, count) {
      const key = JSON.stringify([owner, name])
      const last = lastNumbers.get(key) ?? 0
      lastNumbers.set(key, last + count)
      return last + 1
    },
  }
}

// Of the memory limit, what results may occupy that nobody reads at the moment.
const CACHE_SHARE = 0.5
const PLAIN_CACHE_SHARE = 0.25
const BEAT_MS = 250

const { threads, cores, memoryLimitBytes, runMemoryBytes, maxImagePixels, ...given } = workerData as EngineThreadData
const { values: valueLimits, nodeTimeoutMs, pulse, nodeModules, custom, asideFolder, letters } = given
const port = parentPort
if (port === null) throw new Error('this module runs as a worker thread')
const post = (message: FromEngine) => port.postMessage(message)
loadSharp().concurrency(1)
loadSharp().cache(false)

const table = await loadNodes(nodeModules, custom.nodes.declarations)
setInterval(createIdleCollection(), IDLE_CHECK_MS)
const recognise = (buffer: SharedArrayBuffer) => ledger.recognise(buffer)
const poolLimits = { timeoutMs: nodeTimeoutMs, bufferBytes: memoryLimitBytes }
const pool = createComputePool({ size: threads, cores, ...poolLimits, nodeModules, recognise })
const hasCustomNodes = custom.nodes.declarations.length > 0
// One node that hangs must not keep all others waiting.
const nodePoolSize = hasCustomNodes ? Math.max(2, threads) : 0
const nodePool = createNodePool({ size: nodePoolSize, ...custom, recognise })
const ledger = new MemoryLedger({
  limitBytes: memoryLimitBytes,
  ownerLimitBytes: runMemoryBytes,
  evict: () => cache.evictOldest(),
  collectGarbage() {
    // Later, not now: buffers that are being dropped are still referenced further up the stack.
    setImmediate(collectGarbage, 'major')
    pool.collectGarbage()
    nodePool.collectGarbage()
  },
})
const cache: ResultCache = new ResultCache({
  budgetBytes: memoryLimitBytes * CACHE_SHARE,
  plainBudgetBytes: valueLimits.totalBytes * PLAIN_CACHE_SHARE,
  ledger,
})
const values = createValueBudget(valueLimits)
const openOutbox = createOutboxes()
const setAside = createAside(asideFolder)
const fixedLetters = letters?.values()
const models = createModelLine((runId, requestId, call) => post({ type: 'model_call', runId, requestId, call }))
const instances = createInstances(() => fixedLetters?.next().value ?? randomLetters())

interface LiveRun {
  readonly outbox: Outbox
  readonly cancel: () => void
}

const runs = new Map<number, LiveRun>()
const waitingForNumbers = new Map<number, PromiseWithResolvers<number>>()
let nextRequestId = 0

function reserveOutputNumbers(runId: number, request: NumberRequest): Promise<number> {
  const requestId = nextRequestId++
  const answer = Promise.withResolvers<number>()
  waitingForNumbers.set(requestId, answer)
  post({ type: 'reserve', runId, requestId, ...request })
  return answer.promise
}

function showAtWork(runId: number): void {
  Atomics.store(pulse, PULSE.runAtWork, runId + 1)
}
setInterval(() => Atomics.add(pulse, PULSE.beats, 1), BEAT_MS)

function toDeps(message: RunMessage, outbox: Outbox, cancelled: Promise<void>): RunDeps {
  const { runId, owner, cancelFlag, nowMs } = message
  const isCancelled = () => Atomics.load(cancelFlag, 0) !== 0
  return {
    table,
    cache,
    ledger,
    values,
    callNode: createNodeCalls({ ledger, pools: { compute: pool, isolated: nodePool }, cancelFlag }),
    maxInFlight: pool.size + nodePool.size,
    maxImagePixels,
    emit: outbox.emit,
    setAside: (report) => setAside(report, isCancelled),
    hasRoom: outbox.hasRoom,
    room: outbox.room,
    atWork: () => showAtWork(runId),
    isCancelled,
    cancelled,
    async reserveNumbers(folder, subfolder, prefix, count) {
      if (folder === 'temp') return instances.reserveTempNumbers(owner, `${subfolder}/${prefix}`, count)
      return reserveOutputNumbers(runId, { subfolder, prefix, count })
    },
    runModel: (call) => models.run(runId, call),
    instanceLetters: instances.letters,
    nowMs: () => nowMs,
  }
}

function toRequest({ owner, graphText, extraPngInfoText, files }: RunMessage): RunRequest {
  const graph = readGraph(parseLosslessJson(graphText))
  return { owner, graph, files, promptText: graphText, extraPngInfoText }
}

async function handleRun(message: RunMessage): Promise<void> {
  const { runId, cancelFlag } = message
  showAtWork(runId)
  const outbox = openOutbox((events) => post({ type: 'events', runId, events }))
  const cancelled = Promise.withResolvers<void>()
  runs.set(runId, { outbox, cancel: cancelled.resolve })
  try {
    await runGraph(toRequest(message), toDeps(message, outbox, cancelled.promise))
  } catch (error) {
    post({ type: 'broken', runId, detail: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  } finally {
    // Calls that are still out belong to a run that has ended: they stop at their next look at the flag.
    Atomics.store(cancelFlag, 0, 1)
    outbox.close()
    runs.delete(runId)
  }
}

function handleNumbers(requestId: number, first: number | null): void {
  const answer = waitingForNumbers.get(requestId)
  waitingForNumbers.delete(requestId)
  if (first === null) answer?.reject(new NodeError('OSError', 'no number for the output name could be had'))
  else answer?.resolve(first)
}

port.on('message', (message: ToEngine) => {
  if (message.type === 'run') void handleRun(message)
  else if (message.type === 'cancel') runs.get(message.runId)?.cancel()
  else if (message.type === 'taken') runs.get(message.runId)?.outbox.taken(message.weight)
  else if (message.type === 'numbers') handleNumbers(message.requestId, message.first)
  else models.answered(message.requestId, message.answer)
})
post({ type: 'ready' })
