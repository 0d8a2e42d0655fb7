/** The listener of ComfyUI's editor with a small folder in place of a real copy: what it serves, to whom, and under which headers. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { startShared } from '../support/app/start-shared.ts'

const TOKEN = 'a-token-of-this-test-only'
const SCRIPT = 'export const words = "one"\n'.repeat(200)
const INLINE = 'console.log("hello")'

let home: string
let folder: string
before(async () => {
  home = await mkdtemp(path.join(tmpdir(), 'atelier-editor-'))
  folder = path.join(home, 'static')
  for (const name of ['static/assets', 'templates']) await mkdir(path.join(home, name), { recursive: true })
  const files: Readonly<Record<string, string>> = {
    'static/index.html': `<!doctype html><script>${INLINE}</script><script src="./assets/index-vtow2bzT.js"></script>`,
    'static/assets/index-vtow2bzT.js': SCRIPT,
    'static/assets/plain.json': '{}',
    'static/.hidden': 'hidden',
    'outside.txt': 'outside',
    'templates/index.json': '[{"title":"mine"}]',
    'mine.css': 'outside',
  }
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(home, name), text)
  await symlink(path.join(home, 'outside.txt'), path.join(folder, 'link.txt'))
})
after(() => rm(home, { recursive: true, force: true }))

function settings(more: Readonly<Record<string, string>> = {}) {
  return { comfyuiFrontend: folder, comfyuiFrontendPort: '0', ...more }
}

/** With the address as it is: fetch would tidy it up first. */
async function getRaw(url: string, address: string, headers: Readonly<Record<string, string>> = {}) {
  const { hostname, port } = new URL(url)
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  get({ hostname, port, path: address, headers, agent: false }, resolve).on('error', reject)
  const response = await promise
  return { status: response.statusCode ?? 0, bytes: Buffer.concat(await response.toArray()) }
}

function editorOf({ app }: TestApp): string {
  assert.notEqual(app.frontendUrl, null)
  return app.frontendUrl as string
}

describe('a local service without a token', () => {
  let service: TestApp
  let url: string
  before(async () => {
    service = await startTestApp({ settings: settings() })
    url = editorOf(service)
  })
  after(() => service[Symbol.asyncDispose]())

  test('the page comes under a policy that allows its own scripts, known by their digests, and no other host', async () => {
    const page = await fetch(url)
    const policy = page.headers.get('content-security-policy') ?? ''
    assert.equal(page.status, 200)
    assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
    const digest = createHash('sha256').update(INLINE).digest('base64')
    assert.match(
      policy,
      new RegExp(`script-src 'self' 'wasm-unsafe-eval' 'sha256-${digest.replaceAll(/[+/]/g, '\\$&')}';`),
    )
    assert.match(policy, new RegExp(`connect-src 'self' blob: data: ws://${new URL(url).host};`))
    assert.doesNotMatch(policy, /unsafe-eval'[^;]*'unsafe-inline'|https:/)
  })

  test('a name with a digest is kept for ever, others are asked for again, and text is compressed once', async () => {
    const script = await fetch(`${url}/assets/index-vtow2bzT.js`)
    assert.equal(await script.text(), SCRIPT)
    assert.deepEqual(
      ['cache-control', 'content-encoding', 'content-type'].map((name) => script.headers.get(name)),
      ['public, max-age=31536000, immutable', 'gzip', 'text/javascript; charset=utf-8'],
    )
    const plain = await getRaw(url, '/assets/index-vtow2bzT.js', { 'accept-encoding': 'gzip' })
    assert.equal(gunzipSync(plain.bytes).toString(), SCRIPT)
    const other = await fetch(`${url}/assets/plain.json`)
    assert.equal(other.headers.get('cache-control'), 'no-cache')
    const again = await fetch(`${url}/assets/plain.json`, {
      headers: { 'if-none-match': other.headers.get('etag') ?? '' },
    })
    assert.equal(again.status, 304)
  })

  test('nothing outside of the folder is served, whatever the address says', async () => {
    const paths = [
      ...['/../outside.txt', '/..%2foutside.txt', '/%2e%2e/outside.txt', '/assets/..%2f..%2foutside.txt', '/link.txt'],
      ...[
        '/.hidden',
        '/assets',
        '/assets/',
        '//outside.txt',
        '/assets%5c..%5coutside.txt',
        '/a%00b',
        '/%',
        '/templates/../mine.css',
      ],
    ]
    for (const each of paths) {
      const answer = await getRaw(url, each)
      assert.equal(answer.status >= 400 && answer.status < 500, true, `${each}: ${answer.status}`)
      assert.equal(answer.bytes.includes('outside'), false, each)
    }
  })

  test('the editor finds an empty list of templates, an empty style sheet, and no help for nodes', async () => {
    const texts = ['/templates/index.json', '/templates/index_logo.json', '/user.css'].map(async (each) => {
      const answer = await fetch(url + each)
      return [answer.status, answer.headers.get('content-type'), await answer.text()]
    })
    assert.deepEqual(await Promise.all(texts), [
      [200, 'application/json; charset=utf-8', '[]'],
      [200, 'application/json; charset=utf-8', '{}'],
      [200, 'text/css; charset=utf-8', ''],
    ])
    assert.equal((await fetch(`${url}/docs/KSampler/en.md`)).status, 404)
  })

  test('it has the Legacy v1 API and content, and neither the console nor any other API', async () => {
    assert.equal((await fetch(`${url}/api/object_info`)).status, 200)
    const features = (await (await fetch(`${url}/api/features`)).json()) as { readonly show_signin_button: boolean }
    assert.equal(features.show_signin_button, false)
    for (const each of ['/console', '/api/v2/jobs', '/admin/v1/overview', '/console/v1/session'])
      assert.equal((await fetch(url + each)).status, 404, each)
  })

  test('a page of another port may not ask it', async () => {
    const headers = { origin: service.url, 'sec-fetch-site': 'same-site' }
    assert.equal((await fetch(`${url}/api/queue`, { headers })).status, 403)
  })
})

test('templates come from where the user keeps them, help for nodes and a style sheet from the folder of the editor', async () => {
  await mkdir(path.join(folder, 'docs/KSampler'), { recursive: true })
  await writeFile(path.join(folder, 'docs/KSampler/en.md'), '# KSampler')
  await writeFile(path.join(folder, 'user.css'), 'body{color:red}')
  await using service = await startTestApp({
    settings: settings({
      comfyuiTemplates: `${path.join(home, 'nowhere')},${path.join(home, 'templates')}`,
    }),
  })
  const url = editorOf(service)
  const read = async (each: string) => (await fetch(url + each)).text()
  assert.equal(await read('/templates/index.json'), '[{"title":"mine"}]')
  assert.equal(await read('/docs/KSampler/en.md'), '# KSampler')
  assert.equal(await read('/user.css'), 'body{color:red}')
})

test('with a token the page leads to the form, and a session made there counts at this origin alone', async () => {
  await using service = await startTestApp({ settings: settings({ token: TOKEN }) })
  const url = editorOf(service)
  const { origin } = new URL(url)
  const page = await fetch(url, { redirect: 'manual' })
  assert.deepEqual([page.status, page.headers.get('location')], [302, '/sign-in'])
  const linked = await fetch(url, { redirect: 'manual', headers: { 'sec-fetch-site': 'cross-site' } })
  assert.match(await linked.text(), /http-equiv="refresh"/)
  const signIn = (credential: string, headers: Readonly<Record<string, string>> = { origin }) =>
    fetch(`${url}/sign-in`, { method: 'POST', redirect: 'manual', headers, body: new URLSearchParams({ credential }) })
  const refused = await signIn('<b>wrong</b>')
  assert.equal(refused.status, 401)
  assert.match(await refused.text(), /role="alert">this key or token is not accepted</)
  assert.equal((await signIn(TOKEN, { origin: service.url })).status, 403)
  const accepted = await signIn(TOKEN)
  const cookie = accepted.headers.get('set-cookie') ?? ''
  assert.deepEqual([accepted.status, accepted.headers.get('location')], [303, '/'])
  assert.match(cookie, /HttpOnly; SameSite=Strict/)
  const [pair = ''] = cookie.split(';')
  const ask = async (headers: Readonly<Record<string, string>>, method = 'GET', at = '/api/queue') =>
    (await fetch(url + at, { method, headers: { cookie: pair, ...headers }, redirect: 'manual' })).status
  assert.equal(await ask({ 'sec-fetch-site': 'same-origin' }), 200)
  assert.equal(await ask({ 'sec-fetch-site': 'same-site' }), 401)
  assert.equal(await ask({ 'sec-fetch-site': 'same-origin', origin }, 'POST'), 200)
  assert.equal(await ask({ 'sec-fetch-site': 'same-site', origin: service.url }, 'POST'), 403)
  assert.equal(await ask({}, 'POST'), 401)
  assert.equal(await ask({ 'sec-fetch-site': 'none' }, 'GET', '/'), 200)
  assert.equal(await ask({ 'sec-fetch-site': 'same-origin', origin }, 'POST', '/sign-out'), 303)
  assert.equal(await ask({ 'sec-fetch-site': 'same-origin' }), 401)
})

test("an operator's token opens nothing here", async () => {
  await using shared = await startShared(settings())
  const url = editorOf(shared.service)
  const body = new URLSearchParams({ credential: 'admin-token-of-this-test' })
  const answer = await fetch(`${url}/sign-in`, { method: 'POST', headers: { origin: new URL(url).origin }, body })
  assert.deepEqual([answer.status, answer.headers.get('set-cookie')], [401, null])
})

test('a folder without the page, and settings without a folder, stop the start with what to do', async () => {
  await assert.rejects(
    startTestApp({ settings: settings({ comfyuiFrontend: home }) }),
    /has no index\.html.*atelier doctor/,
  )
  await assert.rejects(startTestApp({ settings: { comfyuiFrontendPort: '0' } }), /give --comfyui-frontend/)
  await assert.rejects(
    startTestApp({ settings: settings({ port: '7001', comfyuiFrontendPort: '7001' }) }),
    /port of its own/,
  )
})
