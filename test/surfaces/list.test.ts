/** GET /api/v2/jobs: filters, pages and what is refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeJob } from '../support/app/memory-jobs.ts'
import { startSurface, type TestSurface } from '../support/app/start-surface.ts'
import { call } from '../support/clients/call.ts'
import { checkAgainstSpec } from '../support/clients/check-against-spec.ts'

const JOBS = '/api/v2/jobs'

function addJobs(service: TestSurface, count: number): string[] {
  const ids = Array.from({ length: count }, (_, at) => `0199b3f4-1d2e-7a3b-8c4d-${String(at).padStart(12, '0')}`)
  for (const id of ids) service.jobs.put(makeJob({ id }))
  return ids.reverse()
}

test('a walk over the pages meets every job once, newest first, and the last page has no cursor', async () => {
  await using service = await startSurface()
  const ids = addJobs(service, 7)
  const seen: string[] = []
  const cursors = new Set<string>()
  let cursor = ''
  for (;;) {
    const answer = await call(service.url, `${JOBS}?limit=3${cursor}`)
    checkAgainstSpec('GET', JOBS, 200, answer.json)
    seen.push(...answer.json.jobs.map((job: { id: string }) => job.id))
    assert.equal(answer.json.has_more, 'next_cursor' in answer.json)
    if (!answer.json.has_more) break
    assert.ok(!cursors.has(answer.json.next_cursor), 'a cursor never repeats')
    cursors.add(answer.json.next_cursor)
    cursor = `&cursor=${answer.json.next_cursor}`
  }
  assert.deepEqual(seen, ids)
})

test('an item of a list is the very job that a read gives', async () => {
  await using service = await startSurface()
  const [id] = addJobs(service, 1)
  const { json } = await call(service.url, JOBS)
  assert.partialDeepStrictEqual(json.jobs[0], (await call(service.url, `${JOBS}/${id}`)).json)
})

test('filters reach the domain decoded, alone and combined', async () => {
  await using service = await startSurface()
  await call(service.url, JOBS)
  await call(service.url, `${JOBS}?status=running,queued,running&limit=100`)
  await call(
    service.url,
    `${JOBS}?metadata[a]=x+y%26&metadata%5Bb.c%5D=%C3%A9&status=failed&other=1&metadata[__proto__]=z`,
  )
  assert.deepEqual(service.jobs.listed, [
    { pool: null, batchId: null, statuses: null, metadata: {}, limit: 50, cursor: null },
    { pool: null, batchId: null, statuses: ['queued', 'running'], metadata: {}, limit: 100, cursor: null },
    {
      pool: null,
      batchId: null,
      statuses: ['failed'],
      metadata: Object.fromEntries([
        ['a', 'x y&'],
        ['b.c', 'é'],
        ['__proto__', 'z'],
      ]),
      limit: 50,
      cursor: null,
    },
  ])
})

test('the refusals of invalid_metadata_filter', async () => {
  await using service = await startSurface()
  const refused = [
    'metadata[a]=1&metadata[b]=1&metadata[c]=1&metadata[d]=1',
    'metadata[a]=1&metadata[a]=1',
    'metadata[a%20b]=1',
    'metadata[]=1',
    'metadata[a=1',
    'metadata=1',
    'metadata[a][b]=1',
    `metadata[${'k'.repeat(65)}]=1`,
    'metadata[a]=%00',
    'metadata[a]=%E2%80%AE',
    `metadata[a]=${'x'.repeat(513)}`,
    'metadata[a]=1;metadata[b]=2',
    'metadata[a]=%',
    'metadata[a]=%zz',
    'metadata[a]=%ff',
    '%=1',
  ]
  for (const query of refused) {
    const answer = await call(service.url, `${JOBS}?${query}`)
    assert.deepEqual([answer.status, answer.json.error.code], [400, 'invalid_metadata_filter'], query)
    checkAgainstSpec('GET', JOBS, 400, answer.json)
  }
  assert.equal(service.jobs.listed.length, 0)
})

test('a bad limit or status is invalid_request, a bad cursor invalid_cursor', async () => {
  await using service = await startSurface()
  addJobs(service, 3)
  const { next_cursor } = (await call(service.url, `${JOBS}?limit=1&status=running`)).json
  const refused = [
    ...['0', '101', '-1', '1.5', '1e1', '', 'x', '%2B5', '99999999999999999999'].map((limit) => `limit=${limit}`),
    ...['', 'nope', 'queued,nope', 'Queued', 'queued,'].map((status) => `status=${status}`),
    ...['', 'x', 'bm9wZQ', 'W10', `${'A'.repeat(600)}`].map((cursor) => `cursor=${cursor}`),
    `cursor=${next_cursor}`,
    `cursor=${next_cursor}&status=failed`,
    `cursor=${next_cursor}&status=running&metadata[a]=1`,
    'limit=1&limit=2',
    'status=queued&status=running',
  ]
  for (const query of refused) {
    const answer = await call(service.url, `${JOBS}?${query}`)
    assert.deepEqual(
      [answer.status, answer.json.error.code],
      [400, query.startsWith('cursor') ? 'invalid_cursor' : 'invalid_request'],
      query,
    )
  }
  const other = await call(service.url, `${JOBS}?limit=2&status=running&cursor=${next_cursor}`)
  assert.equal(other.status, 200, 'another limit is no other filter')
})
