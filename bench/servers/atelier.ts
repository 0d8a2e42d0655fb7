/** The whole service under measurement, with the switches that the scenarios need. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readGraph } from '../../engine/graph/graph-json.ts'
import type { JsonValue } from '../../lib/json/lossless-json.ts'
import { silentLog } from '../../lib/log.ts'
import { startApp } from '../../src/app.ts'
import { loadConfig } from '../../src/config/config.ts'
import { ENV } from '../../src/config/env.ts'
import type { Engine } from '../../src/domain/engine/engine-port.ts'
import { readSettings, reportToParent } from '../kit/server-child.ts'
import { countNotifies, countStatements } from '../kit/server-cost.ts'
import { startTurnMeter, type TurnMeter } from '../kit/turn-meter.ts'
import { freshWorkflow } from '../kit/workflows.ts'
import { createHeldEngine, type HeldEngine, type SamplePace } from './held-engine.ts'
import { createInstantEngine } from './instant-engine.ts'

interface Settings {
  /** `held` does what the scenario says, `instant` takes no time: both leave the cost of the service itself. */
  readonly engine?: 'held' | 'instant'
  /** `normal` shows what the syncs of `full` cost. */
  readonly synchronous?: 'full' | 'normal'
  readonly [flag: string]: unknown
}

const { engine: engineKind, database, synchronous = 'full', ...flags } = readSettings<Settings>()
const dataDir = mkdtempSync(join(tmpdir(), 'atelier-bench-'))
const held = engineKind === 'held' ? createHeldEngine() : null
const texts = Object.fromEntries(Object.entries(flags).map(([name, value]) => [name, String(value)]))
// The address of a database holds a password, which no command line may hold.
const env = database === undefined ? {} : { [ENV.database]: String(database) }
const { config, secrets } = loadConfig({ flags: { port: '0', dataDir, ...texts }, env, cwd: dataDir })
const instant = engineKind === 'instant' ? createInstantEngine() : null
const override = held ?? instant
const overrides = override === null ? {} : { engine: override }
const { store } = config
const measured = { ...config, store: store.kind === 'sqlite' ? { ...store, synchronous } : store }
const app = await startApp(measured, secrets, { log: silentLog, version: 'bench', overrides })

/** Milliseconds that the engine alone needs for graphs like those that were submitted. */
async function timeEngine(engine: Engine, { first, count }: { first: number; count: number }): Promise<number[]> {
  const times: number[] = []
  for (let index = first; index < first + count; index++) {
    const startedAt = performance.now()
    const graph = readGraph(freshWorkflow(index) as JsonValue)
    const run = {
      jobId: `bench-${index}`,
      accountId: 'local',
      attempt: 1,
      claimId: 'bench',
      graph,
      inputs: new Map(),
      extraData: null,
      reserveOutputNumbers: async () => index,
    }
    for await (const _event of engine.run(run, { signal: new AbortController().signal }));
    times.push(performance.now() - startedAt)
  }
  return times
}

let turns: TurnMeter | null = null

reportToParent(app.url, {
  handle(command, argument) {
    if (command === 'longestTurnMs') {
      turns ??= startTurnMeter()
      return turns.takeLongestMs()
    }
    if (command === 'sqlCounts') return { statements: countStatements(), notifies: countNotifies() }
    if (command === 'runEngine') return timeEngine(app.engine as Engine, argument as { first: number; count: number })
    if (command === 'waitForRun') return (held as HeldEngine).started.then(() => true)
    if (command === 'sample') return (held as HeldEngine).sample(argument as SamplePace).then(() => true)
    ;(held as HeldEngine).progress(argument as { value: number; max: number })
    return true
  },
  async close() {
    held?.release()
    await app[Symbol.asyncDispose]()
    rmSync(dataDir, { recursive: true, force: true })
  },
})
