import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp } from '../support/app/start-app.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'

const TOKEN = 'a-token-of-this-test-only'
const ADMIN_TOKEN = 'an-admin-token-of-this-test'

describe('signing in to the console', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  before(async () => {
    browser = await launchBrowser()
  })
  after(() => browser[Symbol.asyncDispose]())

  test('a local service without a token shows its console at the root, without asking for anything', async () => {
    await using app = await startTestApp()
    await using opened = await browser.open()
    await opened.page.goto(app.url)
    await opened.page.getByRole('navigation', { name: 'Places' }).waitFor()
    assert.equal(new URL(opened.page.url()).pathname, '/console')
    await opened.page.getByText('local, no token').waitFor()
    opened.assertClean()
  })

  test('with a token the form lets in whoever has it, keeps its text nowhere, and survives a reload', async () => {
    await using app = await startTestApp({ settings: { token: TOKEN } })
    await using opened = await browser.open()
    const { page } = opened
    await page.goto(`${app.url}/console`)
    await page.getByLabel('API key or token').fill('not-the-token')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('this key or token is not accepted').waitFor()
    await page.getByLabel('API key or token').fill(TOKEN)
    await page.keyboard.press('Enter')
    await page.getByRole('navigation', { name: 'Places' }).waitFor()
    await page.reload()
    await page.getByRole('navigation', { name: 'Places' }).waitFor()
    const [cookie] = (await opened.context.cookies()).filter(({ name }) => name === 'atelier')
    assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.path], [true, 'Strict', '/'])
    assert.equal(cookie?.value.includes(TOKEN), false)
    const kept = await page.evaluate<string>(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
    )
    assert.equal(kept.includes(TOKEN), false)
    opened.assertClean([/401/])
  })

  test('signing out shows the form again, and the old cookie is worth nothing after signing out everywhere', async () => {
    await using app = await startTestApp({ settings: { token: TOKEN } })
    await using opened = await browser.open()
    const { page } = opened
    await page.goto(`${app.url}/console/sign-in`)
    await page.getByLabel('API key or token').fill(TOKEN)
    await page.keyboard.press('Enter')
    await page.getByRole('navigation', { name: 'Places' }).waitFor()
    const before = await opened.context.cookies()
    await page.goto(`${app.url}/console/settings`)
    await page.getByRole('button', { name: 'Sign out everywhere' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await opened.context.addCookies(before)
    await page.goto(`${app.url}/console`)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    opened.assertClean()
  })

  test('the address that was asked for is shown after signing in; the operator’s asks nothing of the service before', async () => {
    await using app = await startTestApp({ settings: { token: TOKEN, adminToken: ADMIN_TOKEN } })
    await using opened = await browser.open()
    const { page } = opened
    const asked: string[] = []
    page.on('request', (request) => {
      if (new URL(request.url()).pathname.startsWith('/admin/')) asked.push(request.url())
    })
    const signIn = async (credential: string) => {
      await page.getByLabel(/^API key/).fill(credential)
      await page.keyboard.press('Enter')
    }
    await page.goto(`${app.url}/console/jobs?status=failed&sort=oldest`)
    await signIn(TOKEN)
    await page.getByRole('button', { name: 'Oldest first' }).waitFor()
    assert.equal(new URL(page.url()).search, '?status=failed&sort=oldest')
    await page.goto(`${app.url}/console/operator/jobs?status=failed`)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.deepEqual(asked, [])
    await signIn(ADMIN_TOKEN)
    await page.getByRole('heading', { name: 'Jobs of all accounts' }).waitFor()
    assert.equal(new URL(page.url()).search, '?status=failed')
    opened.assertClean()
  })
})
