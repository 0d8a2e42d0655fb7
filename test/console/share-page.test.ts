/** The page of a link, as a visitor sees it: by mouse and by keyboard, on a phone, in a frame of another site, and when it ends. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { readChunks } from '../../lib/files/png-chunks.ts'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { assertAccessible } from '../support/browser/axe.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { call } from '../support/clients/call.ts'
import { card, stamp } from '../support/endpoints/card.ts'
import { createFakeEngine, type FakeEngine } from '../support/engines/fake-engine.ts'

const MARKUP = `<img src=x onerror="window.hit='markup'"><script>window.hit='script'</script>`
const WAITS = {
  '1': { class_type: 'FakeSampler', inputs: { steps: 3 } },
  '2': { class_type: 'FakeGate', inputs: { after: ['1', 0] } },
  '3': {
    class_type: 'FakeFile',
    inputs: { filename: 'words.txt', folder: 'output', key: 'files', text: MARKUP, after: ['2', 0] },
    _meta: { title: '$words' },
  },
}

interface Linked {
  readonly url: string
  readonly id: string
}

async function publish(url: string, name: string, file: object, declaration: object | null = null): Promise<void> {
  const body = JSON.stringify({ name, file, ...(declaration !== null && { declaration }) })
  const answer = await call(url, '/api/v2/endpoints', { method: 'POST', body })
  assert.equal(answer.status, 201, answer.text)
}

async function share(url: string, name: string, wish: object = {}): Promise<Linked> {
  const expires = new Date(Date.now() + 3_600_000).toISOString()
  const body = JSON.stringify({ runs: 50, at_a_time: 10, expires_at: expires, ...wish })
  const answer = await call(url, `/api/v2/endpoints/${name}/shares`, { method: 'POST', body })
  assert.equal(answer.status, 201, answer.text)
  return answer.json
}

interface Site extends AsyncDisposable {
  readonly port: number
  frame: string
}

/** Another site, which shows a page in a frame. */
async function openSite(): Promise<Site> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html')
    response.end(`<!doctype html><title>A blog</title><iframe src="${site.frame}" width="400" height="700"></iframe>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const site = {
    port: (server.address() as AddressInfo).port,
    frame: '',
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return site
}

describe('the page of a link', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  let app: TestApp
  let faked: TestApp
  let engine: FakeEngine
  before(async () => {
    browser = await launchBrowser()
    app = await startTestApp({ settings: { workers: '2' } })
    engine = createFakeEngine()
    faked = await startTestApp({ overrides: { engine } })
    await publish(app.url, 'card', card('Hello'), { title: 'A card', description: 'Says something.' })
    await publish(app.url, 'stamp', stamp())
    await publish(faked.url, 'waits', WAITS, { title: MARKUP, description: MARKUP })
  })
  after(async () => {
    engine?.release()
    await using _app = app
    await using _faked = faked
    await using _browser = browser
  })

  const result = (page: Page) => page.getByRole('region', { name: 'Result' })

  test('makes a picture that can be saved, and remembers what was run here', async () => {
    const link = await share(app.url, 'card')
    await using opened = await browser.open({ width: 360 })
    const { page } = opened
    await page.goto(link.url)
    await page.getByRole('heading', { name: 'A card', level: 1 }).waitFor()
    assert.equal(await page.title(), 'A card')
    await page.getByLabel('headline').fill('Good morning')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await result(page).getByText('Done').waitFor()
    const download = page.waitForEvent('download')
    await result(page).getByRole('link', { name: 'Download' }).click()
    const stream = await (await download).createReadStream()
    const pieces: Buffer[] = []
    for await (const piece of stream) pieces.push(piece as Buffer)
    const kinds = readChunks(Buffer.concat(pieces)).map(({ type }) => type)
    assert.ok(kinds.includes('IDAT') && !kinds.some((kind) => /^[tiz]TXt$/i.test(kind)), kinds.join())
    await result(page).getByText('What it was made with').click()
    await result(page)
      .getByText(/"headline": "Good morning"/)
      .waitFor()

    const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
    assert.equal(await page.evaluate<number>(overflow), 0)
    await page.reload()
    await page.getByRole('button', { name: 'Run 1, succeeded' }).click()
    await result(page).locator('img.media').waitFor()
    await page.getByLabel('headline').fill('something else')
    await result(page).getByRole('button', { name: 'Use these inputs again' }).click()
    await page.waitForFunction(`document.querySelector('#input-headline').value === 'Good morning'`)
    await page.getByRole('button', { name: 'Forget them' }).click()
    await page.reload()
    await page.getByRole('heading', { name: 'A card' }).waitFor()
    assert.equal(await page.getByRole('region', { name: 'Your runs' }).count(), 0)
    opened.assertClean()
  })

  test('takes a file of the visitor, and gives it back for another run', async () => {
    const link = await share(app.url, 'stamp')
    await using opened = await browser.open()
    const { page } = opened
    await page.goto(link.url)
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByText('1 input to put right').waitFor()
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==',
      'base64',
    )
    await page.locator('input[type=file]').setInputFiles({ name: 'dot.png', mimeType: 'image/png', buffer: png })
    await page.getByText('dot.png').waitFor()
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await result(page).getByText('Done').waitFor()
    await page.getByRole('button', { name: /^Remove the file/ }).click()
    await result(page).getByRole('button', { name: 'Use these inputs again' }).click()
    await page.getByText('dot.png').waitFor()
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByRole('button', { name: 'Run 2, succeeded' }).waitFor()
    opened.assertClean()
  })

  test('works by keyboard alone, and is for everybody in both themes', async () => {
    const link = await share(app.url, 'card')
    await using opened = await browser.open()
    const { page } = opened
    await page.goto(link.url)
    await page.getByRole('heading', { name: 'A card' }).waitFor()
    await assertAccessible(page, 'before a run')
    await page.keyboard.press('Tab')
    await page.keyboard.type('Typed')
    const focused = () => page.evaluate<string>(`document.activeElement.textContent.trim()`)
    for (let count = 0; count < 30 && (await focused()) !== 'Run'; count++) await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await result(page).getByText('Done').waitFor()
    await page.getByRole('button', { name: 'Run 1, succeeded' }).waitFor()
    await result(page).getByText('What it was made with').click()
    await assertAccessible(page, 'after a run')
    await page.goto(`${app.url}/share/${'x'.repeat(43)}`)
    await page.getByText(/This link does not work, or no longer/).waitFor()
    await assertAccessible(page, 'without a link')
    opened.assertClean([/404/])
  })

  test('shows how a run goes on, runs nothing that a name or a result says, and ends when it is revoked', async () => {
    const link = await share(faked.url, 'waits')
    await using opened = await browser.open()
    const { page } = opened
    await page.goto(link.url)
    await page.getByRole('heading', { level: 1 }).getByText(MARKUP).waitFor()
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await result(page).getByRole('progressbar').waitFor()
    engine.openGate()
    await result(page).getByText('Done').waitFor()
    await result(page).locator('pre.media-text').getByText(MARKUP).waitFor()
    const inert = `({ hit: window.hit ?? null, made: document.querySelectorAll('[onerror], img[src=x], iframe, body script').length })`
    assert.deepEqual(await page.evaluate(inert), { hit: null, made: 0 })

    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await result(page).getByRole('progressbar').waitFor()
    await call(faked.url, `/api/v2/endpoints/waits/shares/${link.id}`, { method: 'DELETE' })
    await result(page)
      .getByText(/This link does not work, or no longer/)
      .waitFor()
    engine.openGate()
    const { json } = await call(faked.url, '/api/v2/endpoints/waits/runs')
    assert.equal(json.runs.length, 2)
    await page.reload()
    await page.getByText(/This link does not work, or no longer/).waitFor()
    opened.assertClean([/404/])
  })

  test('stands in a frame of a site that is listed, and in no other', async () => {
    await using blog = await openSite()
    await using other = await openSite()
    const link = await share(app.url, 'card', { referrers: [`localhost:${blog.port}`] })
    blog.frame = link.url
    other.frame = link.url
    await using welcome = await browser.open()
    await welcome.page.goto(`http://localhost:${blog.port}/`)
    const frame = welcome.page.frameLocator('iframe')
    await frame.getByLabel('headline').fill('In a frame')
    await frame.getByRole('button', { name: 'Run', exact: true }).click()
    await frame.getByText('Done').waitFor()
    await frame.locator('img.media').waitFor()
    welcome.assertClean([/favicon/])

    await using refused = await browser.open()
    const answered = refused.page.waitForResponse(link.url)
    await refused.page.goto(`http://localhost:${other.port}/`)
    assert.equal((await answered).status(), 403)
    assert.equal(await refused.page.frameLocator('iframe').getByRole('heading').count(), 0)
    refused.assertClean([/403/, /favicon/, /frame-ancestors/, /BLOCKED_BY_RESPONSE/])
  })
})
