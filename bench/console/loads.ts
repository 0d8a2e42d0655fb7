/** What a first visit brings along, and how soon something is seen. */
import { readFileSync, statSync } from 'node:fs'
import type { Page } from 'playwright-core'
import type { TestBrowser } from '../../test/support/browser/browser.ts'
import { openConsole } from '../../test/support/browser/console-page.ts'
import type { Figure } from '../kit/figure.ts'
import { atMost, quantile } from './budget.ts'

const ROUNDS = 7
const KB = 1000
const DIST = new URL('../../console/dist/', import.meta.url)

const FIRST_PAINT = `new Promise((resolve) => {
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.name === 'first-contentful-paint') resolve(entry.startTime)
  }).observe({ type: 'paint', buffered: true })
})`

export async function measureLoads(browser: TestBrowser, url: string): Promise<Figure[]> {
  const cold: number[] = []
  const warm: number[] = []
  let loaded: readonly string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await using opened = await openConsole(browser, url)
    cold.push(await opened.page.evaluate<number>(FIRST_PAINT))
    loaded = await namesOf(opened.page)
    await opened.page.reload()
    warm.push(await opened.page.evaluate<number>(FIRST_PAINT))
  }
  const sum = (ending: string) =>
    loaded.filter((name) => name.endsWith(ending)).reduce((all, name) => all + gzipped(name), 0)
  return [
    atMost('script of the first load, gzip', [sum('.js') / KB, 60], 'KB', { loaded }),
    atMost('style of the first load, gzip', [sum('.css') / KB, 12], 'KB', { loaded }),
    atMost('the editor, when it is asked for, gzip', [Math.max(...allScripts().map(gzipped)) / KB, 125], 'KB', {}),
    atMost('first paint, first visit', [quantile(cold, 0.5), 500], 'ms', { cold }),
    atMost('first paint, later visits', [quantile(warm, 0.5), 250], 'ms', { warm }),
  ]
}

async function namesOf(page: Page): Promise<readonly string[]> {
  const urls = await page.evaluate<string[]>(`performance.getEntriesByType('resource').map(({ name }) => name)`)
  return urls.flatMap((each) => /\/console\/files\/([^?]+)$/.exec(each)?.[1] ?? [])
}

function gzipped(name: string): number {
  return statSync(new URL(`${name}.gz`, DIST)).size
}

function allScripts(): readonly string[] {
  const { files } = JSON.parse(readFileSync(new URL('manifest.json', DIST), 'utf8')) as {
    files: Record<string, object>
  }
  return Object.keys(files).filter((name) => name.endsWith('.js'))
}
