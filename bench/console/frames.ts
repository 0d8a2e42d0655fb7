/** How smoothly long lists and large graphs move. */
import type { Page } from 'playwright-core'
import type { TestBrowser } from '../../test/support/browser/browser.ts'
import { openConsole } from '../../test/support/browser/console-page.ts'
import { createConsoleClient } from '../../test/support/clients/console-client.ts'
import type { Figure } from '../kit/figure.ts'
import { atMost, quantile } from './budget.ts'

type LayOut = (graph: {
  readonly sizes: readonly { readonly w: number; readonly h: number }[]
  readonly links: readonly (readonly [from: number, to: number])[]
}) => unknown

// By its address: a checkout without the console compiles all the same.
const LAYOUT = new URL('../../console/src/graph/layout.ts', import.meta.url).href

const SCROLLS = 120
const NODES = 2000
const ROUNDS = 7

export async function measureFrames(browser: TestBrowser, url: string): Promise<Figure[]> {
  await using opened = await openConsole(browser, url, { path: '/jobs' })
  const { page } = opened
  const rows = page.getByRole('table', { name: 'Jobs' }).getByRole('link')
  await rows.first().waitFor()
  const box = await rows.nth(3).boundingBox()
  await page.mouse.move((box?.x ?? 0) + 20, (box?.y ?? 0) + 5)
  const scrolled = await framesOf(page, async () => {
    for (let scroll = 0; scroll < SCROLLS; scroll++) await page.mouse.wheel(0, 300)
  })
  const filters: number[] = []
  const opens: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await opened.go('/jobs')
    await rows.first().waitFor()
    filters.push(
      await timeOf(page, `a[href$="status=failed"]`, `document.querySelector('main [role=row] [data-status=failed]')`),
    )
    opens.push(await timeOf(page, 'main [role=row] a', `document.querySelector('main .job-line')`))
  }
  const graph = await measureGraph(page, url, opened.go)
  // The files of this engine are no pictures: there are no small ones of them.
  opened.assertClean([/404/])
  return [
    atMost('frames while a list of 100,000 is scrolled, p50', [quantile(scrolled, 0.5), 17], 'ms', {
      frames: scrolled.length,
    }),
    atMost('the same, p95', [quantile(scrolled, 0.95), 40], 'ms', {}),
    atMost('a filter over 100,000 jobs, p50', [quantile(filters, 0.5), 120], 'ms', { filters }),
    atMost('a job with its data, after the click, p50', [quantile(opens, 0.5), 150], 'ms', { opens }),
    ...graph,
  ]
}

async function measureGraph(page: Page, url: string, go: (path: string) => Promise<void>): Promise<Figure[]> {
  const { layOut } = (await import(LAYOUT)) as { readonly layOut: LayOut }
  const layouts = Array.from({ length: ROUNDS }, () => {
    const startedAt = performance.now()
    layOut({
      sizes: Array.from({ length: NODES }, () => ({ w: 200, h: 80 })),
      links: Array.from({ length: NODES - 1 }, (_, index) => [Math.floor(index / 2), index + 1] as const),
    })
    return performance.now() - startedAt
  })
  const client = createConsoleClient(url)
  const id = await client.submit(largeGraph())
  await client.untilStatus(id, 'succeeded', 'failed')
  await go(`/jobs/${id}#graph`)
  const canvas = page.locator('main canvas')
  await canvas.waitFor()
  const box = await canvas.boundingBox()
  const [x, y] = [(box?.x ?? 0) + 300, (box?.y ?? 0) + 200]
  await page.mouse.move(x, y)
  await page.mouse.down()
  await timeCallbacks(page)
  const panned = await framesOf(page, async () => {
    for (let step = 0; step < SCROLLS; step++) await page.mouse.move(x + step, y + (step % 50))
  })
  await page.mouse.up()
  const draws = await page.evaluate<number[]>('window.callbacks_')
  return [
    atMost('layout of 2,000 nodes, p50', [quantile(layouts, 0.5), 60], 'ms', { layouts }),
    atMost('drawing them, p95', [quantile(draws, 0.95), 8], 'ms', { draws: draws.length }),
    atMost('frames while they are moved, p95', [quantile(panned, 0.95), 34], 'ms', { frames: panned.length }),
  ]
}

function largeGraph(): object {
  const first = { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 1 } }
  const nodes = Array.from({ length: NODES - 1 }, (_, index) => [
    String(index + 2),
    { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: `n${index}` } },
  ])
  return Object.fromEntries([['1', first], ...nodes])
}

/** From now on: how long the page takes for what it does in a frame. The graph is drawn there, and nothing else. */
async function timeCallbacks(page: Page): Promise<void> {
  await page.evaluate(`{
    window.callbacks_ = []
    const later = window.requestAnimationFrame.bind(window)
    window.requestAnimationFrame = (deed) =>
      later((at) => {
        const startedAt = performance.now()
        deed(at)
        if (deed.isOfBench !== true) window.callbacks_.push(performance.now() - startedAt)
      })
  }`)
}

/** The times between frames, while this happens. */
async function framesOf(page: Page, deed: () => Promise<void>): Promise<readonly number[]> {
  await page.evaluate(`{
    window.frames_ = []
    let last = performance.now()
    const next = (at) => {
      window.frames_?.push(at - last)
      last = at
      if (window.frames_ !== null) requestAnimationFrame(next)
    }
    next.isOfBench = true
    requestAnimationFrame(next)
  }`)
  await deed()
  return page.evaluate<number[]>(`{ const seen = window.frames_; window.frames_ = null; seen.slice(1) }`)
}

/** From a click on the first of these to the frame in which something is there, inside the page. */
function timeOf(page: Page, selector: string, isThere: string): Promise<number> {
  return page.evaluate<number>(`new Promise((resolve) => {
    const startedAt = performance.now()
    document.querySelector(${JSON.stringify(selector)}).click()
    const look = () => (${isThere}) ? resolve(performance.now() - startedAt) : requestAnimationFrame(look)
    requestAnimationFrame(look)
  })`)
}
