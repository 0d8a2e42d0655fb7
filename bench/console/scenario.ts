/**
 * `npm run bench console`: the page in a real browser over a service with 100,000 stored jobs. Sizes are budgets; times hold for a
 * machine that does nothing else. Without a browser only what needs none is measured.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storeJobs } from '../../test/support/app/stored-jobs.ts'
import { launchBrowser, withoutBrowser } from '../../test/support/browser/browser.ts'
import type { Figure } from '../kit/figure.ts'
import { forkServer } from '../kit/server-child.ts'
import { measureFrames } from './frames.ts'
import { measureLoads } from './loads.ts'
import { measureService } from './service.ts'
import { measureWatching } from './watching.ts'

const STORED = 100_000

export async function consoleScenario(): Promise<Figure[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-bench-console-'))
  try {
    await storeJobs(dataDir, { count: STORED })
    await using server = await forkServer('bench/servers/atelier.ts', { engine: 'instant', dataDir })
    const figures = await measureService(server)
    if (withoutBrowser !== false) {
      console.error(`the pages are not measured: ${withoutBrowser}`)
      return figures
    }
    await using browser = await launchBrowser()
    return [
      ...figures,
      ...(await measureLoads(browser, server.url)),
      ...(await measureFrames(browser, server.url)),
      ...(await measureWatching(browser, server)),
    ]
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}
