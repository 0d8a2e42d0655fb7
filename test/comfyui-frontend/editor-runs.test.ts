/**
 * ComfyUI's own editor over a service whose engine does what each test says: runs, several of them, previews, cancels, the queue, the
 * history, an error, a reload and a restart of the service. One page for all, as a person would have it.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../support/app/start-app.ts'
import { launchBrowser, type TestBrowser } from '../support/browser/browser.ts'
import {
  EDITOR_SETTINGS,
  type EditorPage,
  openEditor,
  PATIENCE_MS,
  skipFirstVisit,
  untilReady,
  withoutEditor,
} from '../support/browser/editor-page.ts'
import { createFakeEngine, type FakeEngine } from '../support/engines/fake-engine.ts'
import { findFreePort } from '../support/network/free-port.ts'
import { waitUntil } from '../support/wait-until.ts'

interface ListedJob {
  readonly id: string
  readonly status: string
}

const node = (class_type: string, inputs: object = {}) => ({ class_type, inputs })
const SAVE = { '1': node('FakeSave', { text: 'a', count: 1 }) }
const GATE = { '1': node('FakeGate'), '2': node('FakeSave', { text: 'b', count: 1 }) }

describe("ComfyUI's editor", { skip: withoutEditor, timeout: 5 * PATIENCE_MS }, () => {
  let engine: FakeEngine
  let service: TestApp
  let url: string
  let browser: TestBrowser
  let editor: EditorPage

  before(async () => {
    engine = createFakeEngine()
    const comfyuiFrontendPort = String(await findFreePort())
    const settings = { ...EDITOR_SETTINGS, comfyuiFrontendPort, workers: '2' }
    service = await startTestApp({ settings, overrides: { engine } })
    url = service.app.frontendUrl as string
    await skipFirstVisit(url)
    browser = await launchBrowser()
    editor = await openEditor(browser, url)
  })
  after(async () => {
    engine.release()
    await browser?.[Symbol.asyncDispose]()
    await service?.[Symbol.asyncDispose]()
  })

  const listJobs = async (status = ''): Promise<readonly ListedJob[]> => {
    const answer = await fetch(`${url}/api/jobs?limit=100&status=${status}`)
    return ((await answer.json()) as { readonly jobs: readonly ListedJob[] }).jobs
  }
  const countJobs = async (status: string) => (await listJobs(status)).length
  const untilCount = (status: string, count: number) => waitUntil(async () => (await countJobs(status)) === count)

  test('first visit: no node of the graph that opens by itself is of a class that the engines lack', async () => {
    const lacking = 'app.graph.nodes.filter(({ type }) => !(type in LiteGraph.registered_node_types)).length'
    assert.equal(await editor.ask(lacking), 0)
  })

  test('run: the graph on the canvas runs, and its node shows what it made', async () => {
    await editor.load(SAVE, 'run')
    await editor.run.click()
    await editor.until('app.nodeOutputs["1"]?.images?.length === 1')
    await untilCount('completed', 1)
    editor.assertClean()
  })

  test('batch: of three runs two go at once, and the editor keeps sight of the second when the first ends', async () => {
    const [done, runs] = [await countJobs('completed'), engine.runs.length]
    await editor.load(GATE, 'batch')
    await editor.page.getByRole('textbox', { name: 'Batch Count' }).fill('3')
    await editor.page.keyboard.press('Enter')
    await editor.run.click()
    await engine.untilRuns(runs + 2)
    engine.openGate()
    await untilCount('completed', done + 1)
    await engine.untilRuns(runs + 3)
    await editor.until('!document.querySelector(\'button[aria-label="Cancel current run"]\').disabled')
    engine.openGate()
    engine.openGate()
    await untilCount('completed', done + 3)
    await editor.until('(await app.api.getQueue()).Running.length === 0')
    await editor.page.getByRole('textbox', { name: 'Batch Count' }).fill('1')
    await editor.page.keyboard.press('Enter')
  })

  test('previews: what a sampler shows on its way arrives at its node', async () => {
    await editor.ask(`{
      window.previews = []
      app.api.addEventListener('b_preview_with_metadata', ({ detail }) => window.previews.push(detail.nodeId))
    }`)
    await editor.load({ '1': node('FakeSampler', { steps: 4 }) }, 'previews')
    await editor.run.click()
    await editor.until('window.previews.includes("1")')
  })

  test('cancel: the button ends the current run', async () => {
    const before = await countJobs('cancelled')
    await editor.load({ '1': node('FakeHang') }, 'cancel')
    await editor.run.click()
    await untilCount('in_progress', 1)
    await editor.cancel.click()
    await untilCount('cancelled', before + 1)
    await untilCount('in_progress', 0)
  })

  test('queue: what waits is shown and cleared, and does not come back as failed', async () => {
    const before = await countJobs('cancelled')
    await editor.load(GATE, 'queue')
    for (let count = 1; count <= 4; count++) {
      await editor.run.click()
      await waitUntil(async () => (await countJobs('pending')) + (await countJobs('in_progress')) === count)
    }
    await editor.page.getByTestId('queue-overlay-toggle').click()
    await editor.page.getByRole('button', { name: 'Clear queued' }).click()
    await untilCount('pending', 0)
    assert.equal(await countJobs('in_progress'), 2)
    assert.equal(await countJobs('cancelled'), before)
    engine.openGate()
    engine.openGate()
    await untilCount('in_progress', 0)
  })

  test('history: every run that ended is a row of the panel', async () => {
    const [newest] = await listJobs('completed')
    await editor.page.locator(`[data-job-id="${newest?.id}"]`).first().waitFor()
    assert.equal(await editor.ask('(await app.api.getHistory()).length'), (await listJobs()).length)
    await editor.page.getByTestId('queue-overlay-toggle').click()
  })

  test('error: a node that fails is named and marked', async () => {
    await editor.load({ '7': node('FakeFail') }, 'error')
    await editor.run.click()
    await editor.until('String(app.lastExecutionError?.node_id) === "7"')
    await editor.page.getByTestId('error-overlay').waitFor()
  })

  test('save: a workflow gets a name, lies among the files of the user, and opens again', async () => {
    await editor.load(SAVE, 'draft')
    await editor.page.keyboard.press('Control+s')
    await editor.page.locator('.prompt-dialog-content input').fill('kept')
    await editor.page.keyboard.press('Enter')
    await waitUntil(async () => (await fetch(`${url}/api/userdata/workflows%2Fkept.json`)).ok)
    const saved = await (await fetch(`${url}/api/userdata/workflows%2Fkept.json`)).json()
    assert.equal((saved as { readonly nodes: readonly { readonly type: string }[] }).nodes[0]?.type, 'FakeSave')
  })

  test('reload: in the middle of a run the page comes back with its graph and hears of the end', async () => {
    const done = await countJobs('completed')
    await editor.load(GATE, 'reload')
    await editor.run.click()
    await untilCount('in_progress', 1)
    await editor.page.reload({ timeout: PATIENCE_MS })
    await untilReady(editor.page)
    await editor.until('app.graph.nodes.some(({ type }) => type === "FakeGate")')
    await editor.until('(await app.api.getQueue()).Running.length === 1')
    engine.openGate()
    await untilCount('completed', done + 1)
    await editor.page.getByTestId('queue-overlay-toggle').filter({ hasText: '0 active' }).waitFor()
  })

  test('restart: jobs that wait while the service goes away run afterwards, and the open page shows them', async () => {
    const done = await countJobs('completed')
    await editor.load(GATE, 'restart')
    for (let count = 1; count <= 4; count++) {
      await editor.run.click()
      await waitUntil(async () => (await countJobs('pending')) + (await countJobs('in_progress')) === count)
    }
    service = await service.restart()
    assert.equal(service.app.frontendUrl, url)
    for (let count = 1; count <= 4; count++) engine.openGate()
    await untilCount('completed', done + 4)
    assert.equal(await countJobs('failed'), 1, 'the one that an earlier test let fail')
    await editor.until(
      `(await app.api.getHistory()).filter(({ status }) => status === 'completed').length === ${done + 4}`,
    )
    await editor.page.getByTestId('queue-overlay-toggle').filter({ hasText: '0 active' }).waitFor()
  })
})
