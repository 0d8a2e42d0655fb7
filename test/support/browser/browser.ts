/**
 * A real browser for the tests of the console. Each page watches what must never happen: a message in the console that is an error, a
 * violation of the page's policy, a request that fails. `assertClean` ends a test with that.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

const CANDIDATES = [
  process.env['ATELIER_TEST_BROWSER'] ?? '',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

const browserPath = CANDIDATES.find((candidate) => candidate !== '' && existsSync(candidate)) ?? null

/** For the `skip` of a test: false where there is a browser, else why not. */
export const withoutBrowser: string | false =
  browserPath === null ? 'there is no Chromium here; install it, or name one in ATELIER_TEST_BROWSER' : false

export interface TestBrowser extends AsyncDisposable {
  /** A page with cookies of its own. */
  open(options?: PageOptions): Promise<WatchedPage>
}

interface PageOptions {
  readonly width?: number
  readonly theme?: 'light' | 'dark'
}

export interface WatchedPage extends AsyncDisposable {
  readonly page: Page
  readonly context: BrowserContext
  /** What must not happen and did; `allowed` lists what this test brings about itself. */
  faults(allowed?: readonly RegExp[]): readonly string[]
  assertClean(allowed?: readonly RegExp[]): void
}

const HEIGHT = 900

export async function launchBrowser(): Promise<TestBrowser> {
  if (browserPath === null) throw new Error('there is no browser')
  const browser = await chromium.launch({
    executablePath: browserPath,
    // As root, and in containers, the browser's own sandbox cannot be had. Nothing but our own pages is opened.
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  return {
    open: (options = {}) => openPage(browser, options),
    [Symbol.asyncDispose]: () => browser.close(),
  }
}

async function openPage(browser: Browser, { width = 1440, theme = 'light' }: PageOptions): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: { width, height: HEIGHT },
    colorScheme: theme,
    reducedMotion: 'reduce',
  })
  const page = await context.newPage()
  const seen: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') seen.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => seen.push(`thrown: ${error.message}`))
  page.on('requestfailed', (request) => {
    // A page that goes elsewhere gives up its streams.
    const reason = request.failure()?.errorText ?? ''
    if (reason !== 'net::ERR_ABORTED') seen.push(`failed: ${request.method()} ${request.url()} ${reason}`)
  })
  page.on('response', (response) => {
    if (response.status() >= 400)
      seen.push(`answered ${response.status()}: ${response.request().method()} ${response.url()}`)
  })
  const faults = (allowed: readonly RegExp[] = []) =>
    seen.filter((line) => !allowed.some((pattern) => pattern.test(line)))
  return {
    page,
    context,
    faults,
    assertClean: (allowed) => assert.deepEqual(faults(allowed), []),
    [Symbol.asyncDispose]: () => context.close(),
  }
}
