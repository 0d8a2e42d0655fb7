import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Job } from '../job.ts'
import { createJobCache } from './job-reader.ts'

const OPTIONS = { maxEntries: 3, maxBytes: 1_000_000, queuedFreshMs: 500, liveFreshMs: 2000, unusedMs: 300_000 }

function job(version: number, fields: Partial<Job> = {}): Job {
  return {
    id: 'a',
    pool: 'default',
    accountId: 'local',
    status: 'running',
    priority: 0,
    metadata: {},
    createdAt: new Date(0),
    startedAt: null,
    completedAt: null,
    expiresAt: new Date(1_000_000),
    queuePosition: null,
    progress: null,
    outputs: [],
    error: null,
    outputsReused: false,
    outputsReplaced: 0,
    attempt: 1,
    version,
    ...fields,
  }
}

/** A read that answers when it is told to. */
function slowRead() {
  const { promise, resolve, reject } = Promise.withResolvers<Job | null>()
  let calls = 0
  return {
    read: () => {
      calls++
      return promise
    },
    resolve,
    reject,
    calls: () => calls,
  }
}

test('concurrent loads share one read', async () => {
  const cache = createJobCache(OPTIONS)
  const slow = slowRead()
  const both = [cache.load('a', 'local', slow.read, 0), cache.load('a', 'local', slow.read, 0)]
  slow.resolve(job(1))
  assert.deepEqual(await Promise.all(both), [job(1), job(1)])
  assert.equal(slow.calls(), 1)
  assert.equal(cache.get('a', 10)?.version, 1)
})

test('a read that began before a notice cannot bring the old version back', async () => {
  const cache = createJobCache(OPTIONS)
  const old = slowRead()
  const before = cache.load('a', 'local', old.read, 0)
  cache.notice('a', 2)
  const fresh = slowRead()
  const after = cache.load('a', 'local', fresh.read, 1)
  fresh.resolve(job(2))
  assert.equal((await after)?.version, 2, 'whoever came after the notice does not join the old read')
  old.resolve(job(1))
  assert.equal((await before)?.version, 1)
  assert.equal(cache.get('a', 2)?.version, 2)
})

test('an old answer that arrives first is not kept either', async () => {
  const cache = createJobCache(OPTIONS)
  const old = slowRead()
  const before = cache.load('a', 'local', old.read, 0)
  cache.notice('a', 2)
  old.resolve(job(1))
  await before
  assert.equal(cache.get('a', 1), undefined)
})

test('a notice of what is already known drops nothing', async () => {
  const cache = createJobCache(OPTIONS)
  await cache.load('a', 'local', async () => job(3), 0)
  cache.notice('a', 3)
  cache.notice('a', 2)
  assert.equal(cache.get('a', 1)?.version, 3)
  cache.notice('a', 4)
  assert.equal(cache.get('a', 1), undefined)
})

test('a waiting job ages within half a second, a running one within two, an ended one not at all', async () => {
  const cache = createJobCache(OPTIONS)
  await cache.load('a', 'local', async () => job(1, { status: 'queued' }), 0)
  assert.ok(cache.get('a', 499))
  assert.equal(cache.get('a', 500), undefined)
  await cache.load('a', 'local', async () => job(2), 500)
  assert.ok(cache.get('a', 2499))
  assert.equal(cache.get('a', 2500), undefined)
  await cache.load('a', 'local', async () => job(3, { status: 'succeeded' }), 2500)
  assert.ok(cache.get('a', 999_999))
})

test('a job past its retention is never served from memory', async () => {
  const cache = createJobCache(OPTIONS)
  await cache.load('a', 'local', async () => job(3, { status: 'succeeded' }), 0)
  assert.equal(cache.get('a', 1_000_000), undefined)
})

test('an unknown job and a failed read leave nothing behind', async () => {
  const cache = createJobCache(OPTIONS)
  assert.equal(await cache.load('a', 'local', async () => null, 0), null)
  const broken = () => Promise.reject(new Error('gone'))
  await assert.rejects(cache.load('a', 'local', broken, 0), /gone/)
  assert.equal(cache.size(), 0)
  assert.equal((await cache.load('a', 'local', async () => job(1), 0))?.version, 1)
})

test('reads of different accounts are not shared', async () => {
  const cache = createJobCache(OPTIONS)
  const slow = slowRead()
  const owner = cache.load('a', 'local', slow.read, 0)
  assert.equal(await cache.load('a', 'other', async () => null, 0), null)
  slow.resolve(job(1))
  assert.equal((await owner)?.version, 1)
})

test('the least recently used job goes first', async () => {
  const cache = createJobCache(OPTIONS)
  for (const id of ['a', 'b', 'c']) await cache.load(id, 'local', async () => job(1, { id }), 0)
  cache.get('a', 1)
  await cache.load('d', 'local', async () => job(1, { id: 'd' }), 0)
  assert.equal(cache.size(), 3)
  assert.ok(cache.get('a', 1) && cache.get('c', 1) && cache.get('d', 1))
  assert.equal(cache.get('b', 1), undefined)
})

test('a job that came from a write is served without a read, unless something newer is known', async () => {
  const cache = createJobCache(OPTIONS)
  cache.learn(job(2), 0)
  assert.equal(cache.get('a', 1)?.version, 2)
  cache.notice('a', 4)
  cache.learn(job(3), 1)
  assert.equal(cache.get('a', 1), undefined)
  cache.learn(job(4, { status: 'succeeded' }), 1)
  cache.learn(job(2), 1)
  assert.equal(cache.get('a', 1)?.version, 4)
})

test('many outputs count: what is kept is bounded in bytes, the least recently used goes first', () => {
  const cache = createJobCache({ ...OPTIONS, maxEntries: 100, maxBytes: 100_000 })
  const output = {
    assetId: 'x',
    nodeId: '1',
    name: 'x.png',
    type: 'image',
    contentType: 'image/png',
    sizeBytes: 1,
    hash: 'h',
  } as const
  const large = (id: string) => job(1, { id, outputs: Array.from({ length: 50 }, () => output) })
  for (const id of ['a', 'b', 'c', 'd']) cache.learn(large(id), 0)
  assert.equal(cache.size(), 2)
  assert.equal(cache.get('b', 0), undefined)
  assert.notEqual(cache.get('d', 0), undefined)
})

test('jobs past their retention are let go of', () => {
  const cache = createJobCache(OPTIONS)
  cache.learn(job(1, { id: 'old', expiresAt: new Date(1000) }), 0)
  cache.learn(job(1, { id: 'young', expiresAt: new Date(9000) }), 0)
  cache.sweep(1000)
  assert.equal(cache.size(), 1)
  assert.notEqual(cache.get('young', 1000), undefined)
})

test('jobs that were not asked for in a while are let go of', () => {
  const cache = createJobCache(OPTIONS)
  for (const id of ['asked for', 'forgotten']) cache.learn(job(3, { id, status: 'succeeded' }), 0)
  const { unusedMs } = OPTIONS
  assert.notEqual(cache.get('asked for', unusedMs - 1), undefined)
  assert.equal(cache.sweep(unusedMs), 1)
  assert.equal(cache.get('forgotten', unusedMs), undefined)
  assert.notEqual(cache.get('asked for', unusedMs), undefined)
})

test('after a gap in the notices jobs that can still change are read again, and no read from before it is kept', async () => {
  const cache = createJobCache(OPTIONS)
  cache.learn(job(1), 0)
  cache.learn(job(4, { id: 'b', status: 'succeeded' }), 0)
  const slow = slowRead()
  const reading = cache.load('c', 'local', slow.read, 0)
  cache.doubt()
  slow.resolve(job(1, { id: 'c' }))
  assert.equal((await reading)?.version, 1)
  assert.equal(cache.get('a', 1), undefined)
  assert.equal(cache.get('c', 1), undefined)
  assert.equal(cache.get('b', 1)?.version, 4)
})
