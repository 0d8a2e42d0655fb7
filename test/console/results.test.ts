import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { assertAccessible } from '../support/browser/axe.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { createConsoleClient } from '../support/clients/console-client.ts'

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
})
