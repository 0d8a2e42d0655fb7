import assert from 'node:assert/strict'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { spawnServer } from '../support/app/spawn-server.ts'
import { startTestApp } from '../support/app/start-app.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'
import { createFakeEngine } from '../support/engines/fake-engine.ts'

const FAIL = { '4': { class_type: 'FakeFail', inputs: {} } }
const HANG = { '2': { class_type: 'FakeHang', inputs: {} } }
const PICTURE = {
  '1': { class_type: 'EmptyImage', inputs: { width: 16, height: 16, batch_size: 1, color: 255 } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
}

describe('Home', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  before(async () => {
    browser = await launchBrowser()
  })
  after(() => browser[Symbol.asyncDispose]())

  test('shows what runs, waits and failed without a click, and follows what happens', async () => {
    const engine = createFakeEngine()
    await using app = await startTestApp({ settings: { workers: '1' }, overrides: { engine } })
    const client = createConsoleClient(app.url)
    const failed = await client.submit(FAIL, { metadata: { name: 'a bad poster' } })
    await client.untilStatus(failed, 'failed')
    const first = await client.submit(HANG, { metadata: { name: 'the long one' } })
    await client.untilStatus(first, 'running')
    await client.submit(HANG, { metadata: { name: 'the next one' } })
    await using console = await openConsole(browser, app.url)
    const { page } = console
    const running = page.getByRole('region', { name: 'Running' })
    const waiting = page.getByRole('region', { name: 'Waiting' })
    await running.getByRole('link', { name: 'the long one', exact: true }).waitFor()
    await waiting.getByRole('link', { name: 'the next one' }).waitFor()
    await page.getByRole('region', { name: 'Failed today' }).getByRole('link', { name: 'a bad poster' }).waitFor()
    assert.equal(console.clicks, 0)
    await client.submit(HANG, { metadata: { name: 'one that came later' } })
    await waiting.getByRole('link', { name: 'one that came later' }).waitFor()
    await console.click(running.getByRole('button', { name: 'Cancel the long one' }))
    await running.getByRole('link', { name: 'the next one', exact: true }).waitFor()
    await running.getByRole('link', { name: 'the long one', exact: true }).waitFor({ state: 'detached' })
    assert.equal(console.clicks, 1)
    await client.untilStatus(first, 'canceled')
    console.assertClean()
  })

  test('a service on which nothing ran offers three ways to begin', async () => {
    await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
    await using console = await openConsole(browser, app.url)
    const { page } = console
    await page.getByRole('heading', { name: 'See it work' }).waitFor()
    await page
      .getByRole('region', { name: 'Connect a program' })
      .getByRole('button', { name: 'curl', exact: true })
      .click()
    await page.getByText(`${app.url}/api/v2/jobs`).waitFor()
    console.assertClean()
  })

  test('is right again within five seconds after the service was killed and came back, without a row twice', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'atelier-'))
    const start = (port: string) => spawnServer(['--port', port, '--data-dir', folder.path, '--workers', '1'])
    await using killed = await start('0')
    const client = createConsoleClient(killed.url)
    await client.untilStatus(await client.submit(PICTURE, { metadata: { name: 'before' } }), 'succeeded')
    await using console = await openConsole(browser, killed.url, { path: '/jobs' })
    const { page } = console
    await page.getByRole('link', { name: 'before' }).waitFor()
    await page.getByText('live', { exact: true }).waitFor()
    await killed.killNow()
    await page.getByText(/^(reconnecting|offline)$/).waitFor()
    // The page waits longer after every try: its clock stands still while the service starts, however long that takes here.
    await page.clock.pauseAt(Date.now() + 60_000)
    await using _again = await start(new URL(killed.url).port)
    await client.untilStatus(await client.submit(PICTURE, { metadata: { name: 'after' } }), 'succeeded')
    await page.clock.runFor(5000)
    await page.getByRole('link', { name: 'after' }).waitFor()
    assert.equal(await page.getByRole('row').count(), 3)
    await page.getByText('live', { exact: true }).waitFor()
    console.assertClean([/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/])
  })
})
