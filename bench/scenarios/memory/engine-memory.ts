/**
 * Every class of the built-in engine with extreme inputs, one after the other in one engine, each cancelled after a while: what this
 * process and the engine's occupy before, at most, and afterwards. Prints a line per graph.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openEngine } from '../../../engine/index.ts'
import { EXTREMES, extremeFiles, extremeGraph } from '../../../engine/test/support/extreme-graphs.ts'
import type { Figure } from '../../kit/figure.ts'

const MIB = 1_048_576
const LIMIT_BYTES = 1024 * MIB
const LONGEST_RUN_MS = 1_500
// The engine looks at itself four times a second, and settles for half a second before it gives memory back.
const SETTLE_MS = 5_000
const BAR_MIB = 100

const small = {
  1: { class_type: 'EmptyImage', inputs: { width: 64, height: 64, batch_size: 1, color: 1 } },
  2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'small' } },
}

export async function engineMemory(): Promise<Figure[]> {
  await using engine = await openEngine({ memoryLimitBytes: LIMIT_BYTES })
  const inputs = await extremeFiles()
  const occupied = () => Math.round((process.memoryUsage.rss() + engine.memoryBytes()) / MIB)

  async function run(graph: object, limitMs: number): Promise<string> {
    const signal = AbortSignal.timeout(limitMs)
    try {
      for await (const event of engine.run(graph as never, { signal, inputs })) {
        if (event.type === 'failed') return `failed: ${event.failure.message.slice(0, 60)}`
        if (event.type === 'succeeded' || event.type === 'interrupted') return event.type
      }
    } catch (error) {
      return `refused: ${(error as Error).message.slice(0, 60)}`
    }
    return 'ended'
  }

  async function settled(start: number): Promise<number> {
    for (let waited = 0; waited < SETTLE_MS && occupied() > start + BAR_MIB; waited += 100) await sleep(100)
    return occupied()
  }

  await run(small, 60_000)
  await sleep(1_000)
  const start = occupied()
  let [most, peakOfAll] = [0, 0]
  console.error(`${'class'.padEnd(32)} ${'extreme'.padEnd(8)} before   peak  after  MiB; start ${start}`)
  for (const extreme of EXTREMES) {
    for (const classType of engine.catalog().classTypes()) {
      // An engine that was ended starts again, so that the time of the run is spent on its nodes.
      if (engine.memoryBytes() === 0) await run(small, 60_000)
      const before = occupied()
      let peak = before
      const looking = setInterval(() => {
        peak = Math.max(peak, occupied())
      }, 50)
      const outcome = await run(extremeGraph(engine.catalog(), classType, extreme), LONGEST_RUN_MS)
      peak = Math.max(peak, occupied())
      const after = await settled(start)
      clearInterval(looking)
      peakOfAll = Math.max(peakOfAll, peak)
      // What a run that succeeded leaves is kept on purpose; the next one that fails gives it back.
      if (outcome !== 'succeeded') most = Math.max(most, after - start)
      const figures = [before, peak, after].map((figure) => String(figure).padStart(6)).join(' ')
      console.error(`${classType.padEnd(32)} ${extreme.padEnd(8)} ${figures}  ${outcome}`)
    }
  }
  return [
    {
      name: 'resident memory after an extreme graph that failed or was cancelled, most above the start',
      measured: most,
      unit: 'MiB',
      bar: BAR_MIB,
      direction: 'at_most',
      detail: { startMiB: start, peakMiB: peakOfAll, limitMiB: LIMIT_BYTES / MIB },
    },
  ]
}
