/** A page of the console over a service of this test, with what the tests of tasks need: clicks that are counted. */
import type { Locator, Page } from 'playwright-core'
import type { TestBrowser, WatchedPage } from './browser.ts'

export interface ConsolePage extends AsyncDisposable {
  readonly page: Page
  readonly watched: WatchedPage
  /** How many clicks it took so far. */
  readonly clicks: number
  click(target: Locator): Promise<void>
  /** Goes to a place as a link does, without loading the page anew. */
  go(path: string): Promise<void>
  /** Nothing failed, was refused or was complained of; `allowed` lists what the test brings about itself. */
  assertClean(allowed?: readonly RegExp[]): void
}

interface ConsoleOptions {
  readonly path?: string
  readonly width?: number
  readonly theme?: 'light' | 'dark'
  /** Signs in with it first; with several, one after the other. */
  readonly credential?: string | readonly string[]
}

export async function openConsole(
  browser: TestBrowser,
  url: string,
  options: ConsoleOptions = {},
): Promise<ConsolePage> {
  const { path = '', width = 1440, theme = 'light', credential = [] } = options
  const watched = await browser.open({ width, theme })
  const { page } = watched
  for (const text of typeof credential === 'string' ? [credential] : credential) await signIn(page, { url, text })
  await page.goto(`${url}/console${path}`)
  await page.getByRole('navigation', { name: 'Places' }).waitFor()
  let clicks = 0
  return {
    page,
    watched,
    get clicks() {
      return clicks
    },
    async click(target) {
      clicks++
      await target.click()
    },
    go: (to) =>
      page.evaluate(`{
        document.activeElement?.blur()
        history.pushState(null, '', ${JSON.stringify(`/console${to}`)})
        window.dispatchEvent(new PopStateEvent('popstate'))
      }`),
    assertClean: (allowed = []) => watched.assertClean(allowed),
    [Symbol.asyncDispose]: () => watched[Symbol.asyncDispose](),
  }
}

/** The cookie is asked for as the page asks for it; the form itself has tests of its own. */
async function signIn(page: Page, { url, text }: { readonly url: string; readonly text: string }): Promise<void> {
  const answer = await page.context().request.post(`${url}/console/v1/session`, {
    headers: { origin: new URL(url).origin, 'x-atelier-console': '1' },
    data: { credential: text },
  })
  if (!answer.ok()) throw new Error(`signing in was answered ${answer.status()}: ${await answer.text()}`)
}
