/** The reference page: readable, complete, and silent towards the network. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app/start-app.ts'
import { startSurface } from '../support/app/start-surface.ts'
import { call } from '../support/clients/call.ts'

test('the page shows every operation and every schema, without anything to fetch', async () => {
  await using service = await startSurface()
  const { status, headers, text } = await call(service.url, '/docs')
  assert.equal(status, 200)
  assert.equal(headers['content-type'], 'text/html; charset=utf-8')
  const spec = (await call(service.url, '/api/v2/openapi.json')).json
  for (const path of Object.keys(spec.paths)) assert.ok(text.includes(path), path)
  for (const name of Object.keys(spec.components.schemas)) {
    const anchor = `schema-${name.replace('Nullable', '').toLowerCase()}`
    assert.ok(text.includes(`id="${anchor}"`), name)
  }
  for (const [, target] of text.matchAll(/href="#([^"]+)"/g)) assert.ok(text.includes(`id="${target}"`), target)
  assert.equal(text.match(/<script/g)?.length, 1, 'its own search')
  assert.doesNotMatch(text, /<script [^>]*|<img|<link|<iframe|@import|url\(| on\w+=| style=/i)
})

test('its policy allows its own style and script and nothing else', async () => {
  await using service = await startSurface()
  const { headers } = await call(service.url, '/docs')
  const policy = String(headers['content-security-policy'])
  assert.match(
    policy,
    /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]{44}'; script-src 'sha256-[A-Za-z0-9+/=]{44}'; /,
  )
  assert.match(policy, /frame-ancestors 'none'/)
  assert.doesNotMatch(policy, /unsafe|\*|http/)
})

test('each operation has samples in three languages, and an answer where the document has an example', async () => {
  await using service = await startSurface({ token: 'right-token' })
  const { text } = await call(service.url, '/docs')
  const sectionOf = (id: string) => new RegExp(`<section id="${id}"[^]*?</section>`).exec(text)?.[0] ?? assert.fail(id)
  const spec = (await call(service.url, '/docs/openapi.json')).json
  const ids = Object.values(spec.paths).flatMap((item) =>
    Object.values(item as object).map(({ operationId }) => operationId as string),
  )
  for (const id of ids)
    for (const label of ['curl', 'TypeScript', 'Python'])
      assert.ok(sectionOf(id).includes(`<summary>${label}</summary>`), `${id} ${label}`)
  const batch = sectionOf('getBatch')
  assert.match(batch, /curl http:\/\/127\.0\.0\.1:\d+\/api\/v2\/batches\/[0-9a-f-]{36} /)
  assert.match(batch, /Authorization: Bearer \$ATELIER_TOKEN/)
  assert.match(batch, /import \{ connect, getBatch \} from &#39;atelier\/client&#39;/)
  assert.match(batch, /client\.get_batch\(id=&quot;[0-9a-f-]{36}&quot;\)/)
  assert.match(batch, /<summary>Answer<\/summary><pre tabindex="0">200\n\{/)
  assert.ok(!text.includes('right-token'))
})

test('requests can be sent from the page where the service is reached at loopback, and nowhere else', async () => {
  await using near = await startSurface()
  const page = await call(near.url, '/docs')
  assert.match(page.text, /data-request="/)
  assert.match(String(page.headers['content-security-policy']), /; connect-src 'self'; /)
  await using far = await startSurface({ gate: { publicUrl: 'https://atelier.example.com' } })
  const other = await call(far.url, '/docs')
  assert.match(other.text, /https:\/\/atelier\.example\.com\/api\/v2\/health/)
  assert.doesNotMatch(other.text, /data-request="/)
  assert.doesNotMatch(String(other.headers['content-security-policy']), /connect-src/)
})

test('the client for Python is beside the pages', async () => {
  await using service = await startSurface({ token: 'right-token', gate: { mountPrefix: '/x' } })
  const { status, headers, text } = await call(service.url, '/x/docs/atelier_client.py')
  assert.deepEqual([status, headers['content-type']], [200, 'text/x-python; charset=utf-8'])
  assert.match(text, /^class Client\(/m)
})

test('the root leads there, and a link on another site may too', async () => {
  await using service = await startSurface({ gate: { mountPrefix: '/x' } })
  const root = await call(service.url, '/x/')
  assert.deepEqual([root.status, root.headers.location], [302, '/x/docs'])
  const linked = await call(service.url, '/x/docs', { headers: { 'sec-fetch-site': 'cross-site' } })
  assert.equal(linked.status, 200)
})

test('every API has a page, each leads to the others, and its document can be had without a token', async () => {
  await using app = await startTestApp({
    settings: { token: 'right-token', adminToken: 'other-token', mountPrefix: '/x' },
  })
  const titles = ['Jobs API v2', 'Model Router', 'Admin API']
  const first = (await call(app.url, '/x/docs')).text
  const linked = [...first.matchAll(/href="[^"]+?(\/x\/docs\/[^"/]+)">([^<]+)</g)]
    .filter(([, path]) => !path.endsWith('.json'))
    .map(([, path, title]) => ({ path, title }))
  for (const title of titles.slice(1))
    assert.ok(
      linked.some((link) => link.title === title),
      title,
    )
  for (const { path, title } of [{ path: '/x/docs', title: titles[0] }, ...linked]) {
    const page = await call(app.url, path)
    assert.equal(page.status, 200, path)
    const [, address] = /href="([^"]+)">openapi\.json</.exec(page.text) ?? []
    const answer = await call(app.url, new URL(address).pathname)
    assert.deepEqual([answer.status, answer.headers['content-type']], [200, 'application/json'], address)
    const { paths, servers } = answer.json
    assert.deepEqual(servers, [{ url: title === 'Admin API' ? app.url : `${app.url}/x` }])
    for (const name of Object.keys(paths)) assert.ok(page.text.includes(`<code>${name}</code>`), `${title} ${name}`)
    for (const [, target] of page.text.matchAll(/href="#([^"]+)"/g))
      assert.ok(page.text.includes(`id="${target}"`), `${title} ${target}`)
    for (const other of titles) assert.ok(other === title || page.text.includes(`>${other}</a>`), `${title}: ${other}`)
  }
})

test('a service without an admin API has no page of it', async () => {
  await using app = await startTestApp({ settings: { kind: 'cloud' } })
  assert.equal((await call(app.url, '/docs/admin')).status, 404)
})
