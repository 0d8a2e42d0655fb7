import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createSubmit } from '../../../src/domain/jobs/submit/submit-job.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { ACCOUNT, openRig, RETENTION_MS, type Rig, SAVE } from './job-rig.ts'

const clock = createFixedClock()
let rig: Rig
before(async () => {
  rig = await openRig({ clock, maxQueued: 12 })
})
after(() => rig.close())

function refusedWith(refusal: string, details?: object) {
  return (error: unknown) => {
    assert.ok(error instanceof ServiceError, String(error))
    assert.equal(error.refusal, refusal)
    if (details !== undefined) assert.deepEqual(error.details, details)
    return true
  }
}

async function cancelAll() {
  for (const job of (await rig.listJobs(ACCOUNT, { statuses: ['queued'], metadata: {}, limit: 100, cursor: null }))
    .jobs) {
    await rig.cancelJob(ACCOUNT, job.id)
  }
}

test('a submitted job is queued, labelled and dated', async () => {
  const job = await rig.submit(SAVE, { metadata: { scene: '12' }, priority: -7 })
  assert.equal(job.status, 'queued')
  assert.equal(job.queuePosition, 1)
  assert.deepEqual([job.metadata, job.priority], [{ scene: '12' }, -7])
  assert.deepEqual(job.expiresAt, new Date(clock.now().getTime() + RETENTION_MS))
  assert.deepEqual(await rig.reader.find(ACCOUNT, job.id), job)
  await cancelAll()
})

test('a used key is refused for a day with the id of its job, and is free afterwards', async () => {
  const first = await rig.submit(SAVE, { idempotencyKey: 'k' })
  await assert.rejects(
    rig.submit(SAVE, { idempotencyKey: 'k' }),
    refusedWith('idempotency_key_reuse', { jobId: first.id }),
  )
  clock.advance(86_400_000)
  assert.notEqual((await rig.submit(SAVE, { idempotencyKey: 'k' })).id, first.id)
  await cancelAll()
})

test('of two simultaneous submits with one key exactly one is accepted', async () => {
  const results = await Promise.allSettled([
    rig.submit(SAVE, { idempotencyKey: 'twice' }),
    rig.submit(SAVE, { idempotencyKey: 'twice' }),
  ])
  assert.deepEqual(results.map((result) => result.status).toSorted(), ['fulfilled', 'rejected'])
  await cancelAll()
})

test('a full queue is refused with a wait, and its key stays free', async () => {
  const jobs = []
  for (let count = 0; count < 12; count++) jobs.push(await rig.submit(SAVE))
  await assert.rejects(rig.submit(SAVE, { idempotencyKey: 'later' }), (error) => {
    refusedWith('queue_full')(error)
    return error instanceof ServiceError && error.retryAfterSeconds === 3
  })
  await rig.cancelJob(ACCOUNT, jobs[0].id)
  assert.equal((await rig.submit(SAVE, { idempotencyKey: 'later' })).status, 'queued')
  await cancelAll()
})

test('a priority outside the range is refused and named', async () => {
  for (const priority of [1_000_001, -1_000_001, 0.5, Number.NaN]) {
    await assert.rejects(rig.submit(SAVE, { priority }), refusedWith('invalid_field', { field: 'priority' }))
  }
})

test('a refused workflow consumes no key and leaves no job', async () => {
  const submit = createSubmit({
    store: rig.store.jobs,
    bus: rig.bus,
    clock,
    newJobId: () => '01990000-0000-7000-8000-000000000001',
    prepareWorkflow: () => Promise.reject(new ServiceError('invalid_workflow', 'bad')),
    extraData: rig.extraData,
    pool: 'main',
    retentionMs: RETENTION_MS,
    retryAfterSeconds: () => 1,
  })
  const request = {
    accountId: ACCOUNT,
    scopes: null,
    workflow: {},
    extraData: null,
    metadata: {},
    priority: 0,
    idempotencyKey: 'fresh',
  }
  await assert.rejects(submit(request), refusedWith('invalid_workflow'))
  assert.equal(await rig.store.keys.findKey(ACCOUNT, 'fresh', clock.now()), null)
})

test('a closing service takes no job', async () => {
  const submit = createSubmit({
    store: rig.store.jobs,
    bus: rig.bus,
    clock,
    newJobId: () => '01990000-0000-7000-8000-000000000001',
    prepareWorkflow: async () => ({ text: '{}', graph: new Map(), inputs: [], needs: '' }),
    extraData: rig.extraData,
    pool: 'main',
    retentionMs: RETENTION_MS,
    retryAfterSeconds: () => 1,
    isClosing: () => true,
  })
  const fields = { workflow: {}, extraData: null, metadata: {}, priority: 0, idempotencyKey: null }
  const request = { accountId: ACCOUNT, scopes: null, ...fields }
  await assert.rejects(submit(request), refusedWith('shutting_down'))
})

test('unknown, foreign and malformed ids are not found, also when the job is in memory', async () => {
  const { id } = await rig.submit(SAVE)
  await rig.reader.find(ACCOUNT, id)
  assert.equal(rig.reader.peek(ACCOUNT, id)?.id, id)
  assert.equal(rig.reader.peek('other', id), undefined)
  for (const [account, jobId] of [
    ['other', id],
    [ACCOUNT, '01990000-0000-7000-8000-00000000ffff'],
    [ACCOUNT, '..%2F..%2Ffree'],
    [ACCOUNT, id.toUpperCase()],
  ]) {
    await assert.rejects(rig.reader.find(account, jobId), refusedWith('not_found'))
    await assert.rejects(rig.reader.workflow(account, jobId), refusedWith('not_found'))
    await assert.rejects(rig.reader.log(account, jobId), refusedWith('not_found'))
  }
  assert.equal(await rig.reader.workflow(ACCOUNT, id), JSON.stringify(SAVE))
  assert.equal(await rig.reader.log(ACCOUNT, id), null)
  await cancelAll()
})

test('a change is seen by the next read', async () => {
  const { id } = await rig.submit(SAVE)
  assert.equal((await rig.reader.find(ACCOUNT, id)).status, 'queued')
  await rig.cancelJob(ACCOUNT, id)
  assert.equal((await rig.reader.find(ACCOUNT, id)).status, 'canceled')
  assert.equal(rig.reader.peek(ACCOUNT, id)?.status, 'canceled')
})

test('pages show every job once, newest first, and the last page has no next', async () => {
  await cancelAll()
  const ids: string[] = []
  for (let count = 0; count < 7; count++) {
    ids.unshift((await rig.submit(SAVE, { metadata: { walk: 'x' } })).id)
    clock.advance(count % 2)
  }
  const seen: string[] = []
  let cursor = null
  do {
    const page = await rig.listJobs(ACCOUNT, { statuses: ['queued'], metadata: { walk: 'x' }, limit: 3, cursor })
    seen.push(...page.jobs.map((job) => job.id))
    cursor = page.next
    if (seen.length === 3) await rig.submit(SAVE, { metadata: { walk: 'x' } })
  } while (cursor !== null)
  assert.deepEqual(seen, ids.toSorted().reverse())
  assert.deepEqual(await rig.listJobs('other', { statuses: null, metadata: {}, limit: 3, cursor: null }), {
    jobs: [],
    next: null,
  })
})

test('an idle worker asks for a job while that is still being recorded', async () => {
  const steps: string[] = []
  const looked = Promise.withResolvers<void>()
  const idle = await openRig({
    worker: { pollEveryMs: 60_000 },
    wrapStore: (store) => ({
      ...store,
      async submit(...all) {
        steps.push('recording')
        const outcome = await store.submit(...all)
        steps.push('recorded')
        return outcome
      },
      async claim(request) {
        steps.push('asked')
        const claim = await store.claim(request)
        steps.push(claim === null ? 'nothing' : 'taken')
        looked.resolve()
        return claim
      },
    }),
  })
  try {
    idle.worker.start()
    await looked.promise
    steps.length = 0
    const { id } = await idle.submit(SAVE)
    await idle.untilStatus(id, 'succeeded')
    assert.deepEqual(steps.slice(0, 2), ['recording', 'asked'])
    // Both are answered with one commit.
    assert.deepEqual(steps.slice(2, 4).toSorted(), ['recorded', 'taken'])
  } finally {
    await idle.close()
  }
})
