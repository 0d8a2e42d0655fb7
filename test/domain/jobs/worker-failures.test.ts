/** Runs that fail, and runs whose disk is full or whose engine is lost: what is tried again, and when the job fails. */
import assert from 'node:assert/strict'
import { EngineLostError } from '../../../src/domain/engine/engine-lost-error.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { ACCOUNT, HANG, node, SAVE } from './job-rig.ts'
import { jobTest } from './job-test.ts'

jobTest('a failed node fails the job with the words of the engine and keeps earlier outputs', async (rig) => {
  rig.worker.start()
  const { id } = await rig.submit({ '1': node('FakeSave'), '2': node('FakeFail') })
  const job = await rig.untilStatus(id, 'failed')
  assert.equal(job.error?.code, 'node_execution_error')
  assert.equal(job.error?.nodeId, '2')
  assert.match(job.error?.traceback ?? '', /Traceback/)
  assert.equal(job.outputs.length, 1)
})

/** Asks for a file number first, as an engine that names its files does. */
function createNumberingEngine() {
  const engine = createFakeEngine()
  const run = engine.run.bind(engine)
  return Object.assign(engine, {
    async *run(...[asked, options]: Parameters<typeof run>): ReturnType<typeof run> {
      await asked.reserveOutputNumbers('', 'picture', 1)
      yield* run(asked, options)
    },
  })
}

let hasRoom = false
jobTest(
  'a job that finds the disk full goes back to the queue, and succeeds once there is room',
  async (rig) => {
    rig.worker.start()
    const job = await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
    assert.equal(job.attempt, 2)
    assert.equal(job.outputs.length, 1)
  },
  {
    worker: { storageRetryMs: 1 },
    storeBlob: (real) => async (source, options) => {
      if (hasRoom) return real(source, options)
      hasRoom = true
      throw new ServiceError('storage_full', 'no space')
    },
  },
)

let isTaken = false
jobTest(
  'a service that wrongly says that it knows nothing of a job costs an attempt, and not the job',
  async (rig) => {
    rig.worker.start()
    const job = await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
    assert.deepEqual([job.attempt, job.outputs.length], [2, 1])
  },
  {
    worker: { storageRetryMs: 1 },
    storeBlob: (real) => async (source, options) => {
      if (isTaken) return real(source, options)
      isTaken = true
      throw new ServiceError('not_found', 'this lease holds no such job')
    },
  },
)

jobTest(
  'a disk that is too full to reserve a file number costs attempts, like one too full for the file',
  async (rig) => {
    rig.worker.start()
    const failed = await rig.untilStatus((await rig.submit(SAVE)).id, 'failed')
    assert.equal(failed.error?.code, 'storage_full')
    assert.equal(failed.attempt, 3)
  },
  {
    worker: { storageRetryMs: 1 },
    engine: createNumberingEngine(),
    wrapStore: (store) => ({
      ...store,
      reserveOutputNumbers: async () => {
        throw new ServiceError('storage_full', 'no space')
      },
    }),
  },
)

jobTest(
  'a disk that stays full fails the job, and the next one runs',
  async (rig) => {
    rig.worker.start()
    const failed = await rig.untilStatus((await rig.submit(SAVE)).id, 'failed')
    assert.equal(failed.error?.code, 'storage_full')
    assert.equal(failed.outputs.length, 0)
    await rig.untilStatus((await rig.submit({ '1': node('FakeSource') })).id, 'succeeded')
  },
  {
    worker: { storageRetryMs: 1 },
    storeBlob: () => async () => {
      throw new ServiceError('storage_full', 'no space')
    },
  },
)

jobTest(
  'a full disk stops a run that would go on for long',
  async (rig) => {
    rig.worker.start()
    const failed = await rig.untilStatus(
      (await rig.submit({ '1': node('FakeSave'), '2': node('FakeHang') })).id,
      'failed',
    )
    assert.equal(failed.error?.code, 'storage_full')
  },
  {
    worker: { storageRetryMs: 1 },
    storeBlob: () => async () => {
      throw new ServiceError('storage_full', 'no space')
    },
  },
)

jobTest(
  'an engine that dies costs an attempt, and the third death fails the job',
  async (rig) => {
    rig.worker.start()
    const { id } = await rig.submit(SAVE)
    const job = await rig.untilStatus(id, 'failed')
    assert.equal(job.error?.code, 'engine_lost')
    assert.equal(job.attempt, 3)
    assert.deepEqual(
      rig.engine.runs.map((run) => run.attempt),
      [1, 2, 3],
    )
    assert.deepEqual(await rig.store.accounts.findUse(ACCOUNT), { running: 0, queued: 0 })
  },
  { engine: createFakeEngine({ throwAfter: 1 }) },
)

jobTest(
  'a run that ends without an outcome counts as a dead engine',
  async (rig) => {
    rig.worker.start()
    const { id } = await rig.submit(SAVE)
    assert.equal((await rig.untilStatus(id, 'failed')).error?.code, 'engine_lost')
  },
  { engine: createFakeEngine({ silentEndAfter: 2 }) },
)

jobTest('outputs of a lost attempt are replaced by those of the next one, and the job says so', async (rig) => {
  rig.worker.start()
  const { id } = await rig.submit({
    '1': node('FakeSave', { count: 2 }),
    '2': node('FakeGate'),
    '3': node('FakeSource'),
  })
  const first = await rig.until(id, (job) => job.outputs.length === 2)
  rig.engine.faults.throwAfter = 5
  rig.engine.openGate()
  await rig.engine.untilRuns(2)
  rig.engine.faults.throwAfter = null
  rig.engine.openGate()
  const job = await rig.untilStatus(id, 'succeeded')
  assert.deepEqual(job.outputs, first.outputs, 'the same bytes keep their ids')
  assert.equal(job.outputsReplaced, 2)
})

jobTest(
  'a run longer than its limit is stopped and fails',
  async (rig) => {
    rig.worker.start()
    const job = await rig.untilStatus((await rig.submit(HANG)).id, 'failed')
    assert.equal(job.error?.code, 'timeout')
  },
  { worker: { maxRunMs: 30 } },
)

jobTest(
  'an interrupt that the service did not ask for fails the job',
  async (rig) => {
    rig.worker.start()
    const job = await rig.untilStatus((await rig.submit(SAVE)).id, 'failed')
    assert.equal(job.error?.code, 'interrupted')
  },
  { engine: createFakeEngine({ interruptItself: true }) },
)

/** Is lost again and again, each time because of another run, before it gets through. */
function createInnocentEngine(losses: number) {
  const engine = createFakeEngine()
  const run = engine.run.bind(engine)
  let left = losses
  return Object.assign(engine, {
    async *run(...[asked, options]: Parameters<typeof run>): ReturnType<typeof run> {
      if (left-- > 0) throw new EngineLostError('engine_restarted', 'its thread ended', { isBlameless: true })
      yield* run(asked, options)
    },
  })
}

jobTest(
  'a job whose neighbours take the engine down is run again, and has spent no attempt',
  async (rig) => {
    rig.worker.start()
    const job = await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
    assert.equal(job.attempt, 1)
    assert.equal(job.outputs.length, 1)
  },
  { engine: createInnocentEngine(5) },
)
