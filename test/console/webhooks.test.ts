import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app/start-app.ts'
import { launchBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { openConsole } from '../support/browser/console-page.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

test('a webhook is made, tried out, looked at, sent again, given a new secret, paused and deleted in the console', {
  skip: withoutBrowser,
}, async () => {
  await using browser = await launchBrowser()
  await using receiver = await startWebhookReceiver()
  await using app = await startTestApp({ settings: { webhookPrivateNetwork: 'true' } })
  await using console = await openConsole(browser, app.url, { path: '/webhooks' })
  const { page } = console
  const dialog = page.getByRole('dialog')
  const shown = page.getByRole('dialog', { name: 'The new secret' })
  await page.getByRole('button', { name: 'Make the first one' }).click()
  await dialog.getByLabel('Address that is called').fill(`${receiver.url}/failing/till`)
  await dialog.getByLabel('What it is for').fill('The till')
  await dialog.getByLabel(/^a job began to run/).check()
  await dialog.getByRole('button', { name: 'Make the webhook' }).click()
  const secret = (await shown.locator('code').textContent()) ?? ''
  assert.match(secret, /^whsec_/)
  receiver.expect('/failing/till', secret)
  await shown.getByRole('button', { name: 'I have it' }).click()
  await shown.waitFor({ state: 'detached' })
  assert.equal((await page.content()).includes(secret), false, 'shown once')

  await page.getByRole('link', { name: 'The till' }).click()
  await page.getByText('job.started').waitFor()
  await page.getByRole('button', { name: 'Send a test' }).click()
  // The receiver refuses the first try of every message.
  await page.getByRole('button', { name: 'webhook.test' }).click()
  await dialog
    .getByText('It was not tried yet.')
    .or(dialog.getByText(/^Attempt 1/))
    .first()
    .waitFor()
  await dialog.getByRole('button', { name: 'Send again' }).click()
  await dialog.waitFor({ state: 'detached' })
  // The table looks again by itself while a message is on its way.
  await page.getByRole('row', { name: /webhook\.test Delivered/ }).waitFor()
  await page.getByRole('button', { name: 'webhook.test' }).click()
  await dialog.getByText(/^Attempt 1: refused, answered 500/).waitFor()
  await dialog.getByText('taken').waitFor()
  await page.keyboard.press('Escape')
  assert.deepEqual(
    receiver.received.map(({ type, fault }) => [type, fault]),
    receiver.received.map(() => ['webhook.test', null]),
    'signed with the secret that was shown',
  )

  await page.getByRole('button', { name: 'Rotate…' }).click()
  await dialog.getByRole('button', { name: 'Rotate' }).click()
  await dialog.getByText('The former secret counts for a day more.').waitFor()
  assert.notEqual(await shown.locator('code').textContent(), secret)
  await shown.getByRole('button', { name: 'I have it' }).click()
  await page.getByText('Former secret signs until').waitFor()

  await page.getByRole('button', { name: 'Pause', exact: true }).click()
  await page.getByText('Paused').waitFor()
  await page.getByRole('button', { name: 'Turn on' }).click()
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No webhooks yet').waitFor()
  console.assertClean()
})
