/**
 * The entry of a thread that runs custom nodes, one call at a time. Whatever a node throws, now or later, is the failure
 * of its call; a node that leaves something running behind it takes the thread with it, so that no call meets the remains
 * of another. What cannot be contained here (a loop without end, process.exit) is noticed by the pool.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { getHeapStatistics } from 'node:v8'
import { parentPort } from 'node:worker_threads'
import { collectGarbage } from '../../lib/threads/garbage.ts'
import type { EngineNode } from '../node/define-node.ts'
import { allocateTensor, readInputs } from '../node/node-call.ts'
import { type FailureText, Interrupted, NodeError, toFailureText } from '../node/node-error.ts'
import { openMemoryLine } from '../threads/memory-line.ts'
import { type FromThread, toWireResult } from '../threads/protocol.ts'
import { fromWireRecord } from '../values/wire-value.ts'
import type { NodeThreadStart, ToNodeThread } from './describe-modules.ts'
import { type LoadedNode, loadModule, redirectOutput } from './load-modules.ts'
import { installModuleHooks } from './module-hooks.ts'
import { createCall, type NodeCall, toEngineNode } from './to-engine-node.ts'
import { takeOutputs, toUserValue } from './user-value.ts'

const publicPort = parentPort
if (publicPort === null) throw new Error('this module runs as a worker thread')
const { port, memory, nodes, bufferBytes } = await new Promise<NodeThreadStart>((resolve) =>
  publicPort.once('message', resolve),
)
const post = (message: FromThread) => port.postMessage(message)
const { allocate } = openMemoryLine(memory)

let current: NodeCall | null = null
redirectOutput((text) => current?.print(text))
const folderPaths = nodes.folders.map((url) => fileURLToPath(url))
installModuleHooks(nodes.folders, nodes.sources)
const table = new Map<string, LoadedNode & { readonly engineNode: EngineNode }>()
for (const module of nodes.modules) {
  for (const node of await loadModule(module)) {
    table.set(node.declaration.classType, { ...node, engineNode: toEngineNode(node.declaration) })
  }
}
// From here on nothing that a node throws ends the thread.
process.on('uncaughtException', (error) => current?.fail(error))
port.on('message', (message: ToNodeThread) => {
  if (message.type === 'cancel') current?.cancel()
  else if (message.type === 'collect') collectGarbage('major')
  else if (message.type === 'call') void handleCall(message)
})
await nextTurn()
const restingResources = countResources()
post({ type: 'ready' })

/** What keeps the thread busy, by kind: timers, sockets, child processes. */
function countResources(): Map<string, number> {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}

function hasLeftOvers(): boolean {
  for (const [kind, count] of countResources()) if (count > (restingResources.get(kind) ?? 0)) return true
  return false
}

const GARBAGE_SHARE = 4

type CallMessage = Extract<ToNodeThread, { type: 'call' }>

async function perform({ classType, inputs }: CallMessage, call: NodeCall) {
  const node = table.get(classType)
  if (node === undefined) throw new NodeError('KeyError', `no module of this thread defines ${classType}`)
  const read = readInputs(node.engineNode, fromWireRecord(inputs))
  const result = await call.settle(node.run(toUserValue(read) as Record<string, unknown>, call.context))
  const outputs = takeOutputs(result, node.declaration.outputs, (shape) => allocateTensor({ allocate }, shape))
  await call.previewsDrained()
  return toWireResult({ outputs })
}

async function handleCall(message: CallMessage): Promise<void> {
  const call = createCall(message, post)
  current = call
  let answer: () => FromThread
  try {
    const result = await perform(message, call)
    // Rejections that nobody handles are told at the end of a turn: they still count for this call.
    await nextTurn()
    call.refuseStray()
    answer = () => ({ type: 'done', result, isSpent: hasLeftOvers() })
  } catch (error) {
    const failure = call.isCancelled() || error instanceof Interrupted ? 'interrupted' : describeFailure(error)
    answer = () => ({ type: 'failed', failure, isSpent: call.isBroken() || hasLeftOvers() })
  }
  call.close()
  current = null
  post(answer())
  // What this call left must not be counted against the next one.
  if (getHeapStatistics().external_memory > bufferBytes / GARBAGE_SHARE) collectGarbage('major')
}

/** A node may throw anything, things without a text among them. */
function describeFailure(error: unknown): FailureText {
  try {
    const { exceptionType, message, traceback } = toFailureText(error, folderPaths)
    return { exceptionType: `${exceptionType}`, message: `${message}`, traceback: `${traceback}` }
  } catch {
    const message = 'a node threw something that has no text'
    return { exceptionType: 'RuntimeError', message, traceback: `RuntimeError: ${message}` }
  }
}
