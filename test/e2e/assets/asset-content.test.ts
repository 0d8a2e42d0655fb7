/** The bytes of assets through the whole service: ranges, types that a browser would run, loss, removal and age. */
import assert from 'node:assert/strict'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import type { Answer } from '../../support/clients/call.ts'
import { CheckedClient, refused } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const DAY_MS = 86_400_000
let aheadMs = 0
const clock = { now: () => new Date(Date.now() + aheadMs) }

let service: TestApp
let client: CheckedClient
before(async () => {
  service = await startTestApp({ overrides: { engine: createFakeEngine(), clock } })
  client = new CheckedClient(service.url)
})
after(() => service[Symbol.asyncDispose]())

const content = (id: string, headers: Record<string, string> = {}) =>
  client.call(`/api/v2/assets/${id}/content`, { headers })
const fromHash = (body: object) =>
  client.call('/api/v2/assets/from-hash', { method: 'POST', body: JSON.stringify(body) })
const remove = (id: string) => client.call(`/api/v2/assets/${id}`, { method: 'DELETE' })
const head = (path: string) => client.call(path, { method: 'HEAD' })

describe('content', () => {
  test('comes whole or exactly as the range says', async () => {
    const bytes = Buffer.from('0123456789')
    const { id } = await client.uploaded('range.txt', bytes, { fields: { content_type: 'text/plain' } })
    const whole = await content(id)
    assert.deepEqual(
      [
        whole.status,
        whole.text,
        whole.headers['accept-ranges'],
        whole.headers['content-length'],
        whole.headers['content-type'],
      ],
      [200, '0123456789', 'bytes', '10', 'text/plain'],
    )
    const slices: [string, string, string][] = [
      ['bytes=0-0', '0', '0-0'],
      ['bytes=2-4', '234', '2-4'],
      ['bytes=7-', '789', '7-9'],
      ['bytes=-3', '789', '7-9'],
      ['bytes=-100', '0123456789', '0-9'],
      ['bytes=5-1000', '56789', '5-9'],
      ['bytes=0-', '0123456789', '0-9'],
    ]
    for (const [range, text, span] of slices) {
      const answer = await content(id, { range })
      assert.deepEqual(
        [range, answer.status, answer.text, answer.headers['content-range'], answer.headers['content-length']],
        [range, 206, text, `bytes ${span}/10`, String(text.length)],
      )
      const asked = await client.call(`/api/v2/assets/${id}/content`, { method: 'HEAD', headers: { range } })
      assert.deepEqual([asked.status, asked.text, asked.headers['content-range']], [206, '', `bytes ${span}/10`])
    }
    for (const range of ['bytes=10-', 'bytes=10-20', 'bytes=-0']) {
      const answer = await content(id, { range })
      refused(answer, 416, 'invalid_request')
      assert.equal(answer.headers['content-range'], 'bytes */10')
    }
    for (const range of ['bytes=4-2', 'bytes=a-b', 'items=0-1', 'bytes=0-1,3-4', 'bytes', '']) {
      assert.deepEqual([(await content(id, { range })).status, range], [200, range])
    }
    const asked = await head(`/api/v2/assets/${id}/content`)
    assert.deepEqual([asked.status, asked.text, asked.headers['content-length']], [200, '', '10'])
  })

  test('of active types is only ever downloaded', async () => {
    for (const type of ['text/html', 'image/svg+xml', 'application/xhtml+xml', 'text/HTML; charset=utf-8']) {
      const { id } = await client.uploaded('page', `<script>${type}</script>`, { fields: { content_type: type } })
      assert.match(String((await content(id)).headers['content-disposition']), /^attachment/, type)
    }
  })

  test('whose bytes are gone is output_unavailable, and says that retrying cannot help', async () => {
    const asset = await client.uploaded('lost.png', 'lost bytes')
    const name = asset.hash.replace('blake3:', '')
    const entries = await readdir(join(service.dataDir, 'blobs'), { recursive: true, withFileTypes: true })
    const file = entries.find((entry) => entry.isFile() && entry.name.includes(name.slice(8)))
    assert.ok(file !== undefined, 'the bytes are not where they were looked for')
    await rm(join(file.parentPath, file.name))
    const answer = await content(asset.id)
    refused(answer, 404, 'output_unavailable')
    assert.match(answer.json.error.message, /again|retry/i)
    assert.equal((await client.call(`/api/v2/assets/${asset.id}`)).status, 200)
    assert.equal((await head(`/api/v2/assets/by-hash/${asset.hash}`)).status, 404)
    assert.ok([200, 201].includes((await client.upload('lost.png', 'lost bytes')).status))
    assert.equal((await content(asset.id)).text, 'lost bytes')
  })
})

describe('the end of a record', () => {
  test('by delete is 204, then 404; bytes that another record uses stay', async () => {
    const [first, second] = [await client.uploaded('d1.png', 'shared'), await client.uploaded('d2.png', 'shared')]
    const gone = await remove(first.id)
    assert.deepEqual([gone.status, gone.text], [204, ''])
    refused(await remove(first.id), 404, 'not_found')
    refused(await client.call(`/api/v2/assets/${first.id}`), 404, 'not_found')
    refused(await content(first.id), 404, 'not_found')
    assert.equal((await content(second.id)).text, 'shared')
    assert.equal((await head(`/api/v2/assets/by-hash/${second.hash}`)).status, 200)
    await remove(second.id)
    assert.equal((await head(`/api/v2/assets/by-hash/${second.hash}`)).status, 404)
    assert.equal((await client.upload('d1.png', 'shared')).status, 201)
  })

  test('by age comes when it was promised; sending the same again may only put it off', async () => {
    const lifeOf = ({ json }: Answer) => Math.round((Date.parse(json.expires_at) - clock.now().getTime()) / 1000)
    const short = await client.upload('life.png', 'life', { fields: { expires_in: '60' } })
    assert.ok(Math.abs(lifeOf(short) - 60) <= 2)
    assert.equal(short.json.url_expires_at, short.json.expires_at)
    const week = await client.upload('life.png', 'life', { fields: { expires_in: '604800' } })
    assert.ok(Math.abs(lifeOf(week) - 604_800) <= 2)
    const { hash } = week.json
    for (const again of [
      await client.upload('life.png', 'life', { fields: { expires_in: '60' } }),
      await fromHash({ hash, file_path: 'life.png', expires_in: 60 }),
    ]) {
      assert.deepEqual([again.json.id, again.json.expires_at], [week.json.id, week.json.expires_at])
    }
    aheadMs = 7 * DAY_MS + 5_000
    refused(await client.call(`/api/v2/assets/${week.json.id}`), 404, 'not_found')
    refused(await content(week.json.id), 404, 'not_found')
    aheadMs = 0
    assert.equal((await client.upload('life.png', 'life')).json.expires_at, null)
    const forever = await client.upload('life.png', 'life', { fields: { expires_in: '60' } })
    assert.equal(forever.json.expires_at, null)
  })
})
