import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp } from '../support/app/start-app.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'
import { createFakeEngine } from '../support/engines/fake-engine.ts'

const FAIL = { '4': { class_type: 'FakeFail', inputs: {} } }
const HANG = { '2': { class_type: 'FakeHang', inputs: {} } }
const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } }

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

  test('is right again within five seconds after the service was away, without a row twice', async () => {
    const engine = createFakeEngine()
    let app = await startTestApp({ settings: { port: '0', workers: '1' }, overrides: { engine } })
    const { port } = new URL(app.url)
    try {
      const client = createConsoleClient(app.url)
      await client.untilStatus(await client.submit(SAVE, { metadata: { name: 'before' } }), 'succeeded')
      await using console = await openConsole(browser, app.url, { path: '/jobs' })
      const { page } = console
      await page.getByRole('link', { name: 'before' }).waitFor()
      await app.app[Symbol.asyncDispose]()
      await page.getByText(/^(reconnecting|offline)$/).waitFor()
      app = await startTestApp({
        settings: { port, workers: '1' },
        overrides: { engine: createFakeEngine() },
        dataDir: app.dataDir,
      })
      const again = createConsoleClient(app.url)
      await again.untilStatus(await again.submit(SAVE, { metadata: { name: 'after' } }), 'succeeded')
      await page.getByRole('link', { name: 'after' }).waitFor({ timeout: 15_000 })
      assert.equal(await page.getByRole('row').count(), 3)
      await page.getByText('live', { exact: true }).waitFor()
    } finally {
      await app[Symbol.asyncDispose]()
    }
  })
})
