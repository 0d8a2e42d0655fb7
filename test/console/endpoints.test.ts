/** A person publishes a workflow as an endpoint, tries it, changes it and moves back, all in the console. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { startShared } from '../support/app/start-shared.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { type ConsolePage, openConsole } from '../support/browser/console-page.ts'
import { call } from '../support/clients/call.ts'
import { node } from '../support/clients/checked-client.ts'
import { waitUntil } from '../support/wait-until.ts'

const CARD = {
  '1': node('EmptyImage', { width: 64, height: 32, batch_size: 1, color: 2105376 }),
  '2': {
    ...node('TextOverlay', {
      ...{ images: ['1', 0], text: 'Hello', font_size: 8, color: '#ffffff', position: 'top', align: 'center' },
      outline: false,
    }),
    _meta: { title: '$headline' },
  },
  '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'card' }),
}

describe('endpoints in the console', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  let app: TestApp
  let opened: ConsolePage
  let page: Page
  before(async () => {
    browser = await launchBrowser()
    app = await startTestApp({ settings: { workers: '2' } })
    opened = await openConsole(browser, app.url)
    page = opened.page
  })
  after(async () => {
    await using _app = app
    await using _browser = browser
    await opened?.[Symbol.asyncDispose]()
  })

  const card = (name: string) => page.getByRole('listitem', { name, exact: true })
  const stored = async () => (await call(app.url, '/api/v2/endpoints/card')).json
  const result = () => page.getByRole('complementary', { name: 'Result' })

  test('a file that is dropped becomes an address with a form, and the form makes a picture', async () => {
    await opened.go('/endpoints')
    await page.getByText('No endpoints yet').waitFor()
    await page.locator('main input[type=file]').setInputFiles({
      name: 'Birthday card.json',
      mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify(CARD)),
    })
    await page.getByRole('heading', { name: 'Publish a workflow' }).waitFor()
    await card('headline').getByLabel('Title').fill('What it says')
    await card('headline').getByText('Description and bounds').click()
    await card('headline').getByLabel('Most characters').fill('none')
    await page.getByRole('textbox', { name: 'Name', exact: true }).first().fill('card')
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    await card('headline')
      .getByText(/max_length must be a whole number/)
      .waitFor()
    await card('headline').getByLabel('Most characters').fill('20')
    await page.getByRole('button', { name: 'Publish', exact: true }).click()

    await page.getByRole('tab', { name: 'Try' }).waitFor()
    await page.getByLabel('What it says').fill('x'.repeat(21))
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByText('at most 20 characters').waitFor()
    await page.getByLabel('What it says').fill('Good morning')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await result().getByText('Succeeded').waitFor()
    await result().locator('img.media').waitFor()
    await result()
      .getByRole('link', { name: /^Download/ })
      .waitFor()
    await result()
      .getByText(/"headline": "Good morning"/)
      .waitFor()
    await page.getByLabel('What it says').fill('something else')
    await result().getByRole('button', { name: 'Use these inputs again' }).click()
    assert.equal(await page.getByLabel('What it says').inputValue(), 'Good morning')
    const json = await stored()
    assert.equal(json.current_version, 1)
  })

  test('a call is in the list of runs with its inputs, and can be made again from there', async () => {
    await opened.go('/endpoints/card#runs')
    const row = page.getByRole('row', { name: /Good morning/ })
    await row.getByText('Succeeded').waitFor()
    await row.getByRole('link', { name: 'Again' }).click()
    await page.getByRole('tab', { name: 'Try', selected: true }).waitFor()
    await waitUntil(async () => (await page.getByLabel('What it says').inputValue()) === 'Good morning')
  })

  test('a version that breaks callers is asked about first, and moving back is one deed', async () => {
    await opened.go('/endpoints/card#versions')
    await page.getByRole('link', { name: 'New version' }).click()
    await card('headline').getByText('Description and bounds').click()
    await card('headline').getByLabel('Most characters').fill('10')
    await page.getByLabel('Note').fill('short words only')
    await page.getByRole('button', { name: 'Publish', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'This breaks programs that call it' })
    await dialog.getByText('headline: maxLength was 20 and is 10').waitFor()
    await dialog.getByRole('button', { name: 'Publish all the same' }).click()
    await page.getByText('card, version 2').waitFor()
    await page.getByRole('tab', { name: 'Versions' }).click()
    await page.getByRole('row', { name: /short words only/ }).waitFor()
    await page.getByText('headline: maxLength was 20 and is 10 (breaks callers)').waitFor()
    await page.getByRole('button', { name: 'Make 1 current' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Make version 1 current' }).click()
    await page.getByText('card, version 1').waitFor()
    await page.getByRole('button', { name: 'Make 2 current' }).waitFor()
    await page.getByLabel('Alias', { exact: true }).fill('stable')
    await page.getByLabel('Version of the alias').selectOption('1')
    await page.getByRole('button', { name: 'Set the alias' }).click()
    await page.getByRole('button', { name: 'Remove the alias stable' }).waitFor()
    const json = await stored()
    assert.deepEqual([json.current_version, json.aliases], [1, { stable: 1 }])
  })

  test('a link is made with its bounds, shown once with the code to embed it, and revoked', async () => {
    await opened.go('/endpoints/card#share')
    await page.getByText('No links yet').waitFor()
    await page.getByLabel('Runs', { exact: true }).fill('0')
    await page.getByRole('button', { name: 'Make a link' }).click()
    await page.getByText(/runs must be/).waitFor()
    await page.getByLabel('Runs', { exact: true }).fill('3')
    await page.getByLabel('Shown on').fill('Blog.example\n*.example.org')
    await page.getByLabel('Note').fill('on the blog')
    await page.getByRole('button', { name: 'Make a link' }).click()
    const made = page.getByRole('status', { name: 'The new link' })
    const url = (await made.getByRole('link').getAttribute('href')) ?? ''
    await made.getByText(`<iframe src="${url}"`).waitFor()
    const link = new URL(url).pathname
    assert.equal((await call(app.url, `${link}/endpoint`)).status, 200)
    const row = page.getByRole('row', { name: /on the blog/ })
    await row.getByText('0 of 3').waitFor()
    await row.getByText('blog.example, *.example.org').waitFor()
    await row.getByRole('button', { name: 'Revoke the link on the blog' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
    await row.getByText('revoked').waitFor()
    assert.equal((await call(app.url, `${link}/endpoint`)).status, 404)
    assert.equal(await made.count(), 0)
  })

  test('its limits are set, told as wrong where they are, and shown with what counts for them', async () => {
    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.getByText('Limits', { exact: true }).click()
    await page.getByLabel('Runs at a time').fill('many')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText(/limits\.in_flight must be/).waitFor()
    await page.getByLabel('Runs at a time').fill('3')
    await page.getByLabel('Runs a day').fill('40')
    await page.getByLabel('US dollars a month').fill('12.50')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await waitUntil(async () => (await stored()).limits.in_flight === 3)
    assert.deepEqual((await stored()).limits, { in_flight: 3, runs: { day: 40 }, spend_usd: { month: '12.50' } })
    await page.getByRole('tab', { name: 'Usage' }).click()
    await page.getByText('0 of 40 runs a day').waitFor()
    await page.getByText('$0.00 of $12.50 a month').waitFor()
    await page.getByRole('row', { name: /^in all/ }).waitFor()
    await page.getByRole('link', { name: 'Version', exact: true }).click()
    await page.getByRole('columnheader', { name: 'Version' }).waitFor()
  })

  test('nothing of it is wider than a phone', async () => {
    await page.setViewportSize({ width: 375, height: 720 })
    for (const path of [
      '/endpoints',
      '/publish/card',
      ...['try', 'runs', 'usage', 'versions', 'code', 'settings'].map((tab) => `/endpoints/card#${tab}`),
    ]) {
      await opened.go(path)
      await waitUntil(() =>
        page.evaluate<boolean>(
          `document.querySelector('main h1') !== null && document.querySelector('main .skeleton, main [aria-busy=true]') === null`,
        ),
      )
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 375, path)
    }
    await page.setViewportSize({ width: 1440, height: 900 })
  })

  test('what another account lets one call is listed, tried and shown as code, and nothing else of it', async () => {
    await using shared = await startShared({}, { overrides: { engine: undefined } as object })
    const [owner, friend] = [await shared.account('acme'), await shared.account('friend')]
    const body = JSON.stringify({ name: 'card', title: 'A card', file: CARD, callers: ['friend'] })
    assert.equal((await owner.call('/api/v2/endpoints', { method: 'POST', body })).status, 201)
    await using theirs = await openConsole(browser, shared.url, { path: '/endpoints', credential: friend.key })
    const region = theirs.page.getByRole('region', { name: 'Shared with you' })
    await region.getByRole('link', { name: 'acme/card' }).click()
    await theirs.page.getByRole('heading', { name: 'A card' }).waitFor()
    const tabs = await theirs.page.getByRole('tab').allTextContents()
    assert.deepEqual(tabs, ['Try', 'Runs', 'Code'])
    await theirs.page.getByLabel(/^headline/i).fill('From a friend')
    await theirs.page.getByRole('button', { name: 'Run', exact: true }).click()
    await theirs.page.getByRole('complementary', { name: 'Result' }).getByRole('img').first().waitFor()
    await theirs.page.getByRole('tab', { name: 'Runs' }).click()
    await theirs.page.getByText('From a friend').waitFor()
    await theirs.page.getByRole('tab', { name: 'Code' }).click()
    await theirs.page.getByText('acme%2Fcard/runs').first().waitFor()
    theirs.assertClean()

    await using ours = await openConsole(browser, shared.url, { path: '/publish/card', credential: owner.key })
    const pin = ours.page.getByLabel(/^Run this version on the release/)
    await ours.page.getByLabel(/^Deployment/).waitFor()
    assert.equal(await pin.isDisabled(), true, 'there is nothing to pin without a deployment')
    await ours.page.getByLabel(/^Deployment/).fill('dep-000000000001')
    await pin.check()
    const sent = ours.page.waitForRequest((request) => request.method() === 'POST')
    await ours.page.getByRole('button', { name: 'Publish', exact: true }).click()
    const { deployment, pin_release: isPinned } = (await sent).postDataJSON()
    assert.deepEqual([deployment, isPinned], ['dep-000000000001', true])
    await ours.page.getByText('is no deployment that this account may use').first().waitFor()
    ours.assertClean([/422/])
  })

  test('it is stopped and started, offered to agents, shown as code, and deleted after a question', async () => {
    await opened.go('/endpoints/card#code')
    await page.getByRole('region', { name: 'curl' }).getByText('/api/v2/endpoints/card/runs').waitFor()
    await page.getByRole('region', { name: 'Python' }).waitFor()
    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.getByLabel('Model names').fill('gpt-image-1')
    await page.getByLabel('Other accounts that may call it').fill('acme, globex')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    await page.getByRole('button', { name: 'Stop it' }).click()
    await page.getByRole('button', { name: 'Start it' }).waitFor()
    const json = await stored()
    assert.deepEqual([json.state, json.models, json.callers], ['stopped', ['gpt-image-1'], ['acme', 'globex']])
    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No endpoints yet').waitFor()
    opened.assertClean([/422/, /409/])
  })
})
