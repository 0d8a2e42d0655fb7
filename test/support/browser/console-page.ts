/** A page of the console over a service of this test, with what the tests of tasks need: clicks that are counted. */
import { readFileSync } from 'node:fs'
import type { Locator, Page } from 'playwright-core'
import type { TestBrowser, WatchedPage } from './browser.ts'

export interface ConsolePage extends AsyncDisposable {
  readonly page: Page
  readonly watched: WatchedPage
  /** How many clicks it took so far. */
  readonly clicks: number
  click(target: Locator): Promise<void>
  /** Nothing failed, was refused or was complained of; `allowed` lists what the test brings about itself. */
  assertClean(allowed?: readonly RegExp[]): void
}

interface ConsoleOptions {
  readonly path?: string
  readonly width?: number
  readonly theme?: 'light' | 'dark'
  /** Signs in with it first. */
  readonly credential?: string
}

export async function openConsole(
  browser: TestBrowser,
  url: string,
  options: ConsoleOptions = {},
): Promise<ConsolePage> {
  const { path = '', width = 1440, theme = 'light', credential } = options
  const watched = await browser.open({ width, theme })
  const { page } = watched
  if (credential !== undefined) {
    await page.goto(`${url}/console/sign-in`)
    await page.getByRole('textbox', { name: /API key/ }).fill(credential)
    await page.keyboard.press('Enter')
    await page.getByRole('navigation', { name: 'Places' }).waitFor()
  }
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
    assertClean: (allowed = []) => watched.assertClean([...allowed, ...unbuilt(watched)]),
    [Symbol.asyncDispose]: () => watched[Symbol.asyncDispose](),
  }
}

const CONTRACT = new URL('../../../spec/console.openapi.json', import.meta.url)

/** What the contract does not have yet is answered 404; the page shows that part as missing, and no test fails for it. */
function unbuilt(watched: WatchedPage): readonly RegExp[] {
  const { paths } = JSON.parse(readFileSync(CONTRACT, 'utf8')) as { readonly paths: Readonly<Record<string, unknown>> }
  const built = Object.keys(paths).map((path) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`))
  const missing = watched
    .faults()
    .flatMap((line) => /^answered 404: \w+ (\S+)/.exec(line)?.[1] ?? [])
    .map((url) => new URL(url).pathname)
    .filter((path) => path.startsWith('/console/v1/') && !built.some((pattern) => pattern.test(path)))
  if (missing.length === 0) return []
  const escaped = missing.map((path) => path.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return [new RegExp(`^answered 404: \\w+ \\S+(?:${escaped.join('|')})`), /Failed to load resource.*404/]
}
