/**
 * A real browser for the tests of the console. Each page watches what must never happen: a message in the console that is an error, a
 * violation of the page's policy, a request that fails. `assertClean` ends a test with that; whatever happened on a page that no test
 * asked about fails the file when its browser is closed.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { refuseInQuickRun } from '../not-quick.ts'
import { GIVE_UP_MS } from '../wait-until.ts'

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
  /** A test has looked at what happened on it. */
  readonly wasAsked: boolean
  /** What must not happen and did; `allowed` lists what this test brings about itself. */
  faults(allowed?: readonly RegExp[]): readonly string[]
  assertClean(allowed?: readonly RegExp[]): void
}

const HEIGHT = 900

export async function launchBrowser(): Promise<TestBrowser> {
  refuseInQuickRun('a browser')
  if (browserPath === null) throw new Error('there is no browser')
  const browser = await chromium.launch({
    executablePath: browserPath,
    // As root, and in containers, the browser's own sandbox cannot be had. Nothing but our own pages is opened.
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  const opened: WatchedPage[] = []
  return {
    async open(options = {}) {
      const page = await openPage(browser, options)
      opened.push(page)
      return page
    },
    async [Symbol.asyncDispose]() {
      await browser.close()
      const unasked = opened.filter(({ wasAsked }) => !wasAsked).flatMap((page) => page.faults())
      assert.deepEqual(unasked, [], 'on pages of which no test asked')
    },
  }
}

async function openPage(browser: Browser, { width = 1440, theme = 'light' }: PageOptions): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: { width, height: HEIGHT },
    colorScheme: theme,
    reducedMotion: 'reduce',
  })
  // As every wait of the tests: it ends a run that hangs, and says nothing about speed.
  context.setDefaultTimeout(GIVE_UP_MS)
  const page = await context.newPage()
  const seen: string[] = []
  // Of the context, so that further tabs are watched as well.
  context.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') seen.push(`${message.type()}: ${message.text()}`)
  })
  context.on('weberror', (error) => seen.push(`thrown: ${error.error().message}`))
  context.on('requestfailed', (request) => {
    // A page that goes elsewhere gives up its streams.
    const reason = request.failure()?.errorText ?? ''
    if (reason !== 'net::ERR_ABORTED') seen.push(`failed: ${request.method()} ${request.url()} ${reason}`)
  })
  context.on('response', (response) => {
    if (response.status() >= 400)
      seen.push(`answered ${response.status()}: ${response.request().method()} ${response.url()}`)
  })
  let wasAsked = false
  const faults = (allowed: readonly RegExp[] = []) =>
    seen.filter((line) => !allowed.some((pattern) => pattern.test(line)))
  return {
    page,
    context,
    get wasAsked() {
      return wasAsked
    },
    faults,
    assertClean(allowed) {
      wasAsked = true
      assert.deepEqual(faults(allowed), [])
    },
    [Symbol.asyncDispose]: () => context.close(),
  }
}
