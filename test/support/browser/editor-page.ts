/**
 * ComfyUI's own editor in a real browser. Nobody here wrote it, so it is told apart from our code by what it does: the tests click what a
 * person clicks and ask its own objects what it believes.
 */
import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { type TestBrowser, type WatchedPage, withoutBrowser } from './browser.ts'

/** The folder with the static files of comfyui-frontend-package. */
const folder = process.env['ATELIER_TEST_COMFYUI_FRONTEND'] ?? ''
const isThere = folder !== '' && existsSync(path.join(folder, 'index.html'))

/** For the `skip` of a test. */
export const withoutEditor: string | false =
  withoutBrowser !== false || isThere
    ? withoutBrowser
    : "there is no copy of ComfyUI's editor; name the static folder of comfyui-frontend-package in ATELIER_TEST_COMFYUI_FRONTEND"

export const EDITOR_SETTINGS = { comfyuiFrontend: folder, comfyuiFrontendPort: '0' } as const

// The page has 20 MB of scripts, and the machine may be busy with other tests.
export const PATIENCE_MS = 240_000

/**
 * What happens however right the service is: the editor asks for files that a new user does not have, calls home, and complains of its own
 * old parts.
 */
const USUAL = [
  /^answered 404: GET \S+\/api\/userdata/,
  /api\.comfy\.org/,
  /Failed to load resource: the server responded with a status of 404/,
  /^warning: /,
  /ComfyApp graph accessed before initialization/,
]

/** In API format. */
type PromptGraph = Readonly<Record<string, { readonly class_type: string; readonly inputs: object }>>

export interface EditorPage extends AsyncDisposable {
  readonly page: Page
  readonly watched: WatchedPage
  readonly run: Locator
  readonly cancel: Locator
  /** Opens a graph of the API's format in a tab of its own. */
  load(graph: PromptGraph, name: string): Promise<void>
  /** Asks something of the page until it is true. The question is JavaScript; `app` is the editor. */
  until(question: string): Promise<void>
  ask<T>(question: string): Promise<T>
  assertClean(allowed?: readonly RegExp[]): void
}

export async function openEditor(browser: TestBrowser, url: string): Promise<EditorPage> {
  const watched = await browser.open()
  watched.page.setDefaultTimeout(PATIENCE_MS)
  await watched.page.goto(url, { timeout: PATIENCE_MS })
  await untilReady(watched.page)
  return toEditor(watched)
}

/** The splash is gone and the graph can be asked. */
export async function untilReady(page: Page): Promise<void> {
  await page.locator('#splash-loader').waitFor({ state: 'detached' })
  await page.waitForFunction('window.app?.extensionManager !== undefined && window.app.graph !== undefined')
}

/** Settings of a user who has been here before: no dialog stands in the way. */
export async function skipFirstVisit(url: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  const body = JSON.stringify({ 'Comfy.TutorialCompleted': true, 'Comfy.Queue.QPOV2': false })
  const answer = await fetch(`${url}/api/settings`, { method: 'POST', headers, body })
  if (!answer.ok) throw new Error(`settings: ${answer.status}`)
}

export function toEditor(watched: WatchedPage): EditorPage {
  const { page } = watched
  return {
    page,
    watched,
    run: page.getByTestId('queue-button'),
    cancel: page.getByRole('button', { name: 'Cancel current run' }).first(),
    async load(graph, name) {
      await page.evaluate(`app.loadApiJson(${JSON.stringify(graph)}, ${JSON.stringify(name)})`)
    },
    async until(question) {
      await page.waitForFunction(`(async () => ${question})()`, null, { polling: 200 })
    },
    ask: (question) => page.evaluate(`(async () => ${question})()`),
    assertClean: (allowed = []) => watched.assertClean([...USUAL, ...allowed]),
    [Symbol.asyncDispose]: () => watched[Symbol.asyncDispose](),
  }
}
