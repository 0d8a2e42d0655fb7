/** The list of jobs through the whole service. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { CheckedClient, node, refused, type WireJob } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const WORKFLOW = { '1': node('FakeSource') }

describe('the list of jobs', () => {
  let service: TestApp
  let client: CheckedClient
  const engine = createFakeEngine()
  before(async () => {
    service = await startTestApp({ settings: { workers: '1' }, overrides: { engine } })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  async function page(query: string): Promise<{ jobs: WireJob[]; next_cursor?: string; has_more: boolean }> {
    const answer = await client.call(`/api/v2/jobs${query === '' ? '' : `?${query}`}`)
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.json.has_more, answer.json.next_cursor !== undefined)
    return answer.json
  }

  async function walk(query: string, onPage: () => Promise<void> = async () => {}): Promise<WireJob[]> {
    const seen: WireJob[] = []
    const cursors = new Set<string>()
    let cursor: string | undefined
    do {
      const found = await page(cursor === undefined ? query : `${query}&cursor=${encodeURIComponent(cursor)}`)
      seen.push(...found.jobs)
      cursor = found.next_cursor
      assert.ok(cursor === undefined || !cursors.has(cursor), 'a cursor came back')
      if (cursor !== undefined) cursors.add(cursor)
      await onPage()
    } while (cursor !== undefined)
    return seen
  }

  test('is empty at first', async () => {
    assert.deepEqual(await page(''), { jobs: [], truncated: false, has_more: false })
  })

  test('shows every job once, newest first, in pages of any size, also while jobs are added', async () => {
    const ids: string[] = []
    for (let index = 0; index < 12; index++) {
      ids.unshift((await client.accepted(WORKFLOW, { metadata: { walk: 'a', index: String(index) } })).id)
    }
    for (const id of ids) await client.untilStatus(id, 'succeeded')
    for (const limit of [1, 5, 6, 11, 12, 13, 100]) {
      const seen = await walk(`limit=${limit}&metadata[walk]=a`)
      assert.deepEqual(
        seen.map(({ id }) => id),
        ids,
      )
    }
    const more: string[] = []
    const add = async () => void more.push((await client.accepted(WORKFLOW, { metadata: { walk: 'a' } })).id)
    const seen = await walk('limit=5&metadata[walk]=a', add)
    assert.deepEqual(
      seen.map(({ id }) => id),
      ids,
    )
    const dates = (await walk('limit=7')).map(({ created_at }) => created_at)
    assert.deepEqual(dates, dates.toSorted().reverse())
    for (const id of more) await client.untilStatus(id, 'succeeded')
  })

  test('shows whole jobs, the same as a read of each', async () => {
    for (const job of (await page('limit=3')).jobs) assert.partialDeepStrictEqual(job, await client.job(job.id))
  })

  test('is filtered by status and labels, alone and together', async () => {
    const gate = await client.accepted(
      { '1': node('FakeGate') },
      { metadata: { project: 'x', scene: '1', take: 'a b' } },
    )
    await client.untilStatus(gate.id, 'running')
    const metadata = { project: 'x', scene: '2', take: 'a+b&c=ä;%' }
    const queued = await client.accepted(WORKFLOW, { metadata })
    const ids = async (query: string) => (await page(query)).jobs.map(({ id }) => id)
    assert.deepEqual(await ids('status=running'), [gate.id])
    assert.deepEqual(await ids('status=queued,running'), [queued.id, gate.id])
    assert.deepEqual(await ids('status=running,queued&limit=1'), [queued.id])
    assert.deepEqual(await ids('metadata[project]=x'), [queued.id, gate.id])
    assert.deepEqual(await ids('metadata%5Bproject%5D=x&metadata[scene]=1'), [gate.id])
    assert.deepEqual(await ids('metadata[project]=x&status=queued'), [queued.id])
    assert.deepEqual(await ids('metadata[project]=X'), [])
    assert.deepEqual(await ids('metadata[project]='), [])
    assert.deepEqual(await ids('metadata[take]=a%20b'), [gate.id])
    assert.deepEqual(await ids(`metadata[take]=${encodeURIComponent(metadata.take)}`), [queued.id])
    const all = Object.entries(metadata).map(([name, value]) => `metadata[${name}]=${encodeURIComponent(value)}`)
    assert.deepEqual(await ids(`${all.join('&')}&status=queued`), [queued.id])
    assert.deepEqual(await ids('status=failed,expired,canceled,canceling'), [])
    assert.deepEqual(await ids('metadata[project]=x&unknown=1'), [queued.id, gate.id])
    await client.cancel(queued.id)
    assert.deepEqual(await ids('status=canceled'), [queued.id])
    engine.openGate()
    await client.untilStatus(gate.id, 'succeeded')
    assert.deepEqual(await ids('metadata[project]=x&status=succeeded'), [gate.id])
  })

  test('refuses a filter that no job could match, or that cannot be read', async () => {
    const wrong = [
      'metadata[a]=1&metadata[b]=2&metadata[c]=3&metadata[d]=4',
      'metadata[a]=1&metadata[a]=1',
      'metadata[a]=1&metadata%5Ba%5D=2',
      'metadata[]=1',
      'metadata[a b]=1'.replace(' ', '%20'),
      `metadata[${'k'.repeat(65)}]=1`,
      'metadata[%C3%A4]=1',
      'metadata=1',
      'metadata[a=1',
      'metadata[a]=%0A',
      'metadata[a]=%E2%80%AE',
      `metadata[a]=${'v'.repeat(513)}`,
      'metadata[a]=1;metadata[b]=2',
      'limit=5;',
      'metadata[a]=%zz',
      'metadata[a]=%',
      'metadata[a]=%E4',
      'metadata[%zz]=1',
    ]
    for (const query of wrong) refused(await client.call(`/api/v2/jobs?${query}`), 400, 'invalid_metadata_filter')
  })

  test('refuses a cursor that was cut, extended or changed in any letter', async () => {
    for (let count = 0; count < 2; count++) await client.run(WORKFLOW)
    const cursor = (await page('limit=1')).next_cursor ?? ''
    assert.equal((await page(`limit=1&cursor=${cursor}`)).jobs.length, 1)
    const changed = Array.from(
      cursor,
      (letter, at) => cursor.slice(0, at) + (letter === 'A' ? 'B' : 'A') + cursor.slice(at + 1),
    )
    const cut = Array.from(cursor, (_letter, at) => cursor.slice(0, at))
    const extended = ['A', 'AA', 'AAAA', '=', '==', '.', cursor].map((more) => cursor + more)
    for (const wrong of [...changed, ...cut, ...extended])
      refused(await client.call(`/api/v2/jobs?cursor=${encodeURIComponent(wrong)}`), 400, 'invalid_cursor')
  })

  test('says the times and the deployment of each job under the names of the hosted list, too', async () => {
    const { id } = await client.accepted(WORKFLOW, { metadata: { walk: 'times' } })
    const ended = await client.untilStatus(id, 'succeeded')
    const [item] = (await page('metadata[walk]=times')).jobs as (WireJob & Record<string, unknown>)[]
    const { create_time, update_time, deployment_id, ...job } = item ?? {}
    assert.deepEqual([create_time, update_time, deployment_id], [ended.created_at, ended.completed_at, null])
    assert.deepEqual(job, ended)
  })

  test('refuses a wrong limit, status or cursor', async () => {
    const { next_cursor: cursor = '' } = await page('limit=1&metadata[walk]=a')
    assert.notEqual(cursor, '')
    const wrong = [
      ...['0', '101', '-1', '1.5', 'x', '', '1e1', '0x5', '99999999999999999999', '%201'].map(
        (limit) => `limit=${limit}`,
      ),
      ...['done', 'QUEUED', '', 'queued,', ',', 'queued,nope', 'queued%20'].map((status) => `status=${status}`),
      `cursor=${cursor}&cursor=${cursor}`,
      'limit=5&limit=5',
      'status=queued&status=queued',
    ]
    for (const query of wrong) refused(await client.call(`/api/v2/jobs?${query}`), 400, 'invalid_request')
    const wrongCursors = [
      ...['x', '', 'AAAA', `${cursor}x`, 'x'.repeat(600)].map((text) => `cursor=${text}`),
      `cursor=${cursor}`,
      `cursor=${cursor}&metadata[walk]=b`,
      `cursor=${cursor}&metadata[walk]=a&status=queued`,
    ]
    for (const query of wrongCursors) refused(await client.call(`/api/v2/jobs?${query}`), 400, 'invalid_cursor')
    assert.equal((await page(`limit=2&metadata[walk]=a&cursor=${cursor}`)).jobs.length, 2)
  })

  test('has at most 50 jobs by default', async () => {
    await Promise.all(Array.from({ length: 60 }, () => client.accepted(WORKFLOW)))
    const first = await page('')
    assert.equal(first.jobs.length, 50)
    assert.ok(first.has_more)
    assert.equal((await page('limit=100')).has_more, false)
  })
})
