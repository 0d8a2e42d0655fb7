import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EngineEvent } from '../../../engine/graph/run-event.ts'
import { silentLog } from '../../../lib/log.ts'
import { createLocalBus } from '../../../src/adapters/bus/local.ts'
import type { Job } from '../../../src/domain/jobs/job.ts'
import { createPreviews, type Preview } from '../../../src/domain/jobs/read/watch-job.ts'
import { isTerminal } from '../../../src/domain/jobs/transitions.ts'
import { ACCOUNT, GATED, node, SAVE } from './job-rig.ts'
import { jobTest } from './job-test.ts'

function createRecorder() {
  const snapshots: Job[] = []
  const previews: Preview[] = []
  const ended = Promise.withResolvers<Job>()
  return {
    snapshots,
    previews,
    ended: ended.promise,
    onSnapshot(job: Job) {
      snapshots.push(job)
      if (isTerminal(job.status)) ended.resolve(job)
    },
    onPreview: (preview: Preview) => void previews.push(preview),
    onGone() {},
  }
}

jobTest('two watchers see the job from the queue to its end, with its outputs, in order', async (rig) => {
  const { id } = await rig.submit({ '1': node('FakeSampler', { steps: 4 }), '9': node('FakeSave', { count: 2 }) })
  const recorders = [createRecorder(), createRecorder()]
  const watches = await Promise.all(recorders.map((recorder) => rig.watching.watchJob(ACCOUNT, id, recorder)))
  assert.deepEqual(
    watches.map((watch) => watch.job.status),
    ['queued', 'queued'],
  )
  rig.worker.start()
  for (const recorder of recorders) {
    const end = await recorder.ended
    assert.equal(end.status, 'succeeded')
    assert.equal(end.outputs.length, 2)
    const versions = recorder.snapshots.map((job) => job.version)
    assert.deepEqual(
      versions,
      versions.toSorted((a, b) => a - b),
    )
    const values = recorder.snapshots.map((job) => job.progress?.value ?? 0)
    assert.deepEqual(
      values,
      values.toSorted((a, b) => a - b),
    )
  }
  for (const watch of watches) watch.stop()
  assert.equal(rig.watching.watchedCount(), 0)
})

jobTest('a position in the queue is kept up to date without any notice for the job', async (rig) => {
  const first = await rig.submit(SAVE)
  const { id } = await rig.submit(SAVE)
  const moved = Promise.withResolvers<Job>()
  const watch = await rig.watching.watchJob(ACCOUNT, id, {
    onSnapshot: moved.resolve,
    onPreview() {},
    onGone() {},
  })
  assert.equal(watch.job.queuePosition, 2)
  await rig.cancelJob(ACCOUNT, first.id)
  assert.equal((await moved.promise).queuePosition, 1)
  watch.stop()
})

jobTest('a watcher that comes after the end gets the final snapshot', async (rig) => {
  rig.worker.start()
  const { id } = await rig.submit(SAVE)
  await rig.untilStatus(id, 'succeeded')
  const watch = await rig.watching.watchJob(ACCOUNT, id, createRecorder())
  assert.deepEqual([watch.job.status, watch.job.outputs.length, watch.preview], ['succeeded', 1, null])
  watch.stop()
})

jobTest(
  'a watcher that connects gets the newest preview, which is forgotten at the end',
  async (rig) => {
    rig.worker.start()
    const { id } = await rig.submit({ '1': node('FakeSampler', { steps: 4 }), ...{ '2': GATED['1'] } })
    await rig.until(id, (job) => job.progress?.currentNode === '2')
    const recorder = createRecorder()
    const watch = await rig.watching.watchJob(ACCOUNT, id, recorder)
    assert.equal(Buffer.from(watch.preview?.bytes ?? []).toString(), 'step 4')
    assert.deepEqual([watch.preview?.nodeId, watch.preview?.contentType], ['1', 'image/png'])
    rig.engine.openGate()
    await recorder.ended
    watch.stop()
    const late = await rig.watching.watchJob(ACCOUNT, id, createRecorder())
    assert.equal(late.preview, null)
    late.stop()
  },
  { worker: { firstProgressMs: 1, progressEveryMs: 5 } },
)

jobTest('a foreign, malformed or unknown id cannot be watched', async (rig) => {
  const { id } = await rig.submit(SAVE)
  for (const [account, jobId] of [
    ['other', id],
    [ACCOUNT, 'nonsense'],
    [ACCOUNT, '01990000-0000-7000-8000-00000000ffff'],
  ]) {
    await assert.rejects(rig.watching.watchJob(account, jobId, createRecorder()), /no job/)
  }
  assert.equal(rig.watching.watchedCount(), 0)
})

test('whoever listens gets every preview of its job, and the newest is kept until the job ends', () => {
  const bus = createLocalBus<EngineEvent>({ log: silentLog })
  using previews = createPreviews({ bus })
  const seen: string[] = []
  const stop = previews.listen('a', (preview) => seen.push(Buffer.from(preview.bytes).toString()))
  const show = (jobId: string, text: string) =>
    bus.publishLive({
      jobId,
      accountId: ACCOUNT,
      event: {
        type: 'preview',
        nodeId: '1',
        classType: 'X',
        displayNodeId: '1',
        parentNodeId: null,
        contentType: 'image/png',
        bytes: Buffer.from(text),
      },
    })
  for (const text of ['1', '2', '3']) show('a', text)
  show('b', 'other')
  assert.deepEqual(seen, ['1', '2', '3'])
  stop()
  show('a', '4')
  assert.deepEqual(seen, ['1', '2', '3'])
  assert.equal(Buffer.from(previews.newest('a')?.bytes ?? []).toString(), '4')
  bus.publishLive({ jobId: 'a', accountId: ACCOUNT, event: { type: 'succeeded' } })
  assert.equal(previews.newest('a'), null)
})
