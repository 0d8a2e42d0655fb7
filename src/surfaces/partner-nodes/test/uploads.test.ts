import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type NodeService, startNodeService } from './node-service.ts'

let service: NodeService
before(async () => {
  service = await startNodeService([])
})
after(() => service[Symbol.asyncDispose]())

interface Place {
  readonly upload_url: string
  readonly download_url: string
}

async function begin(body: object): Promise<Place> {
  const answer = await service.send('POST', '/customers/storage', body)
  assert.equal(answer.status, 200, await answer.clone().text())
  return (await answer.json()) as Place
}

test('a file is sent to a signed address without a key, and read from another one by a provider', async () => {
  const bytes = Buffer.alloc(300_000, 7)
  const place = await begin({ file_name: 'uploaded_video.mp4', content_type: 'video/mp4' })
  assert.equal((await fetch(place.download_url)).status, 404)
  // A node whose connection broke sends the file again.
  for (let time = 0; time < 2; time += 1) {
    const sent = await fetch(place.upload_url, { method: 'PUT', headers: { 'content-type': 'video/mp4' }, body: bytes })
    assert.equal(sent.status, 200, await sent.text())
  }
  const read = await fetch(place.download_url)
  assert.equal(read.headers.get('content-type'), 'video/mp4')
  assert.deepEqual(Buffer.from(await read.arrayBuffer()), bytes)
})

test('other bytes to an address that has its file are refused, also when both come at once, and the first stay', async () => {
  for (const isAtOnce of [false, true]) {
    const place = await begin({ file_name: 'a.bin' })
    const sends = ['first', 'second'].map((text) => () => fetch(place.upload_url, { method: 'PUT', body: text }))
    const answers = isAtOnce ? await Promise.all(sends.map((send) => send())) : [await sends[0](), await sends[1]()]
    const statuses = answers.map(({ status }) => status)
    assert.deepEqual(statuses.toSorted(), [200, 409])
    const kept = ['first', 'second'][statuses.indexOf(200)]
    assert.equal(await (await fetch(place.download_url)).text(), kept)
    const { error } = (await answers[statuses.indexOf(409)].json()) as { error: { message: string } }
    assert.match(error.message, /ask for a new address/)
    assert.equal((await fetch(place.upload_url, { method: 'PUT', body: kept })).status, 200)
  }
})

test('equal bytes that come many times at once are one file', async () => {
  const place = await begin({ file_name: 'a.bin' })
  const sends = Array.from({ length: 8 }, () => fetch(place.upload_url, { method: 'PUT', body: 'same' }))
  for (const { status } of await Promise.all(sends)) assert.equal(status, 200)
  assert.equal(await (await fetch(place.download_url)).text(), 'same')
})

test('the same file again has an address of its own, and its type follows from its name', async () => {
  const [first, second] = [await begin({ file_name: 'a.png' }), await begin({ file_name: '../../a.png' })]
  for (const { upload_url, download_url } of [first, second]) {
    assert.equal((await fetch(upload_url, { method: 'PUT', body: 'same' })).status, 200)
    assert.equal((await fetch(download_url)).headers.get('content-type'), 'image/png')
  }
})

test('who has no key, or an address that was changed, stores nothing', async () => {
  const unknown = await service.send('POST', '/customers/storage', { file_name: 'a.png' }, { 'x-api-key': 'other' })
  assert.equal(unknown.status, 401)
  const { upload_url } = await begin({ file_name: 'a.png' })
  const changed = upload_url.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
  assert.equal((await fetch(changed, { method: 'PUT', body: 'x' })).status, 403)
  assert.equal((await service.send('POST', '/customers/storage', { content_type: 'image/png' })).status, 422)
})
