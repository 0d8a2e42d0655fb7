/** Answers that are older than what the stream has told meanwhile: a page shows the newer state in the end, without being loaded again. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { type SharedApp, startShared } from '../support/app/start-shared.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'

const VALUE = { '1': { class_type: 'FakeValue', inputs: { value: 1, key: 'k' } } }
const MAKES = {
  '2': { class_type: 'FakeGate', inputs: {} },
  '3': { class_type: 'FakeFile', inputs: { filename: 'made.txt', folder: 'output', key: 'text', text: 'made' } },
}

/** The next answer of this path, taken from the service at once and given to the page when the test says so; `skipped`: not the first few. */
async function holdAnswer(page: Page, path: string, skipped = 0) {
  const taken = Promise.withResolvers<void>()
  const given = Promise.withResolvers<void>()
  let asked = 0
  await page.route(
    (url) => url.pathname === path,
    async (route) => {
      if (asked++ !== skipped) return route.continue()
      const response = await route.fetch()
      taken.resolve()
      await given.promise
      await route.fulfill({ response })
    },
  )
  return { taken: taken.promise, give: given.resolve }
}

describe('an answer that is older than the news of the stream', { skip: withoutBrowser }, () => {
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

  async function openAccount(id: string) {
    const tenant = await shared.account(id, { concurrentJobs: 1 })
    const client = createConsoleClient(shared.url, tenant.key)
    const begin = async (name: string) => {
      const job = await client.submit(MAKES, { metadata: { name } })
      await client.untilStatus(job, 'running')
      return job
    }
    const open = (path = '') => openConsole(browser, shared.url, { path, credential: tenant.key })
    return { tenant, client, begin, open }
  }

  test('Home shows the results of a job that ended while its results were first asked for', async () => {
    const { begin, open } = await openAccount('results')
    await begin('maker')
    await using console = await open('/settings')
    const { page } = console
    const outputs = await holdAnswer(page, '/console/v1/outputs')
    await console.go('/')
    await outputs.taken
    shared.engine.openGate()
    // This figure comes with the counts, as does the news that there are results.
    await page.getByRole('link', { name: '0 running' }).waitFor()
    outputs.give()
    await page.getByRole('region', { name: 'Newest results' }).getByRole('listitem').waitFor()
    console.assertClean()
  })

  test('the page of a batch shows the end of a job that ended while the batch was first asked for', async () => {
    const { tenant, client, open } = await openAccount('batch')
    const body = JSON.stringify({ jobs: [{ workflow: MAKES, metadata: { name: 'of the batch' } }] })
    const { json: batch } = await tenant.call('/api/v2/jobs/batch', { method: 'POST', body })
    await client.untilStatus(batch.items[0].job_id, 'running')
    await using console = await open()
    const { page } = console
    await page.getByText('live', { exact: true }).waitFor()
    const held = await holdAnswer(page, `/api/v2/batches/${batch.id}`)
    await console.go(`/batches/${batch.id}`)
    await held.taken
    const home = await console.watched.context.newPage()
    await home.goto(`${shared.url}/console`)
    const running = home.getByRole('region', { name: 'Running' })
    await running.getByRole('link', { name: 'of the batch', exact: true }).waitFor()
    shared.engine.openGate()
    // Pages of one browser share the stream: what this one shows, the other has heard.
    await running.getByRole('link', { name: 'of the batch', exact: true }).waitFor({ state: 'detached' })
    held.give()
    await page.getByText('1 succeeded').waitFor()
    console.assertClean()
  })

  test('the list of jobs has a job that came between its first answer and the greeting of the stream', async () => {
    const { client, open } = await openAccount('list')
    await client.untilStatus(await client.submit(VALUE, { metadata: { name: 'known' } }), 'succeeded')
    await using console = await open('/settings')
    const { page } = console
    const list = await holdAnswer(page, '/console/v1/jobs')
    const submitted = Promise.withResolvers<void>()
    await page.route(
      (url) => url.pathname === '/console/v1/events',
      async (route) => {
        await submitted.promise
        await route.continue()
      },
    )
    await page.goto(`${shared.url}/console/jobs`)
    await list.taken
    await client.untilStatus(await client.submit(VALUE, { metadata: { name: 'between' } }), 'succeeded')
    submitted.resolve()
    await page.getByText('live', { exact: true }).waitFor()
    list.give()
    await page.getByRole('link', { name: 'between' }).waitFor()
    assert.equal(await page.getByRole('link', { name: 'between' }).count(), 1)
    console.assertClean()
  })

  test('counts that were told during a pause are shown when it ends', async () => {
    const { begin, open } = await openAccount('pause')
    await begin('maker')
    await using console = await open()
    const { page } = console
    await page.getByRole('link', { name: '1 running' }).waitFor()
    await page.getByText('live', { exact: true }).click()
    await page.getByText('paused', { exact: true }).waitFor()
    const other = await console.watched.context.newPage()
    await other.goto(`${shared.url}/console`)
    await other.getByRole('link', { name: '1 running' }).waitFor()
    shared.engine.openGate()
    // Pages of one browser share the stream: what this one shows, the other has heard.
    await other.getByRole('link', { name: '0 running' }).waitFor()
    assert.equal(await page.getByRole('link', { name: '1 running' }).isVisible(), true)
    await page.getByText('paused', { exact: true }).click()
    await page.getByRole('link', { name: '0 running' }).waitFor()
    console.assertClean()
  })

  test('a form that is being opened is not covered by the one before, whose fields it would empty', async () => {
    const { client, open } = await openAccount('forms')
    const submit = (title: string) => client.submit({ '1': { ...VALUE['1'], _meta: { title } } })
    const [first, second] = [await submit('First'), await submit('Second')]
    await using console = await open(`/run?from=${first}`)
    const { page } = console
    const shown = (title: string) => page.getByRole('group', { name: new RegExp(`^${title}`) })
    await shown('First').waitFor()
    const job = await holdAnswer(page, `/console/v1/jobs/${second}`)
    await console.go(`/run?from=${second}`)
    await job.taken
    await shown('First').waitFor({ state: 'detached' })
    job.give()
    await shown('Second').waitFor()
    console.assertClean()
  })

  test('what the stream tells of a node is not taken back by an answer from before', async () => {
    const { client, open } = await openAccount('nodes')
    const gate = (title: string) => ({ class_type: 'FakeGate', inputs: {}, _meta: { title } })
    const id = await client.submit({ '1': gate('First'), '2': gate('Second') })
    await client.untilStatus(id, 'running')
    await using console = await open('/settings')
    const { page } = console
    // The page asks once more when the stream of the job is open.
    const path = `/console/v1/jobs/${id}/nodes`
    const nodes = await holdAnswer(page, path, 1)
    await console.go(`/jobs/${id}#graph`)
    await nodes.taken
    await page.getByRole('row', { name: /First.* running/ }).waitFor()
    shared.engine.openGate()
    await page.getByRole('row', { name: /First.* done/ }).waitFor()
    const answered = page.waitForResponse((response) => new URL(response.url()).pathname === path)
    nodes.give()
    await (await answered).finished()
    // A turn of the page later it has taken the answer.
    await page.evaluate('new Promise((resolve) => setTimeout(() => requestAnimationFrame(resolve), 100))')
    await page.getByRole('row', { name: /First.* done/ }).waitFor()
    shared.engine.openGate()
    await client.untilStatus(id, 'succeeded')
    console.assertClean()
  })
})
