import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type SharedApp, startShared } from '../support/app/start-shared.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'

const FAIL = { '4': { class_type: 'FakeFail', inputs: {} } }
const HANG = { '2': { class_type: 'FakeHang', inputs: {} } }

describe('Home', { skip: withoutBrowser }, () => {
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

  test('shows what runs, waits and failed without a click, and follows what happens', async () => {
    const { key } = await shared.account('busy', { concurrentJobs: 1 })
    const client = createConsoleClient(shared.url, key)
    const failed = await client.submit(FAIL, { metadata: { name: 'a bad poster' } })
    await client.untilStatus(failed, 'failed')
    const first = await client.submit(HANG, { metadata: { name: 'the long one' } })
    await client.untilStatus(first, 'running')
    await client.submit(HANG, { metadata: { name: 'the next one' } })
    await using console = await openConsole(browser, shared.url, { credential: key })
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
    const { key } = await shared.account('new')
    await using console = await openConsole(browser, shared.url, { credential: key })
    const { page } = console
    await page.getByRole('region', { name: 'See it work' }).getByRole('button', { name: 'Run the example' }).waitFor()
    await page
      .getByRole('region', { name: 'Connect a program' })
      .getByRole('button', { name: 'curl', exact: true })
      .click()
    await page.getByText(`${shared.url}/api/v2/jobs`).waitFor()
    console.assertClean()
  })
})
