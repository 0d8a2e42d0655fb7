/** What a run reports becomes outputs, progress and a log of its job. */
import assert from 'node:assert/strict'
import { text as readText } from 'node:stream/consumers'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { ACCOUNT, node, SAVE } from './job-rig.ts'
import { jobTest } from './job-test.ts'

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
