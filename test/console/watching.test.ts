/** Pages that stay open: over a service that is killed, beside many others, and after the key they came with was taken away. */
import assert from 'node:assert/strict'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { BrowserContext, Request } from 'playwright-core'
import { spawnServer } from '../support/app/spawn-server.ts'
import { type SharedApp, startShared } from '../support/app/start-shared.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'
import { findFreePort } from '../support/network/free-port.ts'
import { waitUntil } from '../support/wait-until.ts'

const VALUE = { '1': { class_type: 'FakeValue', inputs: { value: 1, key: 'k' } } }
const PICTURE = {
  '1': { class_type: 'EmptyImage', inputs: { width: 16, height: 16, batch_size: 1, color: 255 } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
}
const TABS = 12

const isEvents = (url: string) => new URL(url).pathname === '/console/v1/events'

/** The streams that the pages of a browser hold from now on. */
function openStreams(context: BrowserContext): ReadonlySet<Request> {
  const open = new Set<Request>()
  context.on('request', (request) => {
    if (/\/console\/v1\/(events|jobs\/[^/]+\/live)$/.test(new URL(request.url()).pathname)) open.add(request)
  })
  context.on('requestfinished', (request) => void open.delete(request))
  context.on('requestfailed', (request) => void open.delete(request))
  return open
}

describe('pages that stay open', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  let shared: SharedApp
  before(async () => {
    browser = await launchBrowser()
    shared = await startShared()
  })
  after(async () => {
    // Closed also when the browser complains of a page: an open service would keep the process.
    await using _service = shared
    await browser[Symbol.asyncDispose]()
  })

  test('a list is right again five seconds after a kill and a return, no row is there twice, and none has moved', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'atelier-'))
    const port = String(await findFreePort())
    const start = () => spawnServer(['--port', port, '--data-dir', folder.path, '--workers', '1'])
    await using killed = await start()
    const client = createConsoleClient(killed.url)
    await client.untilStatus(await client.submit(PICTURE, { metadata: { name: 'before' } }), 'succeeded')
    await using console = await openConsole(browser, killed.url, { path: '/jobs' })
    const { page } = console
    const row = page.getByRole('link', { name: 'before' })
    await row.hover()
    const place = await row.boundingBox()
    await page.getByText('live', { exact: true }).waitFor()
    await killed.killNow()
    await page.getByText(/^(reconnecting|offline)$/).waitFor()
    // Its clock stands still while the service starts, however long that takes here. It has been away for long by then: the page has
    // tried many times, and waits for no longer after each.
    await page.clock.pauseAt(Date.now() + 60_000)
    for (let tries = 0; tries < 6; tries++) {
      const tried = page.waitForEvent('requestfailed', (request) => isEvents(request.url()))
      await page.clock.runFor(40_000)
      await tried
    }
    await using _again = await start()
    await client.untilStatus(await client.submit(PICTURE, { metadata: { name: 'after' } }), 'succeeded')
    const asked = page.waitForRequest((request) => isEvents(request.url()))
    await page.clock.runFor(5000)
    await asked
    // Within five seconds the page has asked again; what the answer takes is up to this machine.
    await page.clock.resume()
    const pill = page.getByRole('button', { name: '1 new job' })
    await pill.waitFor()
    await page.getByText('live', { exact: true }).waitFor()
    assert.deepEqual(await row.boundingBox(), place)
    await pill.click()
    await page.getByRole('link', { name: 'after' }).waitFor()
    assert.equal(await page.getByRole('row').count(), 3)
    // What the browser says of a server that was killed depends on the moment at which it notices.
    console.assertClean([
      /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED/,
    ])
  })

  test('twelve tabs share one stream, all follow, and a further one opens beside them', async () => {
    const tenant = await shared.account('many')
    const client = createConsoleClient(shared.url, tenant.key)
    await using console = await openConsole(browser, shared.url, { path: '/jobs', credential: tenant.key })
    const { context } = console.watched
    const streams = openStreams(context)
    await console.page.reload()
    const tabs = [console.page]
    while (tabs.length < TABS) {
      const tab = await context.newPage()
      await tab.goto(`${shared.url}/console/jobs`)
      tabs.push(tab)
    }
    for (const tab of tabs) await tab.getByText('live', { exact: true }).waitFor()
    assert.equal(streams.size, 1)
    await client.submit(VALUE, { metadata: { name: 'for all' } })
    for (const tab of tabs) await tab.getByRole('link', { name: 'for all' }).waitFor()
    await tabs[0]?.close()
    const further = await context.newPage()
    await further.goto(`${shared.url}/console/jobs`)
    await further.getByRole('link', { name: 'for all' }).waitFor()
    // The tab that read for the others is gone: another one has taken over.
    await client.submit(VALUE, { metadata: { name: 'later' } })
    for (const tab of [...tabs.slice(1), further]) await tab.getByRole('link', { name: 'later' }).waitFor()
    console.assertClean()
  })

  test('a key that is revoked ends the pages and the streams that came with it', async () => {
    const tenant = await shared.account('short')
    const client = createConsoleClient(shared.url, tenant.key)
    const id = await client.submit({ '2': { class_type: 'FakeHang', inputs: {} } }, { metadata: { name: 'goes on' } })
    await client.untilStatus(id, 'running')
    await using console = await openConsole(browser, shared.url, { credential: tenant.key })
    const streams = openStreams(console.watched.context)
    await console.page.reload()
    await console.page.getByText('live', { exact: true }).waitFor()
    await console.go(`/jobs/${id}`)
    await waitUntil(() => streams.size === 2)
    const { keys } = (await shared.admin('GET', '/accounts/short/keys')).json
    assert.equal((await shared.admin('POST', `/keys/${keys[0].id}/revoke`)).status < 300, true)
    await console.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.equal(await console.page.getByText('goes on').count(), 0)
    await waitUntil(() => streams.size === 0)
    console.assertClean([/401/])
  })
})
