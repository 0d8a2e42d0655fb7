/** A page that stays open: how soon it shows what happened, what it asks for meanwhile, and whether it grows. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import type { TestBrowser } from '../../test/support/browser/browser.ts'
import { openConsole } from '../../test/support/browser/console-page.ts'
import { createConsoleClient } from '../../test/support/clients/console-client.ts'
import type { Figure } from '../kit/figure.ts'
import type { ServerChild } from '../kit/server-child.ts'
import { freshWorkflow } from '../kit/workflows.ts'
import { atMost, quantile } from './budget.ts'

const EVENTS = 25
const IDLE_MS = 15_000
// An hour takes an hour: `ATELIER_BENCH_TAB_MINUTES=60` measures it whole.
const BUSY_MS = Number(process.env['ATELIER_BENCH_TAB_MINUTES'] ?? 0.5) * 60_000
const READINGS = 4
// Each job is told of about five times: submitted, claimed, run, ended.
const JOBS_A_SECOND = 10
const MIB = 1024 * 1024

export async function measureWatching(browser: TestBrowser, server: ServerChild): Promise<Figure[]> {
  await using opened = await openConsole(browser, server.url, { path: '/jobs' })
  const { page } = opened
  const client = createConsoleClient(server.url)
  await page.getByText('live', { exact: true }).waitFor()
  const requests = await countRequests(page, () => pause(IDLE_MS))

  const ways: number[] = []
  for (let index = 0; index < EVENTS; index++) {
    const name = `seen ${index}`
    const seen = page.evaluate<number>(`new Promise((resolve) => {
      const look = () => document.querySelector('main').textContent.includes(${JSON.stringify(name)}) ? resolve(Date.now()) : requestAnimationFrame(look)
      look()
    })`)
    await client.submit(freshWorkflow(index), { metadata: { name } })
    const acknowledgedAt = Date.now()
    ways.push(Math.max(0, (await seen) - acknowledgedAt))
  }

  // Until everything has been drawn once and the book of jobs has filled a little.
  await busy(client, 10_000)
  const heaps = [await heapOf(page)]
  for (let reading = 0; reading < READINGS; reading++) {
    await busy(client, BUSY_MS / READINGS)
    heaps.push(await heapOf(page))
  }
  const [before = 0, after = 0] = [heaps[0], heaps.at(-1)]
  // The files of this engine are no pictures: there are no small ones of them.
  opened.assertClean([/404/])
  return [
    atMost('a job that was acknowledged is seen, p95', [quantile(ways, 0.95), 300], 'ms', { ways }),
    atMost('requests of an idle page in 15 s', [requests, 0], 'requests', {}),
    atMost('memory of a tab at 50 changes a second', [Math.max(...heaps) / MIB, 120], 'MiB', { heaps, BUSY_MS }),
    atMost('its growth meanwhile', [Math.max(0, after - before) / MIB, 8], 'MiB', { heaps, BUSY_MS }),
  ]
}

async function busy(client: ReturnType<typeof createConsoleClient>, forMs: number): Promise<void> {
  const until = performance.now() + forMs
  for (let index = 0; performance.now() < until; index++) {
    await Promise.all([
      client.submit(freshWorkflow(index), { metadata: { name: `busy ${index}` } }),
      pause(1000 / JOBS_A_SECOND),
    ])
  }
}

async function countRequests(page: Page, meanwhile: () => Promise<unknown>): Promise<number> {
  let count = 0
  const onRequest = () => {
    count++
  }
  page.on('request', onRequest)
  await meanwhile()
  page.off('request', onRequest)
  return count
}

/** After a full collection. */
async function heapOf(page: Page): Promise<number> {
  const debuggerOf = await page.context().newCDPSession(page)
  await debuggerOf.send('HeapProfiler.collectGarbage')
  const { usedSize } = await debuggerOf.send('Runtime.getHeapUsage')
  await debuggerOf.detach()
  return usedSize
}
