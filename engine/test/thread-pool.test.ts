/** Threads that die before they are ready to work. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { lastOf, openTestEngine } from './support/harness.ts'

const ATTEMPTS = 4
// The shortest pauses before the second, third and fourth attempt: half of 200, 400 and 800 ms.
const LEAST_GAPS_MS = [100, 200, 400]

// Large enough for a compute thread.
const GRAPH = {
  1: { class_type: 'EmptyImage', inputs: { width: 900, height: 900, batch_size: 1, color: 7 } },
  2: { class_type: 'ImageInvert', inputs: { image: ['1', 0] } },
  3: { class_type: 'PreviewImage', inputs: { images: ['2', 0] } },
}

test('a call waits for threads that load only at a later try, and is blamed for nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atelier-dying-'))
  const module = new URL('./support/dying-nodes.ts', import.meta.url)
  module.searchParams.set('loads', join(folder, 'loads'))
  module.searchParams.set('dying', '2')
  try {
    await using engine = await openTestEngine({ nodeModules: [module.href] })
    lastOf(await engine.run(GRAPH), 'succeeded')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('threads that never load are started again after growing pauses, and then calls fail with the reason', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atelier-dying-'))
  const loads = join(folder, 'loads')
  const module = new URL('./support/dying-nodes.ts', import.meta.url)
  module.searchParams.set('loads', loads)
  try {
    await using engine = await openTestEngine({ nodeModules: [module.href] })
    const { failure } = lastOf(await engine.run(GRAPH), 'failed')
    assert.equal(failure.message, 'the compute threads of the engine could not be started (these nodes never load)')
    const readLoads = () => readFileSync(loads, 'utf8').trim().split('\n').map(Number)
    while (readLoads().length < ATTEMPTS) await sleep(50)
    const times = readLoads().slice(0, ATTEMPTS)
    const gaps = times.slice(1).map((time, index) => time - times[index])
    for (const [index, least] of LEAST_GAPS_MS.entries()) assert.ok(gaps[index] >= least, gaps.join(', '))
  } finally {
    rmSync(folder, { recursive: true })
  }
})
