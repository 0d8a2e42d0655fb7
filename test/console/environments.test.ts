/** What an account built and deployed, in the console: a deployment is seen and rolled back, and a release that failed says why. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Tenant } from '../support/app/start-shared.ts'
import { launchBrowser, type TestBrowser, withoutBrowser } from '../support/browser/browser.ts'
import { type ConsolePage, openConsole } from '../support/browser/console-page.ts'
import { type Deployed, deploy, type ReleasedApp, startReleased } from '../support/deployments/released-app.ts'

const CPU = { os: 'linux', gpu: 'cpu' } as const
const LOCK = {
  ...{ comfyui: { wanted: 'v0.3.40', commit: 'c'.repeat(40), sha256: 'd'.repeat(64) }, python: '3.12' },
  ...{ torch: { variant: 'cpu', version: null }, packs: [], wheels: '', models: [] },
} as const
const BUILT = { lock: LOCK, archiveSha256: 'e'.repeat(64), sizeBytes: 4_096_000, classes: {} }
const REASON = 'resolve: the pack spark needs numpy<1\nand the pack flame needs numpy>=2 <script>alert(1)</script>'

describe('environments in the console', { skip: withoutBrowser }, () => {
  let browser: TestBrowser
  let started: ReleasedApp
  let opened: ConsolePage
  let page: Page
  let ana: Tenant
  let buildId: string
  let failed: string
  let deployed: Deployed
  before(async () => {
    browser = await launchBrowser()
    started = await startReleased({ builds: 'ana' })
    ana = await started.app.account('ana')
    buildId = (await call('POST', '/builder/v1/builds', { name: 'studio', definition: { baseComfyVersion: 'v1' } })).id
    const [one, two] = [await cut('v0.3.40', true), await cut('v0.3.41', true)]
    failed = await cut('v0.3.42', false)
    deployed = await deploy(ana, one, { min: 1, max: 2 })
    await deployed.until(({ status }) => status === 'ready')
    await deployed.call('PATCH', '', { baseRevision: 1, releaseId: two })
    await deployed.until(({ revision }) => revision === 2)
    opened = await openConsole(browser, started.app.url, { credential: ana.key, path: '/environments' })
    page = opened.page
  })
  after(async () => {
    // Closed also when the browser complains of a page: an open service would keep the process.
    await using _service = started
    await using _browser = browser
    await opened?.[Symbol.asyncDispose]()
  })

  async function call(method: string, path: string, body: object) {
    const answer = await ana.call(path, { method, body: JSON.stringify(body) })
    assert.ok(answer.status < 300, answer.text)
    return answer.json
  }

  let version = 0
  /** A release of this ComfyUI as a builder leaves it. */
  async function cut(baseComfyVersion: string, isMade: boolean): Promise<string> {
    version += 1
    await call('PATCH', `/builder/v1/builds/${buildId}`, {
      ...{ name: 'studio', definition: { baseComfyVersion }, expectedUpdatedAt: null },
    })
    const { releaseId } = await call('POST', `/builder/v1/builds/${buildId}/releases`, { targets: [CPU] })
    const { artifacts } = started.app.service.app.store
    const now = new Date()
    const lease = { leaseId: randomUUID(), builder: 'this test', targets: [CPU], now }
    const claimed = await artifacts.claim({ ...lease, until: new Date(now.getTime() + 3_600_000) })
    assert.ok(claimed !== null && claimed.release.id === releaseId)
    const held = { artifactId: claimed.artifact.id, leaseId: lease.leaseId }
    const lines = Array.from({ length: 3000 }, (_, index) => `line ${index} of the log`)
    await artifacts.appendLog(held, `${lines.join('\n')}\n`)
    if (isMade) await artifacts.succeed(held, BUILT, new Date())
    else await artifacts.fail(held, REASON, new Date())
    started.releases.add({ id: releaseId, version, buildId, accountId: 'ana' })
    return releaseId
  }

  test('a deployment is found, its history seen, and it goes back to the release before, by keys alone', async () => {
    await page.getByRole('row', { name: /^production Ready studio 2/ }).waitFor()
    await page.getByRole('link', { name: 'production' }).press('Enter')
    await page.getByText(`${started.app.url}/deployment/${deployed.id}`).waitFor()
    const history = page.getByRole('group', { name: 'History of production' })
    await history.getByRole('row', { name: /^2 Release 2 current moved/ }).waitFor()
    await page.getByRole('button', { name: 'Roll back to revision 1' }).press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('serves release 2 until release 1 is ready').waitFor()
    await dialog.getByRole('button', { name: 'Back', exact: true }).press('Enter')
    await dialog.waitFor({ state: 'detached' })
    assert.equal((await deployed.get()).pendingUpdate, null, 'nothing was asked for')
    await page.getByRole('button', { name: 'Roll back to revision 1' }).press('Enter')
    await dialog.getByRole('button', { name: 'Go back to release 1' }).press('Enter')
    await history.getByRole('row', { name: /^3 Release 1 current back to revision 1/ }).waitFor()
    assert.equal((await deployed.get()).releaseVersion, 1)
    opened.assertClean()
  })

  test('the newest release failed: its build shows why, and the end of what its builder said', async () => {
    await opened.go('/environments')
    await page.getByRole('group', { name: 'Builds' }).getByRole('link', { name: 'studio' }).click()
    await page.getByRole('heading', { name: 'Release 3' }).waitFor()
    const why = page.locator('.error-box')
    assert.equal(await why.innerText(), REASON)
    const log = page.getByRole('log', { name: 'Log of linux/cpu' })
    await log.waitFor()
    const said = (await log.innerText()).split('\n')
    assert.deepEqual([said[0], said.length, said.at(-1)], ['line 2000 of the log', 1000, 'line 2999 of the log'])
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    assert.equal((await download).suggestedFilename(), `${failed}-linux-cpu.log`)
    await page.getByRole('link', { name: 'Release 2' }).click()
    await page.getByRole('heading', { name: 'Release 2' }).waitFor()
    await why.waitFor({ state: 'detached' })
    await page.goBack()
    await why.waitFor()
    opened.assertClean()
  })
})
