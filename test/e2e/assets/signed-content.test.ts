/** Content where many accounts share the service: by signed addresses that need no credential and give nothing else away. */
import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { isOnPostgres } from '../../support/app/test-store.ts'
import { type Answer, type CallOptions, call } from '../../support/clients/call.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'

let app: SharedApp
let tenant: Tenant
before(async () => {
  app = await startShared()
  tenant = await app.account('team-a')
})
after(() => app[Symbol.asyncDispose]())

async function upload(by: Tenant, { name = 'a.txt', type = 'text/plain', text = 'hello world' } = {}) {
  const form = new FormData()
  form.set('content_type', type)
  form.set('file_path', name)
  form.set('file', new Blob([text]), name)
  const request = new Request('http://x', { method: 'POST', body: form })
  const headers = { 'content-type': request.headers.get('content-type') ?? '' }
  const body = Buffer.from(await request.arrayBuffer())
  const answer = await by.call('/api/v2/assets', { method: 'POST', headers, body })
  assert.equal(answer.status, 201, answer.text)
  return answer.json
}

function follow(url: string, options?: CallOptions): Promise<Answer> {
  const { pathname, search } = new URL(url)
  return call(app.url, pathname + search, options)
}

describe('a signed address', () => {
  test('is given for every asset and output, with its expiry, and leads to the bytes without a credential', async () => {
    const asset = await upload(tenant)
    const body = JSON.stringify({ workflow: { '1': { class_type: 'FakeSave', inputs: { text: 'made' } } } })
    const { json: job } = await tenant.call('/api/v2/jobs', { method: 'POST', body })
    const { text: events } = await tenant.call(job.urls.events)
    const { json: ended } = await tenant.call(job.urls.self)
    const [output] = ended.outputs
    for (const { url, url_expires_at } of [asset, output]) {
      const query = new URL(url).searchParams
      const signedAt = query.get('X-Goog-Date')?.replace(/(....)(..)(..T..)(..)(..)/, '$1-$2-$3:$4:$5') ?? ''
      const expiresAt = Date.parse(signedAt) + Number(query.get('X-Goog-Expires')) * 1000
      assert.equal(new Date(expiresAt).toISOString(), url_expires_at)
      assert.equal((await follow(url)).status, 200)
    }
    assert.ok(events.includes(output.url), 'the stream tells the same address')
    assert.ok(ended.expires_at >= output.url_expires_at)
  })

  test('is where the content operation leads, for GET and HEAD', async () => {
    const { id } = await upload(tenant, { text: 'elsewhere' })
    for (const method of ['GET', 'HEAD']) {
      const answer = await tenant.call(`/api/v2/assets/${id}/content`, { method })
      assert.equal(answer.status, 302)
      assert.equal(answer.bytes.length, 0)
      const content = await follow(String(answer.headers.location), { method })
      assert.equal(content.status, 200)
      assert.equal(content.headers['content-length'], '9')
      assert.equal(content.text, method === 'GET' ? 'elsewhere' : '')
    }
  })

  test('serves ranges like any other content', async () => {
    const { url } = await upload(tenant, { text: '0123456789' })
    const part = await follow(url, { headers: { range: 'bytes=2-4' } })
    assert.deepEqual([part.status, part.text, part.headers['content-range']], [206, '234', 'bytes 2-4/10'])
    const beyond = await follow(url, { headers: { range: 'bytes=10-' } })
    assert.deepEqual([beyond.status, beyond.headers['content-range']], [416, 'bytes */10'])
    const { etag } = (await follow(url)).headers
    assert.equal((await follow(url, { headers: { 'if-none-match': String(etag) } })).status, 304)
  })

  test('opens nothing but reading: other methods are refused', async () => {
    const { url } = await upload(tenant, { text: 'read only' })
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await follow(url, { method })
      assert.deepEqual([answer.status, answer.headers.allow], [405, 'GET, HEAD'], method)
    }
  })

  test('that is tampered with, truncated or made for something else is refused in one wording', async () => {
    const mine = await upload(tenant, { text: 'mine' })
    const other = await upload(tenant, { text: 'other' })
    const good = new URL(mine.url)
    const at = (id: string, search: string) => `${app.url}/content/${id}${search}`
    const bad = [
      at(other.id, good.search),
      at(crypto.randomUUID(), good.search),
      at('x', good.search),
      at(mine.id, ''),
      at(mine.id, good.search.slice(0, -1)),
      at(mine.id, good.search.replace('86400', '96400')),
      at(mine.id, good.search.replace('account=team-a', 'account=team-b')),
      at(mine.id, `${good.search}&download=2`),
      at(mine.id, good.search.replaceAll('&', '&&')),
    ]
    const answers = await Promise.all(bad.map((url) => follow(url)))
    for (const answer of answers) {
      assert.equal(answer.status, 403)
      assert.equal(answer.text, answers[0].text)
    }
    assert.equal((await follow(mine.url)).status, 200)
  })
})

test('addresses of a suspended account are refused like wrong ones, and work again with it', async () => {
  const owner = await app.account('team-s')
  const { url } = await upload(owner)
  const wrong = await follow(`${url.slice(0, -1)}_`)
  for (const [status, expected] of [
    ['suspended', 403],
    ['active', 200],
  ] as const) {
    await app.admin('PATCH', '/accounts/team-s', { status })
    for (const method of ['GET', 'HEAD']) assert.equal((await follow(url, { method })).status, expected, status)
    if (expected === 403) assert.equal((await follow(url)).text, wrong.text)
  }
})

test('an address works until its end and not longer, and steady ones are renewed in time', async () => {
  const clock = createFixedClock(new Date())
  await using own = await startShared(
    { retention: '2h' },
    { overrides: { clock }, patch: { assets: { urlLifetimeMs: 3_600_000 } } },
  )
  const owner = await own.account('team-a')
  const body = JSON.stringify({ workflow: { '1': { class_type: 'FakeSave', inputs: { text: 'made' } } } })
  const { json: job } = await owner.call('/api/v2/jobs', { method: 'POST', body })
  await owner.call(job.urls.events)
  const outputOf = async () => (await owner.call(job.urls.self)).json.outputs[0]
  const read = (url: string) => call(own.url, url.slice(url.indexOf('/content')))
  const first = await outputOf()
  assert.equal((await read(first.url)).status, 200)
  clock.set(new Date(Date.parse(first.url_expires_at) - 1))
  assert.equal((await read(first.url)).status, 200)
  const second = await outputOf()
  assert.ok(second.url_expires_at > first.url_expires_at, 'the cached job has a younger address')
  clock.set(new Date(first.url_expires_at))
  const expired = await read(first.url)
  assert.deepEqual([expired.status, expired.json.error.code], [403, 'forbidden'])
  assert.equal((await read(second.url)).status, 200)
  clock.set(new Date(Date.parse(job.expires_at) - 60_000))
  assert.equal(
    (await outputOf()).url_expires_at,
    job.expires_at.replace(/\.\d+/, '.000'),
    'no address outlives its job',
  )
})

describe('what strangers uploaded', () => {
  test('is sandboxed, never sniffed, and downloaded where a browser could run it', async () => {
    for (const type of [
      'text/html',
      'image/svg+xml',
      'application/xhtml+xml',
      'text/javascript',
      'application/pdf',
      'TEXT/HTML; charset=x',
    ]) {
      const { url } = await upload(tenant, { name: 'page.html', type, text: `<script>${type}</script>` })
      const { headers } = await follow(url)
      assert.match(String(headers['content-disposition']), /^attachment; /, type)
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['content-security-policy'], "sandbox; default-src 'none'")
    }
    const { url } = await upload(tenant, { name: 'a.png', type: 'image/png', text: 'png' })
    assert.match(String((await follow(url)).headers['content-disposition']), /^inline; /)
  })

  test('has a name that cannot break out of its header', async () => {
    const names: [string, string][] = [
      ['a"b.txt', 'inline; filename="a_b.txt"; filename*=UTF-8\'\'a%22b.txt'],
      ['ünï.txt', 'inline; filename="_n_.txt"; filename*=UTF-8\'\'%C3%BCn%C3%AF.txt'],
      ["o'x(1)*.txt", 'inline; filename="o\'x(1)*.txt"'],
      ['50%.txt', 'inline; filename="50_.txt"; filename*=UTF-8\'\'50%25.txt'],
      ['dir/inner.txt', 'inline; filename="inner.txt"'],
    ]
    for (const [name, expected] of names) {
      const { url } = await upload(tenant, { name, text: name })
      assert.equal((await follow(url)).headers['content-disposition'], expected)
    }
  })

  test('may be shown by pages of other sites, because the address is the permission', async () => {
    const { url } = await upload(tenant, { name: 'a.png', type: 'image/png', text: 'shown' })
    const answer = await follow(url, { headers: { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' } })
    assert.deepEqual([answer.status, answer.headers['cross-origin-resource-policy']], [200, 'cross-origin'])
  })

  test('is gone with its record', async () => {
    const { id, url } = await upload(tenant, { text: 'short-lived' })
    assert.equal((await tenant.call(`/api/v2/assets/${id}`, { method: 'DELETE' })).status, 204)
    const answer = await follow(url)
    assert.deepEqual([answer.status, answer.json.error.code], [404, 'not_found'])
  })
})

describe('the keys', () => {
  // With Postgres they are in the store.
  if (!isOnPostgres) {
    test('are made once, kept for the owner only, survive a restart and can be exchanged', async () => {
      await using own = await startShared()
      const { url } = await upload(await own.account('team-a'))
      const read = (service: { readonly url: string }) => call(service.url, url.slice(url.indexOf('/content')))
      const file = path.join(own.service.dataDir, 'signing-keys')
      assert.equal(statSync(file).mode & 0o777, 0o600)
      const again = await own.service.restart()
      assert.equal((await read(again)).status, 200)
      const kept = readFileSync(file, 'utf8')
      writeFileSync(file, `${Buffer.alloc(32, 7).toString('base64url')}\n${kept}`)
      const rotated = await again.restart()
      assert.equal((await read(rotated)).status, 200, 'an address of the old key still works')
      writeFileSync(file, `${Buffer.alloc(32, 7).toString('base64url')}\n`)
      await using last = await rotated.restart()
      assert.equal((await read(last)).status, 403, 'and does not once the old key is gone')
    })
  }

  test('of the configuration win over those in the folder', async () => {
    const secret = Buffer.alloc(32, 1).toString('base64')
    await using own = await startShared({ signingKeys: `june:${secret}` })
    const { url } = await upload(await own.account('team-a'))
    assert.match(url, /&key=june&/)
    assert.ok(!url.includes(secret))
  })
})
