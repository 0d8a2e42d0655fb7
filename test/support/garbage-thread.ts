/** A thread that makes much garbage, rests and says how large its heap was before and after. */
import { setTimeout as sleep } from 'node:timers/promises'
import { getHeapStatistics } from 'node:v8'
import { parentPort } from 'node:worker_threads'
import { createIdleCollection } from '../../lib/threads/garbage.ts'

const kept: object[] = []
for (let index = 0; index < 1_000_000; index += 1)
  kept[index % 50_000] = { index, text: `text ${index}`, list: [index] }
const before = getHeapStatistics().total_physical_size
kept.length = 0
const collectIdle = createIdleCollection()
// It rests as soon as the processor says so.
while (!collectIdle()) await sleep(50)
parentPort?.postMessage({ before, after: getHeapStatistics().total_physical_size })
