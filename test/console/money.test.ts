import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startShared } from '../support/app/start-shared.ts'
import { launchBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'

test('an own key, a budget and a statement are looked after in the console', { skip: withoutBrowser }, async () => {
  await using browser = await launchBrowser()
  await using app = await startShared({ secretKey: Buffer.alloc(32, 7).toString('base64') })
  const tenant = await app.account('acme', { creditFloorMicros: 0 })
  await app.admin('POST', '/accounts/acme/grants', { usd: '25' })
  await app.admin('POST', '/accounts/acme/grants', { micros: -1_250_000 })
  await app.admin('POST', '/accounts/acme/budgets', { name: 'the house', limit_usd: '9.00', period: 'day' })
  await using console = await openConsole(browser, app.url, { path: '/account/provider-keys', credential: tenant.key })
  const { page } = console
  const dialog = page.getByRole('dialog')

  await page.getByRole('button', { name: 'Save the first one' }).click()
  await dialog.getByLabel('Provider', { exact: true }).fill('openai')
  await dialog.getByLabel(/^Its key/).fill('sk-not-a-real-key-1234')
  await dialog.getByRole('button', { name: 'Save the key' }).click()
  await page.getByText('1234').waitFor()
  assert.equal((await page.content()).includes('not-a-real'), false, 'it is not shown again')
  await page.getByRole('button', { name: 'Remove the openai key' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('No own keys').waitFor()

  await page.getByRole('link', { name: 'Budgets' }).click()
  await page.getByText('set by the operator').waitFor()
  await page.getByRole('button', { name: 'New budget' }).click()
  await dialog.getByLabel('Name').fill('blog')
  await dialog.getByLabel('For').selectOption('tag')
  await dialog.getByLabel('Which tag').fill('blog')
  await dialog.getByLabel('At most, in USD').fill('5')
  await dialog.getByRole('button', { name: 'Make the budget' }).click()
  await page.getByText('tag blog').waitFor()
  assert.equal((await tenant.call('/api/v2/budgets')).json.budgets.length, 2)
  assert.equal(await page.getByRole('button', { name: 'Remove the house' }).count(), 0, 'the operator’s stays')
  await page.getByRole('button', { name: 'Remove blog' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('tag blog').waitFor({ state: 'detached' })

  await page.getByRole('link', { name: 'Statement' }).click()
  await page.getByText('Nothing was charged in this month').waitFor()
  await page.locator('#main').getByText('$23.75').waitFor()
  const saved = page.waitForEvent('download')
  await page.getByRole('button', { name: 'CSV' }).click()
  assert.match((await saved).suggestedFilename(), /^statement-\d{4}-\d{2}\.csv$/)
  await page.getByRole('link', { name: 'Month before' }).click()
  await page.getByText('At the end').waitFor()
  console.assertClean()
})
