import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { ADMIN_TOKEN, startShared } from '../support/app/start-shared.ts'
import { assertAccessible } from '../support/browser/axe.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { type ConsolePage, openConsole } from '../support/browser/console-page.ts'
import { createMouse } from '../support/browser/hand.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'
import { waitUntil } from '../support/wait-until.ts'

const VALUE = { '1': { class_type: 'FakeValue', inputs: { value: 1, key: 'k' } } }

/** Each begins at the overview; its clicks are counted. */
function operatorTasks(console: ConsolePage) {
  const { page } = console
  const hand = createMouse(page)
  async function task(body: () => Promise<void>): Promise<void> {
    await console.go('/operator')
    await page.getByRole('heading', { name: 'Pools' }).waitFor()
    hand.begin()
    await body()
    assert.ok(hand.clicks <= 3, `it took ${hand.clicks} clicks`)
  }
  return { hand, task, tabs: page.getByRole('navigation', { name: 'Operator' }) }
}

describe('places of the console', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  let app: TestApp
  before(async () => {
    browser = await launchBrowser()
    app = await startTestApp()
  })
  after(async () => {
    // Closed also when the browser complains of a page: an open service would keep the process.
    await using _service = app
    await browser[Symbol.asyncDispose]()
  })

  test('calls of models that can be asked for again are listed, with what became of them', async () => {
    const answer = await fetch(`${app.url}/v2/models/local/text-card`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'once' },
      body: '{"text":"A card"}',
    })
    assert.equal(answer.status, 200, await answer.text())
    await using console = await openConsole(browser, app.url, { path: '/models' })
    const { page } = console
    await console.click(page.getByRole('link', { name: 'Calls' }))
    await page.getByRole('row', { name: /local\/text-card succeeded/ }).waitFor()
    await console.click(page.getByRole('link', { name: 'Failed' }))
    await page.getByText('No calls in this state').waitFor()
    console.assertClean()
  })

  test('the reference beside it is searched: operations that hold every word stay, and the list of them stays in view', async () => {
    await using watched = await browser.open()
    const { page } = watched
    await page.goto(`${app.url}/docs`)
    const shown = page.locator('nav li:visible')
    const all = await shown.count()
    await page.keyboard.press('/')
    await page.keyboard.type('tus checksum')
    await page.getByText(/^\d+ of \d+$/).waitFor()
    const found = await shown.allTextContents()
    assert.ok(found.length > 0 && found.length < all, found.join(', '))
    assert.ok(
      found.every((entry) => entry.includes('/uploads')),
      found.join(', '),
    )
    assert.equal(await page.locator('section:visible').count(), found.length)
    await page.keyboard.press('Escape')
    assert.equal(await shown.count(), all)
    await page.evaluate('scrollTo(0, document.body.scrollHeight)')
    assert.ok(await page.locator('nav input').isVisible())
    assert.ok(await page.evaluate("Math.abs(document.querySelector('nav').getBoundingClientRect().top) < 2"))
    watched.assertClean()
  })

  test('a request of the reference is sent from its page, as its example or as somebody changed it', async () => {
    await using watched = await browser.open()
    const { page } = watched
    await page.goto(`${app.url}/docs`)
    const list = page.locator('section#listJobs')
    await list.getByRole('button', { name: 'Try it' }).click()
    await list.getByLabel('limit').fill('1')
    await list.getByRole('button', { name: 'Send' }).click()
    await list.getByText(/^200 OK\s+\{\s+"jobs"/).waitFor()
    const submit = page.locator('section#postJobs')
    await submit.getByRole('button', { name: 'Try it' }).click()
    await submit.getByLabel('body').fill('{"workflow": {}}')
    await submit.getByRole('button', { name: 'Send' }).click()
    await submit.getByText(/^422 [^{]+\{\s+"error": \{\s+"code": "invalid_workflow"/).waitFor()
    await page.goto(`${app.url}/docs/images`)
    await page.getByRole('button', { name: 'Try it' }).first().click()
    await assertAccessible(page, 'a page of the reference')
    watched.assertClean([/422/])
  })

  test('what only one process knows says so: bars since its start, and the log of an engine that another drives', async () => {
    await using console = await openConsole(browser, app.url, { path: '/operator' })
    const { page } = console
    await page.getByText(/(Known from .* on|Nothing is known yet): each process of the service looks/).waitFor()
    const answer = (json: object) => ({ contentType: 'application/json', body: JSON.stringify(json) })
    await page.route('**/admin/v1/engines/*/log*', (route) =>
      route.fulfill(answer({ driven_by: 'process-2', is_kept: false, began_at: null, lines: [] })),
    )
    const first = { id: 'process-1', role: 'all', host: 'web-1', url: 'http://10.0.0.1:8189' }
    const nodes = [first, { id: 'process-2', role: 'all', host: 'gpu-2', url: 'http://10.0.0.2:8189' }]
    await page.route('**/admin/v1/nodes', (route) => route.fulfill(answer({ nodes })))
    await page.goto(`${app.url}/console/operator/engines/embedded`)
    await page.getByText('process-2').waitFor()
    const said = await page.locator('main').innerText()
    assert.match(said, /the process that drives it: process-2 on gpu-2 \(http:\/\/10\.0\.0\.2:8189\)/)
    assert.match(said, /GET \/admin\/v1\/engines\/embedded\/log/)
    console.assertClean()
  })

  test('the operator of a shared service makes a key, which is shown once, and revokes it', async () => {
    await using shared = await startShared()
    await shared.account('acme')
    await using console = await openConsole(browser, shared.url, {
      path: '/operator/accounts',
      credential: ADMIN_TOKEN,
    })
    const { page } = console
    await console.click(page.getByRole('link', { name: 'acme' }))
    await console.click(page.getByRole('button', { name: 'New key' }))
    const secret = (await page.getByRole('dialog').locator('code').textContent()) ?? ''
    const asks = () => fetch(`${shared.url}/api/v2/jobs`, { headers: { authorization: `Bearer ${secret}` } })
    assert.equal((await asks()).status, 200)
    await page.getByRole('button', { name: 'I have it' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.equal((await page.content()).includes(secret), false)
    await page
      .getByRole('listitem')
      .filter({ hasText: 'made in the console' })
      .getByRole('button', { name: 'Revoke' })
      .click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('revoked').waitFor()
    assert.equal((await asks()).status, 401)
    console.assertClean()
  })

  test('within three clicks the operator makes a customer, finds and refunds a job of it, and reads what it used and owes', async () => {
    const pools = { '*': { perSecondMicros: 500, minimumMicros: 1000, holdMicros: 1000 } }
    await using shared = await startShared({ prices: JSON.stringify({ pools }) })
    await using console = await openConsole(browser, shared.url, { path: '/operator', credential: ADMIN_TOKEN })
    const { page } = console
    const { hand, tabs, task } = operatorTasks(console)
    await task(async () => {
      await hand.press(tabs.getByRole('link', { name: 'Accounts' }))
      await hand.press(page.getByRole('button', { name: 'New account' }))
      const dialog = page.getByRole('dialog')
      await hand.fill(dialog.getByRole('textbox', { name: 'Id' }), 'newcomer')
      await hand.fill(dialog.getByRole('textbox', { name: /^Credit/ }), '12.50')
      await hand.press(dialog.getByRole('button', { name: 'Make it, with a key' }))
      await page.getByRole('button', { name: 'I have it' }).waitFor()
    })
    const key = (await page.getByRole('dialog').locator('code').textContent()) ?? ''
    await page.getByRole('button', { name: 'I have it' }).click()
    await page.getByText('$12.50').first().waitFor()
    const client = createConsoleClient(shared.url, key)
    for (const order of ['4711', '4712'])
      await client.untilStatus(await client.submit(VALUE, { metadata: { order } }), 'succeeded')
    await task(async () => {
      await page.getByRole('searchbox', { name: 'Find a job of any account' }).fill('order=4712')
      await page.keyboard.press('Enter')
      await hand.press(
        page
          .getByRole('row', { name: /newcomer/ })
          .getByRole('link')
          .first(),
      )
      await hand.press(page.getByRole('button', { name: 'Refund…' }))
      await hand.press(page.getByRole('dialog').getByRole('button', { name: 'Refund' }))
      await page.getByText('Refunded.').waitFor()
    })
    const { entries } = (await shared.admin('GET', '/accounts/newcomer/entries')).json
    assert.equal(entries.filter(({ kind }: { readonly kind: string }) => kind === 'refund').length, 1)
    await task(async () => {
      await hand.press(tabs.getByRole('link', { name: 'Usage' }))
      await hand.press(page.getByRole('navigation', { name: 'Time' }).getByRole('link', { name: 'Today' }))
      await hand.press(page.getByRole('link', { name: 'newcomer' }))
      await page.getByRole('heading', { name: 'newcomer' }).waitFor()
    })
    await task(async () => {
      await hand.press(tabs.getByRole('link', { name: 'Accounts' }))
      await hand.press(page.getByRole('link', { name: 'newcomer' }))
      await hand.press(page.getByRole('link', { name: /^Statement of/ }))
      await page.getByText('At the beginning').waitFor()
    })
    console.assertClean()
  })

  test('within three clicks the operator pauses a pool, sees why a job of an account waits, and resumes the pool', async () => {
    await using shared = await startShared()
    const tenant = await shared.account('acme')
    const client = createConsoleClient(shared.url, tenant.key)
    await using console = await openConsole(browser, shared.url, { path: '/operator', credential: ADMIN_TOKEN })
    const { page } = console
    const { hand, task } = operatorTasks(console)
    const row = page.getByRole('row', { name: /^default/ })
    await task(async () => {
      await hand.press(row.getByRole('button', { name: 'Pause…' }))
      await hand.press(page.getByRole('dialog').getByRole('button', { name: 'Pause' }))
      await row.getByText('paused').waitFor()
    })
    const waits = await client.submit(VALUE)
    await task(async () => {
      await hand.press(page.getByRole('link', { name: /waiting/ }))
      await hand.press(page.getByRole('row', { name: /acme/ }).getByRole('link').first())
      await page.getByText('Its pool was paused').waitFor()
    })
    await task(async () => {
      await hand.press(row.getByRole('button', { name: 'Resume' }))
      await row.getByText('paused').waitFor({ state: 'detached' })
    })
    await client.untilStatus(waits, 'succeeded')
    console.assertClean()
  })

  test('within three clicks the operator runs all again that failed for one reason', async () => {
    await using shared = await startShared()
    const tenant = await shared.account('acme')
    const client = createConsoleClient(shared.url, tenant.key)
    const fails = { '4': { class_type: 'FakeFail', inputs: {} } }
    for (let each = 0; each < 3; each += 1) await client.untilStatus(await client.submit(fails), 'failed')
    await using console = await openConsole(browser, shared.url, { path: '/operator', credential: ADMIN_TOKEN })
    const { page } = console
    const { hand, task } = operatorTasks(console)
    await task(async () => {
      await hand.press(page.getByRole('link', { name: /failed/ }))
      await hand.press(page.getByRole('region', { name: 'Why they failed' }).getByRole('button', { name: /^Run all/ }))
      await hand.press(page.getByRole('dialog').getByRole('button', { name: 'Run 3 jobs again' }))
      await page.getByText('3 jobs submitted again.').waitFor()
    })
    const { bulk_actions: made } = (await shared.admin('GET', '/bulk-actions')).json
    assert.deepEqual([made.length, made[0].done], [1, 3])
    console.assertClean()
  })

  test('the operator pauses the queue of an account, and the whole service, and resumes them', async () => {
    await using shared = await startShared()
    const tenant = await shared.account('acme')
    const client = createConsoleClient(shared.url, tenant.key)
    const path = '/operator/accounts/acme'
    await using console = await openConsole(browser, shared.url, { path, credential: ADMIN_TOKEN })
    const { page } = console
    const confirmed = () => page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Pause its queue…' }).click()
    await confirmed()
    await page.getByText('paused by an operator').waitFor()
    const waits = await client.submit(VALUE)
    assert.equal((await client.ask('GET', '/jobs/{id}', `/jobs/${waits}`)).json.wait.reason, 'paused')
    await page.getByRole('button', { name: 'Resume its queue' }).click()
    await client.untilStatus(waits, 'succeeded')
    await page.goto(new URL('/console/operator', shared.url).href)
    await page.getByRole('button', { name: 'Pause the service…' }).click()
    await confirmed()
    await page.getByText('The whole service is paused').waitFor()
    const later = await client.submit(VALUE)
    assert.equal((await client.ask('GET', '/jobs/{id}', `/jobs/${later}`)).json.wait.reason, 'paused')
    await page.getByRole('button', { name: 'Resume the service' }).click()
    await client.untilStatus(later, 'succeeded')
    console.assertClean()
  })

  test('the operator finds the jobs of all accounts, sees why one waits, and cancels those that wait', async () => {
    await using shared = await startShared({ workers: '1' })
    const body = JSON.stringify({ workflow: { '2': { class_type: 'FakeGate', inputs: {} } } })
    for (const name of ['acme', 'bolt']) {
      const tenant = await shared.account(name)
      const submit = async () => {
        const answer = await tenant.call('/api/v2/jobs', { method: 'POST', body })
        assert.equal(answer.status, 201, answer.text)
      }
      await submit()
      await submit()
    }
    await shared.engine.untilRuns(1)
    await using console = await openConsole(browser, shared.url, { path: '/operator', credential: ADMIN_TOKEN })
    const { page } = console
    await page.getByRole('img', { name: /^Waiting, at most/ }).waitFor()
    await console.click(page.getByRole('navigation', { name: 'Operator' }).getByRole('link', { name: 'Jobs' }))
    await page.getByRole('row', { name: /Running .* acme/ }).waitFor()
    await page
      .getByRole('row', { name: /Waiting .* bolt/ })
      .first()
      .waitFor()
    await page
      .getByRole('row', { name: /Waiting/ })
      .first()
      .getByRole('link')
      .first()
      .click()
    await page.getByText('in the queue').waitFor()
    await page.goBack()
    await page.getByRole('button', { name: 'Cancel all…' }).click()
    await page.getByRole('dialog').getByRole('checkbox', { name: 'Leave those that run' }).check()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel 3 jobs' }).click()
    // The stream tells the page; nobody asks it to look again.
    await page
      .getByRole('row', { name: /Waiting/ })
      .first()
      .waitFor({ state: 'detached' })
    await page
      .getByRole('row', { name: /Running/ })
      .getByRole('link', { name: /embedded|fake/ })
      .click()
    await page.getByRole('heading', { name: 'Log' }).waitFor()
    await page.getByRole('row', { name: /Running/ }).waitFor()
    console.assertClean()
  })

  test('commands and keys lead everywhere', async () => {
    await using console = await openConsole(browser, app.url)
    const { page } = console
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Command' }).fill('settings')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Settings' }).waitFor()
    // The two keys belong together for a second and a half, which this machine may take between them.
    await waitUntil(async () => {
      await page.keyboard.press('g')
      await page.keyboard.press('j')
      return new URL(page.url()).pathname === '/console/jobs'
    })
    await page.getByText('No jobs yet').waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.equal(console.clicks, 0)
    console.assertClean()
  })
})
