import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp } from '../support/app/start-app.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { call } from '../support/clients/call.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'
import { createFakeEngine } from '../support/engines/fake-engine.ts'

const HANG = { '2': { class_type: 'FakeHang', inputs: {} } }
const VALUE = {
  '1': { class_type: 'FakeValue', inputs: { value: 'a first text', key: 'text' }, _meta: { title: 'Words' } },
}

describe('deeds of the console', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  before(async () => {
    browser = await launchBrowser()
  })
  after(() => browser[Symbol.asyncDispose]())

  test('all that wait are canceled in two clicks, with their number said before, and what runs goes on', async () => {
    const engine = createFakeEngine()
    await using app = await startTestApp({ settings: { workers: '1' }, overrides: { engine } })
    const client = createConsoleClient(app.url)
    const runs = await client.submit(HANG, { metadata: { name: 'runs' } })
    await client.untilStatus(runs, 'running')
    const waiting = [await client.submit(HANG), await client.submit(HANG), await client.submit(HANG)]
    await using console = await openConsole(browser, app.url)
    const { page } = console
    await console.click(page.getByRole('button', { name: 'Cancel all that wait…' }))
    await console.click(page.getByRole('dialog').getByRole('button', { name: 'Cancel 3 waiting jobs' }))
    for (const id of waiting) await client.untilStatus(id, 'canceled')
    await page.getByText('Nothing waits.').waitFor()
    await page.getByRole('region', { name: 'Running' }).getByRole('link', { name: 'runs', exact: true }).waitFor()
    assert.equal(console.clicks, 2)
    console.assertClean()
  })

  test('a job is run again with another text in two clicks', async () => {
    await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
    const client = createConsoleClient(app.url)
    const id = await client.submit(VALUE, { metadata: { name: 'poster' } })
    await client.untilStatus(id, 'succeeded')
    await using console = await openConsole(browser, app.url, { path: `/jobs/${id}` })
    const { page } = console
    await console.click(page.getByRole('link', { name: 'Run again…' }))
    await page
      .getByRole('group', { name: /^Words/ })
      .getByRole('textbox', { name: 'value' })
      .fill('another text')
    await console.click(page.getByRole('button', { name: /^Run/ }))
    const result = page.getByRole('complementary', { name: 'Result' })
    await result.getByText('Succeeded').waitFor()
    assert.equal(console.clicks, 2)
    const href = (await result.getByRole('link', { name: 'Open the job' }).getAttribute('href')) ?? ''
    const made = href.split('/').at(-1) ?? ''
    assert.notEqual(made, id)
    const { json } = await call(app.url, `/api/v2/jobs/${made}/workflow`)
    assert.equal(json.workflow['1'].inputs.value, 'another text')
    console.assertClean()
  })

  test('the example runs with one press on a service that never ran anything', async () => {
    await using app = await startTestApp()
    await using console = await openConsole(browser, app.url)
    const { page } = console
    await console.click(
      page.getByRole('region', { name: 'See it work' }).getByRole('button', { name: 'Run the example' }),
    )
    await page.getByRole('button', { name: /^Enlarge colour-card/ }).waitFor()
    assert.equal(console.clicks, 1)
    console.assertClean()
  })
})
