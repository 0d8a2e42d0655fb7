import assert from 'node:assert/strict'
import { mkdtempDisposable, open, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { assertAccessible } from '../support/browser/axe.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'
import { openFaultProxy } from '../support/network/fault-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'

// Just above what is sent in one request.
const LARGE_BYTES = 64 * 1024 * 1024 + 4096

const CARD = JSON.parse(await readFile(new URL('../../examples/colour-card.json', import.meta.url), 'utf8')) as object

describe('what jobs made', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  let app: TestApp
  let id: string
  before(async () => {
    browser = await launchBrowser()
    app = await startTestApp()
    const client = createConsoleClient(app.url)
    id = await client.submit(CARD)
    await client.untilStatus(id, 'succeeded')
  })
  after(async () => {
    // Closed also when the browser complains of a page: an open service would keep the process.
    await using _service = app
    await browser[Symbol.asyncDispose]()
  })

  test('the gallery shows them, large on a click, and leads to their job', async () => {
    await using console = await openConsole(browser, app.url, { path: '/gallery' })
    const { page } = console
    await console.click(page.getByRole('button', { name: /^Look at colour-card/ }))
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('img').waitFor()
    await assertAccessible(page, 'a picture of the gallery')
    await dialog.getByRole('link', { name: 'colour card' }).click()
    await page.waitForURL(new RegExp(id))
    console.assertClean()
  })

  test('a workflow that was dropped becomes a form, is saved, opened again by its name, and run', async () => {
    await using console = await openConsole(browser, app.url, { path: '/run' })
    const { page } = console
    await page
      .getByLabel('Open a workflow', { exact: true })
      .and(page.locator('input'))
      .setInputFiles({
        name: 'card.json',
        mimeType: 'application/json',
        buffer: Buffer.from(JSON.stringify(CARD)),
      })
    await page
      .getByRole('group', { name: /^Orange/ })
      .getByRole('textbox', { name: 'width' })
      .fill('64')
    await page.getByRole('textbox', { name: 'Name to save as' }).fill('small card')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved as small card.').waitFor()
    await console.go('/run/small%20card')
    const width = page.getByRole('group', { name: /^Orange/ }).getByRole('textbox', { name: 'width' })
    await width.waitFor()
    assert.equal(await width.inputValue(), '64')
    await width.fill('0')
    await page.getByText('at least 1', { exact: false }).waitFor()
    await width.fill('32')
    await assertAccessible(page, 'run')
    await page.keyboard.press('Control+Enter')
    await page.getByRole('complementary', { name: 'Result' }).getByRole('img').waitFor()
    console.assertClean()
  })

  test('a form that is filled in lives in its address: a reload, going back and a link that is sent on show it again', async () => {
    await using console = await openConsole(browser, app.url, { path: '/run' })
    const { page, watched } = console
    const file = { name: 'card.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(CARD)) }
    await page.getByLabel('Open a workflow', { exact: true }).and(page.locator('input')).setInputFiles(file)
    const widthOf = (at: typeof page) =>
      at.getByRole('group', { name: /^Orange/ }).getByRole('textbox', { name: 'width' })
    const untilWidth = async (at: typeof page, value: string) => {
      await widthOf(at).waitFor()
      await waitUntil(async () => (await widthOf(at).inputValue()) === value)
    }
    await widthOf(page).fill('48')
    await page.waitForURL(/#draft=[\w-]+$/)
    const dropped = page.url()
    await widthOf(page).fill('40')
    await page.waitForURL((url) => url.href !== dropped)
    await page.reload()
    await untilWidth(page, '40')
    await console.go('/jobs')
    await page.getByRole('table', { name: 'Jobs' }).waitFor()
    await page.goBack()
    await untilWidth(page, '40')
    const other = await watched.context.newPage()
    await other.goto(dropped)
    await untilWidth(other, '48')
    // Over a job the address has only what differs from it.
    await other.goto(`${app.url}/console/run?from=${id}`)
    await widthOf(other).fill('24')
    await other.waitForURL(/from=.*#draft=[\w-]{1,200}$/)
    await other.reload()
    await untilWidth(other, '24')
    await other.goto(`${app.url}/console/run#draft=${'x'.repeat(200)}`)
    await other.getByLabel('Or paste one').waitFor()
    console.assertClean()
  })

  test('a refusal marks the input that it names, shows and focuses it, until another value is typed', async () => {
    await using console = await openConsole(browser, app.url, { path: '/run' })
    const { page } = console
    const load = {
      '1': { class_type: 'LoadImage', inputs: { image: 'none.png' } },
      '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'copy' } },
    }
    await page.getByLabel('Or paste one').fill(JSON.stringify(load))
    await page.getByRole('button', { name: 'Make a form of it' }).click()
    await page.getByRole('button', { name: /^Run/ }).click()
    const field = page.getByRole('textbox', { name: 'image', exact: true })
    await waitUntil(() => field.evaluate((element) => element.matches(':focus')))
    const group = page.getByRole('group').filter({ has: field })
    await group.getByText('none.png').waitFor()
    await field.fill('other.png')
    await group.getByText('none.png').waitFor({ state: 'detached' })
    console.assertClean([/422/])
  })

  test('several values make a job for each, and what they made is chosen as the input of another workflow', async () => {
    await using app = await startTestApp()
    const client = createConsoleClient(app.url)
    const saved = { workflow_text: JSON.stringify(CARD) }
    const load = {
      '1': { class_type: 'LoadImage', inputs: { image: 'none.png' } },
      '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'copy' } },
    }
    await client.ask('PUT', '/forms/{name}', '/forms/card', saved)
    await client.ask('PUT', '/forms/{name}', '/forms/load', { workflow_text: JSON.stringify(load) })
    await using console = await openConsole(browser, app.url, { path: '/run/card' })
    const { page } = console
    const orange = page.getByRole('group', { name: /^Orange/ })
    await orange.getByRole('button', { name: 'Several values for width' }).click()
    await orange.getByRole('textbox', { name: 'width' }).fill('16\n32')
    await page.getByRole('button', { name: 'Run 2 jobs' }).click()
    const result = page.getByRole('complementary', { name: 'Result' })
    await result.getByRole('button', { name: 'Run 2, succeeded' }).waitFor()
    await assertAccessible(page, 'run with several values')
    await result.getByRole('link', { name: /^All of this run/ }).click()
    await page
      .getByRole('row', { name: /colour card/ })
      .nth(1)
      .waitFor()

    await page.goto(`${app.url}/console/run/load`)
    await page.getByRole('button', { name: 'Choose a file for image' }).click()
    await page.getByRole('button', { name: 'Results of jobs' }).click()
    await assertAccessible(page, 'picker')
    await page
      .getByRole('button', { name: /^Take colour-card/ })
      .first()
      .click()
    await page.keyboard.press('Control+Enter')
    await result.getByRole('img', { name: /^copy/ }).waitFor()
    console.assertClean()
  })

  test('a large file is uploaded in pieces, and goes on where it was when the line breaks', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'atelier-'))
    const file = join(folder.path, 'large.bin')
    await using handle = await open(file, 'w')
    // With a hole in it: it takes no room and no time.
    await handle.write('first', 0)
    await handle.write('last', LARGE_BYTES - 4)
    await using proxy = await openFaultProxy({ target: Number(new URL(app.url).port) })
    await using console = await openConsole(browser, `http://127.0.0.1:${proxy.port}`, { path: '/assets' })
    const { page } = console
    // Slow enough that something is left to send when the first of it has arrived.
    proxy.set({ kind: 'open', bytesPerMs: 10_000 })
    const began = page.waitForResponse((response) => response.url().endsWith('/api/v2/uploads'))
    await page.locator('input[type=file]').setInputFiles(file)
    const upload = new URL((await (await began).headerValue('location')) ?? '', app.url).pathname
    const standing = async () => (await (await fetch(app.url + upload)).json()) as { readonly offset: number }
    await waitUntil(async () => (await standing()).offset > 0)
    const further = page.waitForRequest((request) => request.method() === 'PATCH')
    proxy.drop()
    proxy.set({ kind: 'open' })
    const { 'upload-offset': offset } = await (await further).allHeaders()
    assert.ok(Number(offset) > 0, 'what had arrived is not sent again')
    await page.getByRole('listitem').filter({ hasText: 'large.bin' }).waitFor()
    const { assets } = (await (await fetch(`${app.url}/console/v1/assets`)).json()) as {
      readonly assets: readonly { readonly name: string; readonly size_bytes: number; readonly url: string }[]
    }
    const [large] = assets.filter(({ name }) => name === 'large.bin')
    assert.equal(large?.size_bytes, LARGE_BYTES)
    const end = await fetch(new URL(large?.url ?? '', app.url), { headers: { range: 'bytes=-5' } })
    assert.equal(await end.text(), '\0last')
    // The service may still be writing what it had of the cut request: the page then asks once more where to go on.
    console.assertClean([
      /4(09|23)/,
      /ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_CLOSED|ERR_EMPTY_RESPONSE/,
    ])
  })
})
