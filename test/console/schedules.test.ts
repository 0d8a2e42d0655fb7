import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app/start-app.ts'
import { launchBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { call } from '../support/clients/call.ts'

const GRAPH = `{"1":{"class_type":"PrimitiveInt","inputs":{"value":9007199254740993}},"2":{"class_type":"PreviewAny","inputs":{"source":["1",0]}}}`

test('a schedule is made, run, paused, resumed and removed in the console', {
  skip: withoutBrowser,
}, async () => {
  await using browser = await launchBrowser()
  await using app = await startTestApp()
  await using console = await openConsole(browser, app.url, { path: '/schedules' })
  const { page } = console
  const dialog = page.getByRole('dialog')
  await page.getByRole('button', { name: 'Make the first one' }).click()
  await dialog.getByLabel('Name').fill('Nightly')
  await dialog.getByLabel(/^Minute, hour/).fill('0 2 * * mon')
  await dialog.getByLabel('Time zone').fill('Europe/Berlin')
  await dialog.getByLabel('It submits').selectOption('workflow')
  await dialog.getByLabel('The workflow').fill('no')
  await dialog.getByRole('button', { name: 'Make the schedule' }).click()
  await dialog.getByText('This is no JSON').waitFor()
  await dialog.getByLabel('The workflow').fill(GRAPH)
  await dialog.getByRole('button', { name: 'Make the schedule' }).click()
  await dialog.waitFor({ state: 'detached' })
  const { schedules } = (await call(app.url, '/api/v2/schedules')).json
  const { text } = await call(app.url, `/api/v2/schedules/${schedules[0].id}`)
  assert.match(text, /9007199254740993/, 'all of its digits')

  await page.getByRole('button', { name: 'Run Nightly now' }).click()
  await page.getByText('“Nightly” was submitted.').waitFor()
  await page.getByRole('button', { name: 'Last runs of Nightly' }).click()
  await page.getByRole('link', { name: 'submitted' }).waitFor()
  await page.getByRole('button', { name: 'Pause Nightly' }).click()
  await page.getByText('paused', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Resume Nightly' }).click()
  await page.getByRole('button', { name: 'Pause Nightly' }).waitFor()
  await page.getByRole('button', { name: 'Remove Nightly' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('No schedules yet').waitFor()
  console.assertClean()
})
