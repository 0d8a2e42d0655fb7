/** A thread that asks for memory as a node does, and tells what it got. */
import { parentPort, workerData } from 'node:worker_threads'
import { openMemoryLine } from '../../threads/memory-line.ts'
import type { MemoryLine } from '../../threads/protocol.ts'

const { line, sizes } = workerData as { readonly line: MemoryLine; readonly sizes: readonly number[] }
const { allocate } = openMemoryLine(line)
parentPort?.postMessage(sizes.map((bytes) => allocate(bytes).byteLength))
