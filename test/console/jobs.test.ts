import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type SharedApp, startShared } from '../support/app/start-shared.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'

const FAIL = { '4': { class_type: 'FakeFail', inputs: {} } }
const VALUE = { '1': { class_type: 'FakeValue', inputs: { value: 1, key: 'k' } } }
const HANG = { '2': { class_type: 'FakeHang', inputs: {} } }

describe('the list of jobs', { skip: withoutBrowser }, () => {
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

  /** Each test has an account, and so a list, of its own. */
  async function openList(account: string) {
    const { key, call } = await shared.account(account, { concurrentJobs: 1 })
    const client = createConsoleClient(shared.url, key)
    return {
      ...{ client, call },
      open: (path: string) => openConsole(browser, shared.url, { path, credential: key }),
    }
  }

  test('filters live in the address, say what they found, and can be taken away', async () => {
    const { client, open } = await openList('filters')
    await client.untilStatus(await client.submit(VALUE, { metadata: { name: 'good' } }), 'succeeded')
    await client.untilStatus(await client.submit(FAIL, { metadata: { name: 'bad', user: '7' } }), 'failed')
    await using console = await open('/jobs?status=failed&meta.user=8')
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
    const { client, open } = await openList('rows')
    await client.untilStatus(await client.submit(VALUE, { metadata: { name: 'first' } }), 'succeeded')
    await using console = await open('/jobs')
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
    const { client, open } = await openList('keys')
    const running = await client.submit(HANG, { metadata: { name: 'runs' } })
    await client.untilStatus(running, 'running')
    const waits = await client.submit(HANG, { metadata: { name: 'waits' } })
    await using console = await open('/jobs')
    const { page } = console
    await page.getByRole('link', { name: 'waits' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('c')
    await client.untilStatus(waits, 'canceled')
    await page.getByRole('row', { name: /waits/ }).getByText('Canceled', { exact: true }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.getByRole('checkbox', { name: 'Select runs', checked: true }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('region', { name: 'Selection' }).waitFor({ state: 'detached' })
    assert.equal(console.clicks, 0)
    console.assertClean()
  })

  test('a job leads to its batch: how far all are, what was refused, an archive of what they made, and an end to the rest', async () => {
    const { client, open, call } = await openList('batch')
    const save = { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } }
    const jobs = [save, HANG, HANG, { '9': { class_type: 'NoSuchClass', inputs: {} } }].map((workflow) => ({
      workflow,
    }))
    const batch = await call('/api/v2/jobs/batch', { method: 'POST', body: JSON.stringify({ mode: 'per_item', jobs }) })
    const [made = '', runs = ''] = batch.json.items.map(({ job_id }: { readonly job_id: string }) => job_id)
    await client.untilStatus(made, 'succeeded')
    await client.untilStatus(runs, 'running')
    await using console = await open(`/jobs/${made}`)
    const { page } = console
    await console.click(page.getByRole('link', { name: 'of a batch' }))
    await page.getByRole('heading', { name: 'Batch of 3 jobs' }).waitFor()
    const rows = page.getByRole('list', { name: 'Jobs of this batch' }).getByRole('listitem')
    await rows.nth(3).waitFor()
    assert.equal(await rows.count(), 4)
    await rows.nth(1).getByText('Running').waitFor()
    await rows.nth(3).getByText('refused').waitFor()
    assert.equal(
      await page.getByRole('progressbar', { name: 'Progress of the batch' }).getAttribute('aria-valuenow'),
      '33',
    )
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      console.click(page.getByRole('link', { name: 'Download all' })),
    ])
    assert.equal(download.suggestedFilename(), `batch-${batch.json.id}.zip`)
    await console.click(page.getByRole('button', { name: 'Cancel 2…' }))
    await console.click(page.getByRole('dialog').getByRole('button', { name: 'Cancel 2 jobs' }))
    await page.getByText('2 canceled').waitFor()
    await page.getByText('100 %').waitFor()
    assert.equal(await page.getByRole('button', { name: /^Cancel/ }).count(), 0)
    console.assertClean()
  })
})
