/** Whatever users supply is text: names, metadata, titles, logs, errors, files and schemas that pretend to be markup run nowhere. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { packDraft } from '../../console/src/pages/run/draft.ts'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { type ConsolePage, openConsole } from '../support/browser/console-page.ts'
import { call } from '../support/clients/call.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'
import { createFakeEngine } from '../support/engines/fake-engine.ts'

const MARKUP = `<img src=x onerror="window.hit='markup'"><script>window.hit='script'</script>`
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="parent.hit='svg'"><script>parent.hit='svg'</script></svg>`
// Turns what stands behind it around, so that a name would read as another one.
const TURNED = 'card\u202egnp.exe'

const file = (name: string, text: string) => ({
  class_type: 'FakeFile',
  inputs: { filename: name, folder: 'output', key: name.endsWith('.svg') ? 'images' : 'files', text },
  _meta: { title: MARKUP },
})
const WORKFLOW = {
  '1': { class_type: 'FakeLog', inputs: { text: `${MARKUP}\n`, times: 3 }, _meta: { title: MARKUP } },
  '2': file('picture.svg', SVG),
  '3': file('page.html', MARKUP),
  '4': file('words.txt', MARKUP),
  '5': { class_type: 'FakeValue', inputs: { value: MARKUP, key: MARKUP } },
  '6': { class_type: 'FakeLog', inputs: { text: `${TURNED}\n`, times: 1 }, _meta: { title: TURNED } },
}
const FAILS = { '4': { class_type: 'FakeFail', inputs: {}, _meta: { title: MARKUP } } }
const MODEL = {
  id: 'evil/one',
  provider: 'evil',
  title: MARKUP,
  description: MARKUP,
  ...{ in: ['text'], out: ['text'], price: MARKUP, is_runnable: true, why_not: null, example: { [MARKUP]: MARKUP } },
}
const SCHEMA = {
  type: 'object',
  title: MARKUP,
  description: MARKUP,
  properties: {
    text: { type: 'string', title: MARKUP, description: MARKUP, default: MARKUP },
    choice: { type: 'string', enum: [MARKUP, 'plain'], description: MARKUP },
    [MARKUP]: { type: 'object', properties: { inner: { type: 'string', description: MARKUP } } },
  },
}
const POST = { post: { requestBody: { content: { 'application/json': { schema: SCHEMA } } } } }

describe('what users supply', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  let app: TestApp
  let console: ConsolePage
  let made: string
  let failed: string
  let bulk: string
  before(async () => {
    browser = await launchBrowser()
    app = await startTestApp({ overrides: { engine: createFakeEngine() } })
    const client = createConsoleClient(app.url)
    made = await client.submit(WORKFLOW, { metadata: { name: MARKUP, tag: MARKUP } })
    failed = await client.submit(FAILS, { metadata: { name: MARKUP } })
    await client.untilStatus(made, 'succeeded')
    await client.untilStatus(failed, 'failed')
    await client.untilStatus(await client.submit(FAILS, { metadata: { name: MARKUP } }), 'failed')
    const many = { action: 'rerun', filter: { q: MARKUP, 'meta.tag': MARKUP } }
    bulk = (await call(app.url, '/api/v2/bulk-actions', { method: 'POST', body: JSON.stringify(many) })).json.id
    const form = new FormData()
    form.set('content_type', 'image/svg+xml')
    form.set('file_path', 'upload.svg')
    form.set('file', new Blob([SVG], { type: 'image/svg+xml' }), 'upload.svg')
    await fetch(`${app.url}/api/v2/assets`, { method: 'POST', body: form })
    console = await openConsole(browser, app.url)
  })
  after(async () => {
    await console?.[Symbol.asyncDispose]()
    // Closed also when the browser complains of a page: an open service would keep the process.
    await using _service = app
    await browser[Symbol.asyncDispose]()
  })

  async function assertInert(page: Page, where: string): Promise<void> {
    const found = await page.evaluate<object>(`({
      hit: window.hit ?? null,
      made: document.querySelectorAll('[onerror], [onload], img[src=x], iframe, object, embed, body script').length,
    })`)
    assert.deepEqual(found, { hit: null, made: 0 }, where)
  }

  test('is text on every page of a job, and in every list', async () => {
    const { page } = console
    const draft = await packDraft({
      ...{ workflowText: JSON.stringify(WORKFLOW), name: MARKUP, several: [], way: 'combinations' },
      ...{ typed: [['5 value', `${MARKUP} typed`]], files: [['4 filename', [['x', MARKUP, MARKUP]]]] },
    })
    for (const [path, isThere] of [
      ['/', page.getByRole('region', { name: 'Failed today' }).getByRole('link', { name: MARKUP }).first()],
      ['/jobs', page.getByRole('table', { name: 'Jobs' }).getByRole('link', { name: MARKUP }).first()],
      [`/jobs?peek=${made}`, page.getByRole('table', { name: 'Jobs' })],
      [`/jobs/${made}#result`, page.getByRole('heading', { name: MARKUP }).first()],
      [`/jobs/${made}#graph`, page.getByRole('row', { name: /FakeLog/ }).first()],
      [`/jobs/${made}#timeline`, page.getByRole('tabpanel')],
      [`/jobs/${made}#logs`, page.getByRole('tabpanel').getByText(MARKUP).filter({ visible: true }).first()],
      [`/jobs/${made}#workflow`, page.getByRole('tabpanel')],
      [`/jobs/${made}#details`, page.getByRole('tabpanel').getByText(MARKUP).first()],
      [`/jobs/${failed}`, page.getByRole('group', { name: 'Failure' })],
      [`/jobs/${made}/diff/${failed}`, page.getByRole('heading', { name: 'Two jobs' })],
      [`/run?from=${made}`, page.getByRole('group', { name: MARKUP }).first()],
      [`/run#draft=${draft}`, page.getByRole('group', { name: MARKUP }).first()],
      [`/bulk/${bulk}`, page.getByText(MARKUP).first()],
      ['/operator/jobs', page.getByRole('link', { name: MARKUP }).first()],
      [`/operator/jobs/${failed}`, page.getByRole('heading', { name: MARKUP })],
      ['/gallery', page.getByRole('button', { name: /^Look at/ }).first()],
      ['/assets', page.getByText('upload.svg').first()],
    ] as const) {
      await console.go(path)
      await isThere.waitFor()
      await assertInert(page, path)
    }
    assert.match(await page.title(), /Atelier$/)
    console.assertClean()
  })

  test('is text in the schemas and the words of models', async () => {
    const { page } = console
    await page.route(/\/console\/v1\/models/, (route) => route.fulfill({ json: { models: [MODEL], next: null } }))
    await page.route(/\/evil\/one\/openapi\.json$/, (route) =>
      route.fulfill({ json: { paths: { '/v2/models/evil/one': POST } } }),
    )
    await page.route(/\/evil\/one\/estimate$/, (route) => route.fulfill({ json: { source: 'unknown' } }))
    await console.go('/models')
    await page.getByRole('link', { name: /one/ }).first().waitFor()
    await assertInert(page, 'models')
    await console.go('/models/evil/one')
    await page.getByText(MARKUP).first().waitFor()
    await assertInert(page, 'a model')
    console.assertClean()
  })

  test('shows characters that turn a text around as marks', async () => {
    await console.go(`/jobs/${made}#logs`)
    await console.page
      .getByRole('tabpanel')
      .getByText(/gnp\.exe$/)
      .filter({ visible: true })
      .first()
      .waitFor()
    for (const tab of ['logs', 'graph', 'workflow']) {
      await console.go(`/jobs/${made}#${tab}`)
      await console.page
        .getByRole('tabpanel')
        .getByText(/gnp\.exe/)
        .filter({ visible: true })
        .first()
        .waitFor()
      assert.equal((await console.page.getByRole('main').innerText()).includes('\u202e'), false, tab)
    }
  })
})
