import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp } from '../support/app/start-app.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'
import { createFakeEngine } from '../support/engines/fake-engine.ts'

const FAIL = { '4': { class_type: 'FakeFail', inputs: {} } }
const VALUE = { '1': { class_type: 'FakeValue', inputs: { value: 1, key: 'k' } } }
const HANG = { '2': { class_type: 'FakeHang', inputs: {} } }
const HOSTILE = '<img src=x onerror="document.title=1">'

describe('the list of jobs', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  before(async () => {
    browser = await launchBrowser()
  })
  after(() => browser[Symbol.asyncDispose]())

  test('finds a job by id, metadata, error code and node class from the keyboard, without a click', async () => {
    await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
    const client = createConsoleClient(app.url)
    const good = await client.submit(VALUE, { metadata: { name: 'good', user: 'anna' } })
    const bad = await client.submit(FAIL, { metadata: { name: 'bad' } })
    await client.untilStatus(good, 'succeeded')
    await client.untilStatus(bad, 'failed')
    await using console = await openConsole(browser, app.url)
    const { page } = console
    const find = async (text: string) => {
      await page.keyboard.press('/')
      await page.keyboard.type(text)
      await page.keyboard.press('Enter')
      await page.waitForURL(/\/console\/jobs\?q=/)
      await page.getByRole('table', { name: 'Jobs' }).waitFor()
      return page.getByRole('table', { name: 'Jobs' }).getByRole('link').allTextContents()
    }
    for (const [text, name] of [
      [good.slice(0, 13), 'good'],
      ['anna', 'good'],
      ['node_execution_error', 'bad'],
      ['FakeFail', 'bad'],
    ] as const) {
      assert.deepEqual(await find(text), [name], text)
      await page.goBack()
      await page.getByRole('search').waitFor()
    }
    assert.equal(console.clicks, 0)
    console.assertClean()
  })

  test('filters live in the address, say what they found, and can be taken away', async () => {
    await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
    const client = createConsoleClient(app.url)
    await client.untilStatus(await client.submit(VALUE, { metadata: { name: 'good' } }), 'succeeded')
    await client.untilStatus(await client.submit(FAIL, { metadata: { name: 'bad', user: '7' } }), 'failed')
    await using console = await openConsole(browser, app.url, { path: '/jobs?status=failed&meta.user=8' })
    const { page } = console
    await page.getByText('No failed jobs with user=8').waitFor()
    await console.click(page.getByRole('button', { name: 'Remove filter user=8' }))
    await page.getByRole('link', { name: 'bad' }).waitFor()
    assert.equal(await page.getByRole('link', { name: 'good' }).count(), 0)
    assert.equal(new URL(page.url()).search, '?status=failed')
    await console.click(page.getByRole('navigation', { name: 'States' }).getByRole('link', { name: /^All/ }))
    await page.getByRole('link', { name: 'good' }).waitFor()
    await page.goBack()
    await page.getByRole('link', { name: 'good' }).waitFor({ state: 'detached' })
    console.assertClean()
  })

  test('a row never moves under the pointer: what is new waits until it is asked for', async () => {
    const engine = createFakeEngine()
    await using app = await startTestApp({ overrides: { engine } })
    const client = createConsoleClient(app.url)
    await client.untilStatus(await client.submit(VALUE, { metadata: { name: 'first' } }), 'succeeded')
    await using console = await openConsole(browser, app.url, { path: '/jobs' })
    const { page } = console
    const row = page.getByRole('link', { name: 'first' })
    await row.hover()
    const before = await row.boundingBox()
    await client.submit(VALUE, { metadata: { name: 'second' } })
    await page.getByRole('button', { name: '1 new job' }).waitFor()
    assert.deepEqual(await row.boundingBox(), before)
    await console.click(page.getByRole('button', { name: '1 new job' }))
    await page.getByRole('link', { name: 'second' }).waitFor()
    console.assertClean()
  })

  test('rows are walked, chosen and canceled by keys alone', async () => {
    const engine = createFakeEngine()
    await using app = await startTestApp({ settings: { workers: '1' }, overrides: { engine } })
    const client = createConsoleClient(app.url)
    const running = await client.submit(HANG, { metadata: { name: 'runs' } })
    await client.untilStatus(running, 'running')
    const waits = await client.submit(HANG, { metadata: { name: 'waits' } })
    await using console = await openConsole(browser, app.url, { path: '/jobs' })
    const { page } = console
    await page.getByRole('link', { name: 'waits' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('c')
    await client.untilStatus(waits, 'canceled')
    await page.getByRole('row', { name: /waits/ }).getByText('Canceled', { exact: true }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    assert.equal(await page.getByRole('checkbox', { name: 'Select runs' }).isChecked(), true)
    await page.keyboard.press('Escape')
    assert.equal(await page.getByRole('region', { name: 'Selection' }).count(), 0)
    assert.equal(console.clicks, 0)
    console.assertClean()
  })

  test('names that pretend to be markup are shown as the text they are', async () => {
    await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
    const client = createConsoleClient(app.url)
    await client.untilStatus(await client.submit(VALUE, { metadata: { name: HOSTILE, tag: HOSTILE } }), 'succeeded')
    await using console = await openConsole(browser, app.url, { path: '/jobs' })
    const { page } = console
    await page.getByRole('table', { name: 'Jobs' }).getByRole('link', { name: HOSTILE }).waitFor()
    assert.equal(await page.locator('img[src=x]').count(), 0)
    assert.equal(await page.title(), 'Jobs · Atelier')
    console.assertClean()
  })
})
