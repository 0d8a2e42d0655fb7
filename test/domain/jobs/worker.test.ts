/** Which jobs a worker claims, and what it gives to the engine. */
import assert from 'node:assert/strict'
import { text as readText } from 'node:stream/consumers'
import { test } from 'node:test'
import { ACCOUNT, GATED, node, openRig, SAVE } from './job-rig.ts'
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
