import assert from 'node:assert/strict'
import { text as readText } from 'node:stream/consumers'
import { test } from 'node:test'
import { EngineLostError } from '../../../src/domain/engine/engine-lost-error.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { ACCOUNT, GATED, HANG, node, openRig, SAVE } from './job-rig.ts'
import { jobTest } from './job-test.ts'

jobTest(
  'a trivial job needs its claim and one commit, and its bytes are readable',
  async (rig) => {
    rig.worker.start()
    const queued = await rig.submit(SAVE)
    assert.equal(queued.status, 'queued')
    const job = await rig.untilStatus(queued.id, 'succeeded')
    assert.equal(rig.commits.length, 1)
    assert.equal(job.outputs.length, 1)
    const [output] = job.outputs
    assert.deepEqual(
      { nodeId: output.nodeId, name: output.name, type: output.type, contentType: output.contentType },
      { nodeId: '9', name: 'fake_1_.png', type: 'image', contentType: 'image/png' },
    )
    assert.equal(await readText(await rig.blobs.open(output.hash)), 'picture0')
    assert.equal(output.sizeBytes, 8)
    assert.ok(job.startedAt !== null && job.completedAt !== null && job.completedAt >= job.startedAt)
    assert.deepEqual(job.progress, {
      value: 1,
      nodesDone: 1,
      nodesTotal: 1,
      currentNode: null,
      currentNodeClass: null,
      step: null,
      steps: null,
      message: null,
    })
  },
  // It ends before anything of it is due.
  { worker: { firstProgressMs: 600_000, outputLingerMs: 600_000 } },
)

jobTest(
  'outputs and progress can be read while the job runs',
  async (rig) => {
    rig.worker.start()
    const { id } = await rig.submit({ '1': node('FakeSave', { count: 3 }), '2': node('FakeGate') })
    const running = await rig.until(id, (job) => job.outputs.length === 3)
    assert.equal(running.status, 'running')
    assert.deepEqual(
      running.outputs.map((output) => output.name),
      ['fake_1_.png', 'fake_2_.png', 'fake_3_.png'],
    )
    assert.equal((await rig.until(id, (job) => job.progress !== null)).progress?.nodesTotal, 2)
    rig.engine.openGate()
    const done = await rig.untilStatus(id, 'succeeded')
    assert.deepEqual(done.outputs, running.outputs)
  },
  { worker: { firstProgressMs: 1 } },
)

jobTest(
  'outputs keep the order in which they were reported, however long each takes to store',
  async (rig) => {
    rig.worker.start()
    const { id } = await rig.submit({ '1': node('FakeSave', { count: 40 }) })
    const job = await rig.untilStatus(id, 'succeeded')
    assert.deepEqual(
      job.outputs.map((output) => output.name),
      Array.from({ length: 40 }, (_, index) => `fake_${index + 1}_.png`),
    )
  },
  {
    storeBlob: (real) => async (source, options) => {
      const stored = await real(source, options)
      // The later ones of a group overtake the earlier ones.
      if (stored.hash.charCodeAt(0) % 2 === 0) await new Promise((resolve) => setImmediate(resolve))
      return stored
    },
  },
)

jobTest('values of any kind become text outputs and none is dropped', async (rig) => {
  rig.worker.start()
  const { id } = await rig.submit({
    '1': node('FakeValue', { value: 'hello' }),
    '2': node('FakeValue', { value: 7, key: 'result' }),
    '3': node('FakeValue', { value: { deep: [1, 2] }, key: 'data' }),
    '4': node('FakeValue', { value: true, key: 'animated' }),
  })
  const job = await rig.untilStatus(id, 'succeeded')
  assert.deepEqual(
    job.outputs.map(({ name, type, contentType }) => [name, type, contentType]),
    [
      ['1_text_1.txt', 'text', 'text/plain'],
      ['2_result_1.json', 'text', 'application/json'],
      ['3_data_1.json', 'text', 'application/json'],
    ],
  )
  assert.equal(await readText(await rig.blobs.open(job.outputs[2].hash)), '{"deep":[1,2]}')
})

jobTest('a failed node fails the job with the words of the engine and keeps earlier outputs', async (rig) => {
  rig.worker.start()
  const { id } = await rig.submit({ '1': node('FakeSave'), '2': node('FakeFail') })
  const job = await rig.untilStatus(id, 'failed')
  assert.equal(job.error?.code, 'node_execution_error')
  assert.equal(job.error?.nodeId, '2')
  assert.match(job.error?.traceback ?? '', /Traceback/)
  assert.equal(job.outputs.length, 1)
})

jobTest(
  'repeated engine events give each output once',
  async (rig) => {
    rig.worker.start()
    const { id } = await rig.submit({ '1': node('FakeSave', { count: 2 }), '2': node('FakeSampler', { steps: 3 }) })
    const job = await rig.untilStatus(id, 'succeeded')
    assert.equal(job.outputs.length, 2)
  },
  { engine: createFakeEngine({ duplicateEvents: true }) },
)

jobTest(
  'cached nodes are named as reuse and still yield their outputs',
  async (rig) => {
    rig.worker.start()
    const job = await rig.untilStatus((await rig.submit(SAVE)).id, 'succeeded')
    assert.equal(job.outputsReused, true)
    assert.equal(job.outputs.length, 1)
    assert.equal(job.progress?.nodesTotal, 0)
  },
  { engine: createFakeEngine({ cached: ['9'] }) },
)

jobTest('the log keeps its tail and says so', async (rig) => {
  rig.worker.start()
  const line = `${'x'.repeat(1022)}é\n`
  const { id } = await rig.submit({
    '1': node('FakeLog', { text: line, times: 400 }),
    '2': node('FakeLog', { text: 'end' }),
  })
  assert.equal(await rig.reader.log(ACCOUNT, id), null)
  await rig.untilStatus(id, 'succeeded')
  const log = await rig.reader.log(ACCOUNT, id)
  assert.ok(log?.truncated && log.complete)
  assert.ok(Buffer.byteLength(log.text) <= 256 * 1024 && Buffer.byteLength(log.text) > 255 * 1024)
  assert.ok(log.text.endsWith('é\nend'))
})

jobTest('a job that printed nothing has no log', async (rig) => {
  rig.worker.start()
  const { id } = await rig.submit(SAVE)
  await rig.untilStatus(id, 'succeeded')
  assert.equal(await rig.reader.log(ACCOUNT, id), null)
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
  'an output that cannot be read fails the job and names no internals',
  async (rig) => {
    rig.worker.start()
    const failed = await rig.untilStatus((await rig.submit(SAVE)).id, 'failed')
    assert.equal(failed.error?.code, 'output_unreadable')
    assert.doesNotMatch(failed.error?.message ?? '', /ENOENT/)
  },
  { engine: createFakeEngine({ readError: new Error('ENOENT /secret/place') }) },
)

jobTest(
  'more outputs than allowed fail the job instead of dropping some',
  async (rig) => {
    rig.worker.start()
    const failed = await rig.untilStatus((await rig.submit({ '1': node('FakeSave', { count: 6 }) })).id, 'failed')
    assert.equal(failed.error?.code, 'too_many_outputs')
  },
  { worker: { maxOutputs: 5 } },
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

jobTest('higher priority runs first and equals run in submit order', async (rig) => {
  const ids: string[] = []
  for (const priority of [0, 5, 0, 9, 5, -3]) ids.push((await rig.submit(SAVE, { priority })).id)
  rig.worker.start()
  for (const id of ids) await rig.untilStatus(id, 'succeeded')
  assert.deepEqual(
    rig.engine.runs.map((run) => ids.indexOf(run.jobId)),
    [3, 1, 4, 0, 2, 5],
  )
})

jobTest(
  'never more jobs run than there are slots, nor than the account may have',
  async (rig) => {
    rig.worker.start()
    const ids: string[] = []
    for (let count = 0; count < 6; count++) ids.push((await rig.submit(GATED)).id)
    let most = 0
    for (let run = 1; run <= 6; run++) {
      await rig.engine.untilRuns(Math.min(6, run + 1))
      most = Math.max(most, rig.engine.activeCount(), rig.worker.stats().running)
      rig.engine.openGate()
    }
    for (const id of ids) await rig.untilStatus(id, 'succeeded')
    assert.equal(most, 2)
  },
  { worker: { workers: 4 }, maxRunning: 2 },
)

jobTest('the engine gets exact integers, the attempt and no extra data unless it was sent', async (rig) => {
  rig.worker.start()
  const seed = 18_446_744_073_709_551_615n
  await rig.untilStatus((await rig.submit({ '1': node('FakeSource', { seed }) })).id, 'succeeded')
  const [run] = rig.engine.runs
  assert.equal(run.graph.get('1')?.inputs['seed'], seed)
  assert.equal(run.extraData, null)
  assert.equal(run.attempt, 1)
  assert.equal(await run.reserveOutputNumbers('', 'a', 2), 1)
  assert.equal(await run.reserveOutputNumbers('', 'a', 1), 3)
})

jobTest('a worker that missed every notice finds its work by looking', async (rig) => {
  rig.worker.start()
  // Straight into the store, so that nobody is told.
  const now = new Date()
  const id = '01990000-0000-7000-8000-000000000001'
  await rig.store.jobs.submit(
    {
      id,
      accountId: ACCOUNT,
      pool: 'main',
      priority: 0,
      metadata: {},
      createdAt: now,
      expiresAt: new Date(now.getTime() + 60_000),
      workflow: JSON.stringify(SAVE),
      inputs: [],
      needsExtraData: false,
      sealedExtraData: null,
      needs: '',
    },
    null,
  )
  await rig.untilStatus(id, 'succeeded')
})

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

test('a worker with many free places asks for several jobs at once, and for one while it finds nothing', async () => {
  const atOnce: number[] = []
  let asked = 0
  const rig = await openRig({
    worker: { workers: 8 },
    wrapStore: (store) => ({
      ...store,
      claim(request) {
        // All that are asked for in one turn.
        if (asked === 0) {
          queueMicrotask(() => {
            atOnce.push(asked)
            asked = 0
          })
        }
        asked += 1
        return store.claim(request)
      },
    }),
  })
  try {
    const jobs = []
    for (let count = 0; count < 8; count += 1) jobs.push(await rig.submit(SAVE))
    rig.worker.start()
    for (const { id } of jobs) await rig.untilStatus(id, 'succeeded')
    assert.deepEqual(atOnce.slice(0, 4), [1, 1, 2, 4])
    assert.equal((await rig.store.accounts.findUse(ACCOUNT))?.running, 0)
  } finally {
    await rig.close()
  }
})
