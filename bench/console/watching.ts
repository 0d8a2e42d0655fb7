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
const BUSY_MS = 30_000
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

  await busy(client, BUSY_MS / 3)
  const before = await heapOf(page)
  await busy(client, BUSY_MS)
  const after = await heapOf(page)
  // The files of this engine are no pictures: there are no small ones of them.
  opened.assertClean([/404/])
  return [
    atMost('a job that was acknowledged is seen, p95', [quantile(ways, 0.95), 300], 'ms', { ways }),
    atMost('requests of an idle page in 15 s', [requests, 0], 'requests', {}),
    atMost('memory of a tab at 50 changes a second', [after / MIB, 120], 'MiB', { before, after }),
    atMost('its growth in 30 s of that', [Math.max(0, after - before) / MIB, 8], 'MiB', { before, after }),
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
