/**
 * A fake engine that can come and go: killed in the middle of runs, back with a new process, with weights of its own. What its
 * nodes do is told by fake-engine.ts; beside those it has FakeCheckpoint, which picks weights from a list.
 */

import type { NodeDefinition } from '../../../engine/graph/node-catalog.ts'
import { catalogOf, type ObjectInfo } from '../../../engine/graph/object-info.ts'
import type { EngineEvent } from '../../../engine/graph/run-event.ts'
import type { EngineRun, RunOptions } from '../../../src/domain/engine/engine-port.ts'
import type { EngineHealth, FleetEngine } from '../../../src/domain/engine/fleet/fleet-engine.ts'
import { fakeCatalog } from './fake-catalog.ts'
import { createFakeEngine, type FakeEngine, type FakeFaults } from './fake-engine.ts'

export interface FakeFleetEngineOptions {
  readonly id: string
  readonly concurrency?: number
  readonly weights?: readonly string[]
  /** Classes of the fake catalog that it does not have. */
  readonly without?: readonly string[]
  readonly state?: EngineHealth['state']
  readonly faults?: Partial<FakeFaults>
  /** Makes it one whose process is ours. */
  readonly isSupervised?: boolean
  readonly canFree?: boolean
}

export interface FakeFleetEngine extends FleetEngine {
  readonly fake: FakeEngine
  /** Weights of the runs in the order in which it began them. */
  readonly ran: readonly { readonly jobId: string; readonly attempt: number; readonly weights: string | null }[]
  /** The next run fails with this code. */
  failNext(code: string): void
  kill(): void
  revive(): void
  install(weights: readonly string[]): void
  /** What its process is said to occupy, and since when it runs, until it is recycled. */
  wear(signs: Partial<Pick<EngineHealth, 'memoryBytes' | 'startedAt'>>): void
  readonly freed: number
  readonly recycled: readonly string[]
  /** Runs that ended by themselves, whether or not anybody listened. */
  readonly completed: readonly string[]
}

function checkpointClass(weights: readonly string[]): NodeDefinition {
  const base = fakeCatalog.find('FakeSource') as NodeDefinition
  return {
    ...base,
    input: { required: { ckpt_name: [weights, {}] } },
    input_order: { required: ['ckpt_name'] },
    name: 'FakeCheckpoint',
    display_name: 'FakeCheckpoint',
  }
}

function infoOf(weights: readonly string[], without: readonly string[]): ObjectInfo {
  const classes = fakeCatalog.classTypes().filter((classType) => !without.includes(classType))
  return {
    ...Object.fromEntries(classes.map((classType) => [classType, fakeCatalog.find(classType) as NodeDefinition])),
    FakeCheckpoint: checkpointClass(weights),
  }
}

export function createFakeFleetEngine(options: FakeFleetEngineOptions): FakeFleetEngine {
  const { id, concurrency = 1, weights = [], without = [], isSupervised = false, canFree = false } = options
  const fake = createFakeEngine(options.faults)
  const listeners = new Set<() => void>()
  const ran: { jobId: string; attempt: number; weights: string | null }[] = []
  const completed: string[] = []
  const recycled: string[] = []
  const failures: string[] = []
  let state = options.state ?? 'ready'
  let incarnation = 1
  let info: ObjectInfo | null = state === 'ready' ? infoOf(weights, without) : null
  let catalog = catalogOf(info ?? {})
  let freed = 0
  let signs: Partial<EngineHealth> = {}
  let death = Promise.withResolvers<never>()
  death.promise.catch(() => {})

  function tell(): void {
    for (const listener of listeners) listener()
  }

  function learn(installed: readonly string[]): void {
    info = infoOf(installed, without)
    catalog = catalogOf(info)
  }

  function revive(): void {
    state = 'ready'
    incarnation += 1
    if (info === null) learn(weights)
    death = Promise.withResolvers<never>()
    death.promise.catch(() => {})
    tell()
  }

  function kill(): void {
    state = 'lost'
    death.reject(new Error('the connection was reset'))
    tell()
  }

  async function* run(run: EngineRun, { signal }: RunOptions): AsyncGenerator<EngineEvent> {
    if (state !== 'ready') throw new Error('connection refused')
    const { promise: died } = death
    const picked = [...run.graph.values()].find(({ classType }) => classType === 'FakeCheckpoint')
    ran.push({ jobId: run.jobId, attempt: run.attempt, weights: (picked?.inputs['ckpt_name'] as string) ?? null })
    const code = failures.shift()
    if (code !== undefined) {
      yield { type: 'started', nodesTotal: 1 }
      yield {
        type: 'failed',
        failure: { code, message: code, nodeId: null, classType: null, traceback: null, exceptionType: code },
      }
      return
    }
    const graph = new Map([...run.graph].filter(([, { classType }]) => classType !== 'FakeCheckpoint'))
    const events = fake.run({ ...run, graph }, { signal })[Symbol.asyncIterator]()
    while (true) {
      const step = await Promise.race([events.next(), died])
      if (step.done) break
      if (step.value.type === 'succeeded') {
        completed.push(`${run.jobId}/${run.attempt}`)
      }
      yield step.value
    }
  }

  return {
    id,
    concurrency,
    fake,
    ran,
    completed,
    recycled,
    get freed() {
      return freed
    },
    catalog: () => catalog,
    objectInfo: () => info,
    run,
    health: () => ({
      state,
      incarnation,
      lastError: null,
      unfit: null,
      version: 'fake',
      reconnects: 0,
      memoryBytes: null,
      startedAt: null,
      ...signs,
    }),
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    kill,
    revive,
    failNext: (code) => void failures.push(code),
    install(installed) {
      learn(installed)
      tell()
    },
    wear(told) {
      signs = told
      tell()
    },
    ...(canFree && {
      async free() {
        freed += 1
      },
    }),
    ...(isSupervised && {
      async recycle(reason: string) {
        recycled.push(reason)
        signs = {}
        kill()
        revive()
      },
    }),
    async [Symbol.asyncDispose]() {
      fake.release()
    },
  }
}
