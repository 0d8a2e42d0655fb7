/** ComfyUI's own editor where accounts share the service: whoever has a key signs in, and what runs is that account's. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startShared } from '../support/app/start-shared.ts'
import { launchBrowser } from '../support/browser/browser.ts'
import {
  EDITOR_SETTINGS,
  PATIENCE_MS,
  skipFirstVisit,
  toEditor,
  untilReady,
  withoutEditor,
} from '../support/browser/editor-page.ts'
import { waitUntil } from '../support/wait-until.ts'

test('sign-in: the editor opens with a key, over socket and HTTP, and runs jobs of its account', {
  skip: withoutEditor,
}, async () => {
  await using shared = await startShared(EDITOR_SETTINGS)
  const [ada, bob] = [await shared.account('ada'), await shared.account('bob')]
  const url = shared.service.app.frontendUrl as string
  await skipFirstVisit(url, { 'x-api-key': ada.key })
  await using browser = await launchBrowser()
  await using watched = await browser.open()
  const editor = toEditor(watched)
  const { page } = editor
  page.setDefaultTimeout(PATIENCE_MS)
  await page.goto(url, { timeout: PATIENCE_MS })
  await page.getByLabel('API key or token').fill('not-a-key')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('this key or token is not accepted').waitFor()
  await page.getByLabel('API key or token').fill(ada.key)
  await page.keyboard.press('Enter')
  await untilReady(page)
  await editor.load({ '1': { class_type: 'FakeSave', inputs: { text: 'a', count: 1 } } }, 'mine')
  await editor.run.click()
  await editor.until('app.nodeOutputs["1"]?.images?.length === 1')
  const countJobs = async ({ call }: typeof ada) => (await call('/api/v2/jobs')).json.jobs.length
  await waitUntil(async () => (await countJobs(ada)) === 1)
  assert.equal(await countJobs(bob), 0)
  editor.assertClean([/401/])
})
