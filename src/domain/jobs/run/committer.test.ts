import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../lib/log.ts'
import { type Refusal, ServiceError } from '../../errors.ts'
import type { Output } from '../job.ts'
import type { RunChange } from '../job-store.ts'
import { type CommitPace, Committer } from './committer.ts'

const PROGRESS = {
  ...{ value: 1, nodesDone: 1, nodesTotal: 1, currentNode: null, currentNodeClass: null },
  ...{ step: null, steps: null, message: null },
}
const SUCCEEDED = { status: 'succeeded', from: ['running'], at: new Date(0), error: null, record: null } as const

const OUTPUT: Output = {
  ...{ assetId: 'a', nodeId: '1', name: 'a.txt', type: 'text', contentType: 'text/plain', sizeBytes: 1, hash: 'h' },
}

function openCommitter(refusals: readonly Refusal[] = [], pace: Partial<CommitPace> = {}, holdsOutputs = false) {
  const sent: RunChange[] = []
  const committer = new Committer({
    pace: { progressEveryMs: 1000, firstProgressMs: 1000, outputLingerMs: 1000, ...pace },
    log: silentLog,
    holdsOutputs,
    async send(change) {
      sent.push(change)
      const refusal = refusals[sent.length - 1]
      if (refusal !== undefined) throw new ServiceError(refusal, 'no such receipt')
      return { outcome: 'committed', version: 3, status: change.finish?.status ?? 'running' }
    },
    readState: () => ({ progress: PROGRESS, outputsReused: false }),
    onOutcome() {},
    mayRetry: () => true,
  })
  return { committer, sent }
}

test('an end that is refused for good becomes a failure without results, which says why', async () => {
  const { committer, sent } = openCommitter(['forbidden'])
  const { outcome, finish } = await committer.finish(SUCCEEDED, null)
  assert.equal(outcome.outcome, 'committed')
  assert.deepEqual([finish.status, finish.error?.code], ['failed', 'output_unavailable'])
  assert.match(finish.error?.message ?? '', /no such receipt/)
  assert.deepEqual(sent[1], { finish })
})

test('a failure that is refused for good is lost when not even its bare end is taken', async () => {
  const error = { code: 'x', message: 'broke', nodeId: null, classType: null, traceback: 'long' }
  const { committer, sent } = openCommitter(['payload_too_large', 'payload_too_large'])
  const { outcome } = await committer.finish({ ...SUCCEEDED, status: 'failed', error }, null)
  assert.deepEqual(outcome, { outcome: 'lost' })
  assert.deepEqual(sent[1]?.finish?.error, { ...error, traceback: null })
  assert.equal(sent.length, 2)
})

test('what a run made is written with its end once that is expected', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const { committer, sent } = openCommitter([], { firstProgressMs: 50, outputLingerMs: 10 })
  committer.progressed()
  committer.addOutput(OUTPUT)
  committer.expectEnd()
  context.mock.timers.tick(100)
  assert.equal(sent.length, 0)
  await committer.finish(SUCCEEDED, null)
  assert.deepEqual([sent.length, sent[0]?.outputs], [1, [OUTPUT]])
})

test('an end that takes long is not waited for', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const { committer, sent } = openCommitter([], { outputLingerMs: 10 })
  committer.expectEnd()
  committer.addOutput(OUTPUT)
  context.mock.timers.tick(1100)
  assert.deepEqual(sent[0]?.outputs, [OUTPUT])
  committer.stop()
})

test('an end that finds nobody is written again as it was', async () => {
  const { committer, sent } = openCommitter(['store_unavailable'])
  const { finish } = await committer.finish(SUCCEEDED, null)
  assert.equal(finish, SUCCEEDED)
  assert.deepEqual(sent[0], sent[1])
})

test('outputs that are held are written with the end and not before it, as they were settled', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const { committer, sent } = openCommitter([], { firstProgressMs: 50, outputLingerMs: 10 }, true)
  committer.addOutput(OUTPUT)
  context.mock.timers.tick(1000)
  assert.deepEqual([sent, committer.waiting], [[], [OUTPUT]])
  committer.progressed()
  context.mock.timers.tick(1000)
  assert.deepEqual([...sent], [{ progress: PROGRESS }])
  await committer.finish(SUCCEEDED, null, (change) => ({ ...change, outputs: [...(change.outputs ?? []), OUTPUT] }))
  assert.deepEqual(sent[1]?.outputs, [OUTPUT, OUTPUT])
})
