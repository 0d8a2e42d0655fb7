import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { call } from '../support/clients/call.ts'
import { type ConsoleClient, createConsoleClient } from '../support/clients/console-client.ts'
import { createFakeEngine } from '../support/engines/fake-engine.ts'

const FAIL = {
  '1': { class_type: 'FakeSource', inputs: {}, _meta: { title: 'Source' } },
  '4': { class_type: 'FakeFail', inputs: { after: ['1', 0] }, _meta: { title: 'The bad one' } },
}
const HANG = { '2': { class_type: 'FakeHang', inputs: {} } }
const LOG = {
  '1': { class_type: 'FakeLog', inputs: { text: 'a line <b>bold</b> of the log\n', times: 40 } },
  '2': { class_type: 'FakeGate', inputs: {} },
  '3': { class_type: 'FakeValue', inputs: { value: 'SEED', key: 'seed' } },
}
const ENDS = {
  '2': { class_type: 'FakeGate', inputs: {} },
  '3': { class_type: 'FakeFile', inputs: { filename: 'made.txt', folder: 'output', key: 'text', text: 'made' } },
}
const LONG_SEED = '18446744073709551615'

describe('the page of a job', { skip: withoutBrowser }, () => {
  const engine = createFakeEngine()
  const promising = {
    run: engine.run.bind(engine),
    catalog: () => ({ ...engine.catalog(), repeatability: () => ({ build: '1', names: [] }) }),
    [Symbol.asyncDispose]: async () => {},
  }
  let browser: TestBrowser
  let app: TestApp
  let client: ConsoleClient
  before(async () => {
    browser = await launchBrowser()
    app = await startTestApp({ settings: { workers: '1' }, overrides: { engine: promising } })
    client = createConsoleClient(app.url)
  })
  after(async () => {
    // Closed also when the browser complains of a page: an open service would keep the process.
    await using _service = app
    await browser[Symbol.asyncDispose]()
  })

  test('one click from Home says why a job failed, at which node, and what to do', async () => {
    await client.untilStatus(await client.submit(FAIL, { metadata: { name: 'poster' } }), 'failed')
    await using console = await openConsole(browser, app.url)
    const { page } = console
    await console.click(page.getByRole('region', { name: 'Failed today' }).getByRole('link', { name: 'poster' }))
    const failure = page.getByRole('group', { name: 'Failure' })
    await failure.getByText('node_execution_error').waitFor()
    await failure.getByText('Next:').waitFor()
    await failure.getByRole('button', { name: /node 4, FakeFail/ }).waitFor()
    await page.getByRole('complementary', { name: 'Node 4' }).getByRole('heading', { name: 'The bad one' }).waitFor()
    assert.equal(await page.getByRole('tab', { selected: true }).textContent(), 'Graph')
    assert.equal(console.clicks, 1)
    console.assertClean()
  })

  test('a job that runs is followed to its end: its nodes, its log line by line, its workflow with every digit', async () => {
    // As text: a number of JavaScript has not that many digits.
    const body = JSON.stringify({ workflow: LOG, metadata: { name: 'long' } }).replace('"SEED"', LONG_SEED)
    const headers = { 'content-type': 'application/json' }
    const id = (await call(app.url, '/api/v2/jobs', { method: 'POST', headers, body })).json.id as string
    await client.untilStatus(id, 'running')
    await using console = await openConsole(browser, app.url, { path: `/jobs/${id}#logs` })
    const { page } = console
    await page.getByText('a line <b>bold</b> of the log').first().waitFor()
    await page.keyboard.press('2')
    await page.getByRole('row', { name: /FakeGate running/ }).waitFor()
    engine.openGate()
    await page.getByRole('row', { name: /FakeGate done/ }).waitFor()
    await page.getByText('Succeeded').waitFor()
    await page.keyboard.press('5')
    await page.getByRole('button', { name: 'JSON' }).click()
    await page.getByText(`"value": ${LONG_SEED}`).waitFor()
    console.assertClean()
  })

  test('an answer that is older than the news of the stream is asked for again', async () => {
    const id = await client.submit(ENDS, { metadata: { name: 'quick' } })
    await client.untilStatus(id, 'running')
    await using console = await openConsole(browser, app.url)
    const { page, watched } = console
    // The page asks while the job runs, and gets the answer when the stream has told of the end.
    const asked = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    await page.route(
      (url) => url.pathname.endsWith(`/v1/jobs/${id}`),
      async (route) => {
        const response = await route.fetch()
        asked.resolve()
        await ended.promise
        await route.fulfill({ response })
      },
      { times: 1 },
    )
    await page.getByRole('region', { name: 'Running' }).getByRole('link', { name: 'quick', exact: true }).click()
    await asked.promise
    // Pages of one browser share the stream: what this one shows, the other has heard.
    const home = await watched.context.newPage()
    await home.goto(app.url)
    await home.getByRole('region', { name: 'Running' }).getByRole('link', { name: 'quick', exact: true }).waitFor()
    engine.openGate()
    await home
      .getByRole('region', { name: 'Running' })
      .getByRole('link', { name: 'quick', exact: true })
      .waitFor({ state: 'detached' })
    ended.resolve()
    await page.getByText('made.txt').first().waitFor()
    console.assertClean()
  })

  test('a job that waits says why', async () => {
    const runs = await client.submit(HANG)
    await client.untilStatus(runs, 'running')
    const waits = await client.submit(HANG)
    await using console = await openConsole(browser, app.url, { path: `/jobs/${waits}` })
    const { page } = console
    await page.getByRole('group', { name: 'Why it waits' }).getByText('1st in the queue.').waitFor()
    await console.click(page.getByRole('button', { name: 'Cancel', exact: true }))
    await page.getByText('Canceled').first().waitFor()
    await client.untilStatus(waits, 'canceled')
    assert.equal(console.clicks, 1)
    await call(app.url, `/api/v2/jobs/${runs}/cancel`, { method: 'POST' })
    console.assertClean()
  })

  test('what is run from a form shows how far it is, and can be canceled there', async () => {
    await using console = await openConsole(browser, app.url, { path: '/run' })
    const { page } = console
    await page.getByLabel('Or paste one').fill(JSON.stringify(HANG))
    await page.getByRole('button', { name: 'Make a form of it' }).click()
    await page.getByRole('button', { name: /^Run/ }).click()
    const result = page.getByRole('complementary', { name: 'Result' })
    await result.getByText(/^\d+ %$/).waitFor()
    await result.getByRole('button', { name: 'Cancel' }).click()
    await result.getByText('Canceled').waitFor()
    console.assertClean()
  })

  test('a job that an earlier result answered says so, in the list and on its page, and leads to it', async () => {
    const save = { '1': { class_type: 'FakeValue', inputs: { value: 'once', key: 'k' } } }
    const first = await client.submit(save, { reuse: 'exact' })
    await client.untilStatus(first, 'succeeded')
    await client.submit(save, { reuse: 'exact', metadata: { name: 'again' } })
    await using console = await openConsole(browser, app.url, { path: '/jobs' })
    const { page } = console
    await page.getByRole('row', { name: /again.*reused/ }).waitFor()
    await console.click(page.getByRole('link', { name: 'again' }))
    await console.click(page.getByRole('link', { name: 'reused: the result of an earlier job' }))
    await page.waitForURL(`**/jobs/${first}`)
    console.assertClean()
  })

  test('an id that names no job says so and leads back to the list', async () => {
    await using console = await openConsole(browser, app.url, { path: '/jobs/01a1e425-d22d-72ea-a12e-1e3fcc93f8e2' })
    await console.page.getByText('This job is not here').waitFor()
    console.assertClean([/404/])
  })
})
