/**
 * axe finds nothing on any page in any state: full, empty, while it loads, and when the service fails. The pages are those of the
 * console's own table, so a new one is looked at from its first day.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Page, Route } from 'playwright-core'
import { ADMIN_TOKEN, type SharedApp, type Tenant } from '../support/app/start-shared.ts'
import { assertAccessible, findBarriers, WIDTHS } from '../support/browser/axe.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { type ConsolePage, openConsole } from '../support/browser/console-page.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'
import { deploy, type ReleasedApp, startReleased } from '../support/deployments/released-app.ts'
import { waitUntil } from '../support/wait-until.ts'

const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==',
  'base64',
)
const FAIL = {
  '1': { class_type: 'FakeSource', inputs: {}, _meta: { title: 'Source' } },
  '4': { class_type: 'FakeFail', inputs: { after: ['1', 0] }, _meta: { title: 'The bad one' } },
}
const HANG = { '2': { class_type: 'FakeHang', inputs: {} } }
const LOGS = {
  '1': { class_type: 'FakeLog', inputs: { text: 'a line of the log\n', times: 20 } },
  '3': { class_type: 'FakeValue', inputs: { value: 'words', key: 'text', after: ['1', 0] } },
}
const CARD = {
  '1': { class_type: 'FakeValue', inputs: { value: 'words', key: 'text' }, _meta: { title: '$headline' } },
}
const ENDPOINT_TABS = ['try', 'runs', 'usage', 'versions', 'code', 'share', 'settings']
const TABS = ['result', 'graph', 'timeline', 'logs', 'workflow', 'details']
const PRICES = '{"pools":{"*":{"perSecondMicros":1000,"minimumMicros":500,"holdMicros":500}}}'

const TABLE = readFileSync(new URL('../../console/src/pages/pages.tsx', import.meta.url), 'utf8')
const PATTERNS = [...TABLE.matchAll(/^ {2}\['(\/[^']*)'/gm)].map(([, pattern]) => pattern as string)

describe('the console for everybody', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  let released: ReleasedApp
  let shared: SharedApp
  let tenant: Tenant
  let ids: Readonly<Record<'failed' | 'made' | 'runs' | 'waits' | 'build' | 'deployment', string>>
  let batchId = ''
  let bulk: Readonly<Record<'own' | 'all', string>>
  let webhookId: string
  let paths: readonly string[]
  before(async () => {
    browser = await launchBrowser()
    released = await startReleased({ prices: PRICES, webhookPrivateNetwork: 'true', builds: 'all' })
    shared = released.app
    tenant = await shared.account('acme', { concurrentJobs: 1, creditFloorMicros: 0 })
    await shared.account('nobody')
    await shared.admin('POST', '/accounts/acme/grants', { micros: 9_000_000, id: 'start' })
    await shared.admin('POST', '/deployments', { id: 'posters', account_id: 'acme' })
    const client = createConsoleClient(shared.url, tenant.key)
    const failed = await client.submit(FAIL, { metadata: { name: 'poster', user: 'anna' } })
    await client.untilStatus(failed, 'failed')
    const made = await client.submit(LOGS, { metadata: { name: 'postcard' } })
    await client.untilStatus(made, 'succeeded')
    const runs = await client.submit(HANG, { metadata: { name: 'portrait' } })
    await client.untilStatus(runs, 'running')
    const waits = await client.submit(HANG, { metadata: { name: 'next' } })
    const { json: build } = await tenant.call('/builder/v1/builds', {
      method: 'POST',
      body: JSON.stringify({ name: 'studio', definition: { baseComfyVersion: 'v0.3.40' } }),
    })
    const targets = [{ os: 'linux', gpu: 'cpu' }]
    const cut = { method: 'POST', body: JSON.stringify({ targets }) }
    const { releaseId } = (await tenant.call(`/builder/v1/builds/${build.id}/releases`, cut)).json
    released.releases.add({ id: releaseId, version: 1, buildId: build.id, accountId: 'acme', isBroken: true })
    const deployed = await deploy(tenant, releaseId)
    await deployed.until(({ status }) => status === 'failed')
    ids = { failed, made, runs, waits, build: build.id, deployment: deployed.id }
    const form = new FormData()
    form.set('content_type', 'image/png')
    form.set('file_path', 'dot.png')
    form.set('file', new Blob([PICTURE], { type: 'image/png' }), 'dot.png')
    const headers = { authorization: `Bearer ${tenant.key}` }
    await fetch(`${shared.url}/api/v2/assets`, { method: 'POST', headers, body: form })
    await tenant.call('/console/v1/forms/card', {
      method: 'PUT',
      body: JSON.stringify({ workflow_text: JSON.stringify(LOGS) }),
    })
    const wish = JSON.stringify({ url: 'http://127.0.0.1:9/hooks', description: 'The till' })
    const jobs = [{ workflow: LOGS }, { workflow: { '9': { class_type: 'NoSuchClass', inputs: {} } } }]
    const many = JSON.stringify({ mode: 'per_item', jobs })
    batchId = (await tenant.call('/api/v2/jobs/batch', { method: 'POST', body: many })).json.id
    const again = { action: 'rerun', filter: { status: 'failed' } }
    bulk = {
      own: (await tenant.call('/api/v2/bulk-actions', { method: 'POST', body: JSON.stringify(again) })).json.id,
      all: (await shared.admin('POST', '/bulk-actions', again)).json.id,
    }
    webhookId = (await tenant.call('/api/v2/webhooks', { method: 'POST', body: wish })).json.id
    for (const value of ['one', 'two']) {
      const file = { '1': { ...CARD['1'], inputs: { ...CARD['1'].inputs, value } } }
      const published = await tenant.call('/api/v2/endpoints', {
        method: 'POST',
        body: JSON.stringify({ name: 'card', file, note: value }),
      })
      assert.equal(published.status, 201, published.text)
    }
    const [engine] = (await shared.admin('GET', '/engines')).json.engines
    paths = PATTERNS.map((pattern) => fillIn(pattern, engine.id))
  })
  after(async () => {
    // Closed also when the browser complains of a page: an open service would keep the process.
    await using _service = released
    await browser[Symbol.asyncDispose]()
  })

  /** An address for each pattern of the table. */
  function fillIn(pattern: string, engineId: string): string {
    const values: Readonly<Record<string, string>> = {
      '/jobs/:id': ids.failed,
      '/jobs/:a/diff/:b': `${ids.failed} ${ids.made}`,
      '/batches/:id': batchId,
      '/bulk/:id': bulk.own,
      '/operator/bulk/:id': bulk.all,
      '/run/:saved': 'card',
      '/endpoints/:name': 'card',
      '/publish/:name': 'card',
      '/environments/builds/:id': ids.build,
      '/environments/deployments/:id': ids.deployment,
      '/models/:provider/:model': 'sandbox image',
      '/webhooks/:id': webhookId,
      '/operator/jobs/:id': ids.failed,
      '/operator/accounts/:id': 'acme',
      '/operator/accounts/:id/statement': 'acme',
      '/operator/engines/:id': engineId,
      '/operator/deployments/:id': 'posters',
    }
    const parts = values[pattern]?.split(' ') ?? []
    return pattern.replaceAll(/:\w+/g, () => parts.shift() ?? assert.fail(`what stands in for ${pattern}?`))
  }

  /** What is found on all of these pages together. */
  async function visit(opened: ConsolePage, state: string, visited: readonly string[]): Promise<readonly string[]> {
    const found: string[] = []
    for (const [index, path] of visited.entries()) {
      await opened.go(path)
      if (state === 'loading')
        await opened.page.locator('main').locator('h1, .skeleton').first().waitFor({ state: 'attached' })
      else await settled(opened.page, path)
      const contrastAt = index === 0 ? WIDTHS : WIDTHS.slice(0, 1)
      found.push(...(await findBarriers(opened.page, `${state} ${path}`, { contrastAt })))
    }
    return found
  }

  const asAcme = () => openConsole(browser, shared.url, { credential: [tenant.key, ADMIN_TOKEN] })

  test('every page with what belongs on it', async () => {
    await using opened = await asAcme()
    const further = [
      ...TABS.map((tab) => `/jobs/${ids.failed}#${tab}`),
      ...[`/jobs/${ids.made}#logs`, `/jobs/${ids.runs}`, `/jobs/${ids.waits}`, `/jobs?peek=${ids.failed}`],
      ...ENDPOINT_TABS.map((tab) => `/endpoints/card#${tab}`),
      ...['/jobs?status=failed&q=nothing-like-that', '/nowhere'],
    ]
    assert.deepEqual(await visit(opened, 'full', [...paths, ...further]), [])
    opened.assertClean()
  })

  test('what opens in front of a page', async () => {
    await using opened = await asAcme()
    const { page } = opened
    const look = async (path: string, open: () => Promise<void>) => {
      await opened.go(path)
      await settled(page, path)
      await open()
      await page.getByRole('dialog').waitFor()
      await assertAccessible(page, `in front of ${path}`)
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    await look('/', () => page.keyboard.press('Control+k'))
    await look('/', () => page.keyboard.press('?'))
    await look('/webhooks', () => page.getByRole('button', { name: 'New webhook' }).click())
    await look('/', () => page.getByRole('button', { name: 'Cancel all that wait…' }).click())
    await look('/account/keys', () => page.getByRole('button', { name: 'New key' }).click())
    await look('/operator/jobs', () => page.getByRole('button', { name: 'Run all again…' }).click())
    await look('/operator/engines', () => page.getByRole('button', { name: 'Drain…' }).click())
    await opened.go(`/run?from=${ids.made}`)
    await page.getByRole('button', { name: /JSON/ }).first().click()
    await page.getByRole('textbox', { name: 'Workflow as JSON' }).waitFor()
    await assertAccessible(page, 'the editor')
    opened.assertClean()
  })

  test('every page while its data is on the way, and when the service fails', async () => {
    for (const [state, answer] of [
      ['loading', () => {}],
      ['failing', (route) => route.fulfill({ status: 500, json: FAILURE })],
    ] as const satisfies readonly (readonly [string, (route: Route) => unknown])[]) {
      await using opened = await asAcme()
      await opened.page.route(isData, (route) => void answer(route))
      assert.deepEqual(await visit(opened, state, paths), [])
      opened.assertClean([/500/])
    }
  })

  test('every page of an account that has nothing yet, and the form to sign in', async () => {
    const nobody = await shared.admin('POST', '/accounts/nobody/keys', {})
    await using opened = await openConsole(browser, shared.url, { credential: nobody.json.text })
    const own = paths.filter((path) => !path.includes(ids.failed) && !/^\/(operator|models|settings|run\/)/.test(path))
    assert.deepEqual(await visit(opened, 'empty', [...own, `/jobs/${ids.failed}`]), [])
    opened.assertClean([/404/])
    await using stranger = await browser.open()
    await stranger.page.goto(`${shared.url}/console`)
    await stranger.page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await assertAccessible(stranger.page, 'the form to sign in')
    stranger.assertClean()
  })
})

const FAILURE = { error: { code: 'internal_error', message: 'the service made a mistake', request_id: 'req-1' } }

/** What pages show, and not what the page itself needs to be there. */
function isData(url: URL): boolean {
  return (
    /^\/(console\/v1|admin\/v1|api\/v2|v2|builder\/v1|deploy\/v1)\//.test(url.pathname) &&
    !/\/(session|events)$/.test(url.pathname)
  )
}

/** Its script has come, and nothing of it is on the way any more. */
async function settled(page: Page, path: string): Promise<void> {
  const look = () =>
    page.evaluate<boolean>(
      `document.querySelector('main h1, main .error-box') !== null && document.querySelector('main .skeleton, main [aria-busy=true]') === null`,
    )
  await waitUntil(look, () => `${path} to have its data`)
}
