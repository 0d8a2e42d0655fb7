/** When the files of a run may go from the engine that made them. */
import assert from 'node:assert/strict'
import type { EngineEvent, ReportedItem } from '../../../engine/graph/run-event.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createFakeEngine, type FakeEngine } from '../../support/engines/fake-engine.ts'
import { SAVE } from './job-rig.ts'
import { jobTest } from './job-test.ts'

/** Its files are empty once they were released, as those of a server that can only overwrite what it is to remove. */
function createEmptyingEngine(told: string[]): FakeEngine {
  const engine = createFakeEngine()
  const run = engine.run.bind(engine)
  function emptying(item: ReportedItem): ReportedItem {
    if (item.kind !== 'file') return item
    let isReleased = false
    return {
      ...item,
      read() {
        told.push('read')
        return isReleased ? (async function* () {})() : item.read()
      },
      release() {
        told.push('released')
        isReleased = true
      },
    }
  }
  function withEmptying(event: EngineEvent): EngineEvent {
    if (event.type !== 'node_report') return event
    const report = Object.entries(event.report).map(([key, items]) => [key, items.map(emptying)] as const)
    return { ...event, report: Object.fromEntries(report) }
  }
  return Object.assign(engine, {
    async *run(...asked: Parameters<typeof run>): ReturnType<typeof run> {
      for await (const event of run(...asked)) yield withEmptying(event)
    },
  })
}

const told: string[] = []
let outages = 2
jobTest(
  'bytes that were read while the storage was away are read again, and released when they are kept',
  async (rig) => {
    rig.worker.start()
    const job = await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
    assert.equal(job.attempt, 1)
    assert.ok((job.outputs[0]?.sizeBytes ?? 0) > 0)
    assert.deepEqual(told, ['read', 'read', 'read', 'released'])
  },
  {
    engine: createEmptyingEngine(told),
    storeBlob: (real) => async (source, options) => {
      if (outages-- <= 0) return real(source, options)
      for await (const _ of source);
      throw new ServiceError('store_unavailable', 'the bucket answers 503')
    },
  },
)
