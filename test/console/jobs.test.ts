import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type SharedApp, startShared } from '../support/app/start-shared.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'
import { waitUntil } from '../support/wait-until.ts'

const FAIL = { '4': { class_type: 'FakeFail', inputs: {} } }
const VALUE = { '1': { class_type: 'FakeValue', inputs: { value: 1, key: 'k' } } }
const AT_WORK = {
  ...{ id: '0199b3f4-1d2e-7a3b-8c4d-5e6f70819234', action: 'rerun', filter: {}, job_ids: null, only_waiting: false },
  ...{ priority: null, has_more: false, total: 8, done: 2, skipped: 0, refused: 0, progress: 0.25, state: 'working' },
  ...{ reason: { code: 'queue_full', message: 'the queue is full' }, parts: 1, created_at: '2026-01-01T00:00:00.000Z' },
  ...{ ended_at: null, expires_at: '2026-01-08T00:00:00.000Z' },
}
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
    const { key, call } = await shared.account(account, { concurrentJobs: 1, queuedJobs: 1000 })
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

  test('many are chosen by a range or by all that match, counted before, and dealt with by the service when the page is gone', async () => {
    const { open, call } = await openList('many')
    const jobs = Array.from({ length: 120 }, (_, each) => ({ workflow: FAIL, metadata: { name: `job ${each}` } }))
    const { json: batch } = await call('/api/v2/jobs/batch', { method: 'POST', body: JSON.stringify({ jobs }) })
    await waitUntil(async () => (await call(`/api/v2/batches/${batch.id}`)).json.is_done)
    await using console = await open('/jobs?status=failed')
    const { page } = console
    const boxes = page.getByRole('checkbox', { name: /^Select job/ })
    const chosen = page.getByRole('region', { name: 'Selection' })
    await console.click(boxes.nth(1))
    await boxes.nth(4).click({ modifiers: ['Shift'] })
    await chosen.getByText('4 jobs selected').waitFor()
    assert.equal(await page.getByRole('checkbox', { name: /^Select job/, checked: true }).count(), 4)
    // By keys alone the same: from the row that was chosen last to the one that is current.
    for (let step = 0; step < 2; step += 1) await page.keyboard.press('j')
    await page.keyboard.press('Shift+X')
    await chosen.getByText('6 jobs selected').waitFor()
    await console.click(page.getByRole('checkbox', { name: 'Select all that are shown' }))
    await chosen.getByText('100 jobs selected').waitFor()
    await console.click(chosen.getByRole('button', { name: 'Select all 120 that match' }))
    await chosen.getByText('All 120 matching jobs selected').waitFor()
    await console.click(chosen.getByRole('button', { name: 'Run 120 again…' }))
    await console.click(page.getByRole('dialog').getByRole('button', { name: 'Run 120 jobs again' }))
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    console.assertClean()
    await page.goto('about:blank')
    const action = await waitUntil(async () => {
      const [latest] = (await call('/api/v2/bulk-actions')).json.bulk_actions
      return latest.state === 'done' ? latest : null
    })
    assert.deepEqual([action.done, action.total], [120, 120])
    await page.goto(`${shared.url}/console/bulk`)
    await console.click(page.getByRole('link', { name: '120 jobs submitted again' }))
    await page.getByRole('row', { name: /done/ }).first().waitFor()
    console.assertClean()
  })

  test('a filter is kept under a name, found by commands, and removed; a search is completed by what jobs have', async () => {
    const { client, open } = await openList('views')
    await client.untilStatus(await client.submit(FAIL, { metadata: { name: 'bad', scene: '4321' } }), 'failed')
    await using console = await open('/jobs?status=failed&meta.scene=4321')
    const { page } = console
    await console.click(page.getByRole('button', { name: 'Saved views' }))
    await console.click(page.getByRole('menuitem', { name: 'Save this view…' }))
    await page.getByRole('textbox', { name: 'Name' }).fill('Scene 4321')
    await page.keyboard.press('Enter')
    await page.getByText('Saved under Views.').waitFor()
    await page.goto(`${shared.url}/console`)
    await page.getByLabel('Search jobs').waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Command' }).fill('scene 4321')
    await console.click(page.getByRole('option', { name: 'view Scene 4321' }))
    await page.getByRole('button', { name: 'Remove filter scene=4321' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Command' }).fill('bad')
    await console.click(page.getByRole('option', { name: /^job bad · failed/ }))
    await page.getByRole('heading', { name: 'bad' }).waitFor()
    await page.keyboard.press('/')
    const offered = () =>
      page.evaluate<string[]>(`[...document.querySelectorAll('#search-words option')].map(({ value }) => value)`)
    await page.keyboard.insertText('status=failed sce')
    await waitUntil(async () => (await offered()).includes('status=failed scene='))
    await page.keyboard.insertText('ne=4')
    await waitUntil(async () => (await offered()).join() === 'status=failed scene=4321')
    await page.goto(`${shared.url}/console/jobs`)
    await console.click(page.getByRole('button', { name: 'Saved views' }))
    await console.click(page.getByRole('menuitem', { name: 'Remove a view…' }))
    await console.click(page.getByRole('dialog').getByRole('button', { name: 'Remove Scene 4321' }))
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    console.assertClean()
  })

  test('waiting jobs get a priority together, and what is at work is shown with an end to it', async () => {
    const { client, open, call } = await openList('priority')
    const running = await client.submit(HANG, { metadata: { name: 'runs' } })
    await client.untilStatus(running, 'running')
    const waits = [await client.submit(HANG, { metadata: { name: 'one' } }), await client.submit(HANG)]
    await using console = await open('/jobs?status=queued')
    const { page } = console
    await page.getByRole('link', { name: 'one' }).waitFor()
    await console.click(page.getByRole('checkbox', { name: 'Select all that are shown' }))
    await console.click(page.getByRole('button', { name: 'Priority…' }))
    await page.getByRole('spinbutton', { name: 'Priority' }).fill('33')
    await console.click(page.getByRole('dialog').getByRole('button', { name: 'Move 2 jobs' }))
    await page.getByText('2 jobs moved.').waitFor()
    assert.equal((await call(`/api/v2/jobs/${waits[0]}`)).json.priority, 33)
    // A full queue keeps this one at work.
    await page.route('**/api/v2/bulk-actions', (route) => route.fulfill({ json: { bulk_actions: [AT_WORK] } }))
    await page.route(`**/api/v2/bulk-actions/${AT_WORK.id}`, (route) => route.fulfill({ json: AT_WORK }))
    await page.route(`**/api/v2/bulk-actions/${AT_WORK.id}/stop`, (route) =>
      route.fulfill({ json: { ...AT_WORK, state: 'stopped' } }),
    )
    await page.reload()
    const strip = page.getByRole('region', { name: 'At work on many jobs' })
    await strip.getByText('waits: the queue is full').waitFor()
    assert.equal(await strip.getByRole('progressbar').getAttribute('aria-valuenow'), '25')
    await console.click(strip.getByRole('button', { name: 'Stop' }))
    await strip.waitFor({ state: 'detached' })
    console.assertClean()
    // It would keep a worker from the tests behind this one.
    await call(`/api/v2/jobs/${running}/cancel`, { method: 'POST' })
    await client.untilStatus(running, 'canceled')
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
