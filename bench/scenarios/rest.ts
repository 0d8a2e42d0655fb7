/**
 * `npm run bench rest`: how soon a service answers after its start, with an empty folder and with many stored jobs, and what it
 * holds while it does nothing, before any job and after many. Takes a quarter of an hour, nearly all of it rest. Threads are
 * counted where the system tells them.
 */
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sleep } from '../../lib/waiting/sleep.ts'
import { storeJobs } from '../../test/support/app/stored-jobs.ts'
import { quantile } from '../console/budget.ts'
import { submitJob } from '../kit/client-steps.ts'
import type { Figure } from '../kit/figure.ts'
import { textWorkflow } from '../kit/workflows.ts'
import { startAtelier } from '../peers/job-services.ts'
import type { PeerProcess } from '../peers/peer-process.ts'

const STARTS = 5
const STORED = 100_000
const JOBS = 10_000
const IN_FLIGHT = 16
const FIRST_REST_MS = 120_000
const LONG_REST_MS = 600_000
const LOOK_EVERY_MS = 250
const MB = 1e6

export async function rest(): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-bench-rest-'))
  try {
    await storeJobs(folder, { count: STORED })
    // The first start of a build compiles what later ones find in the cache.
    await timeStart()
    const empty: number[] = []
    const stored: number[] = []
    for (let round = 0; round < STARTS; round++) {
      empty.push(await timeStart())
      stored.push(await timeStart(folder))
    }
    return [
      atMost('start with an empty folder', [quantile(empty, 0.5), 700], 'ms', { ms: empty }),
      atMost(`start with ${STORED} jobs`, [quantile(stored, 0.5), 1000], 'ms', { ms: stored }),
      ...(await measureRest()),
    ]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function timeStart(dataDir?: string): Promise<number> {
  await using service = await startAtelier(null, dataDir)
  return service.startedMs
}

async function measureRest(): Promise<Figure[]> {
  await using service = await startAtelier(null)
  const begun = service.rssBytes() / MB
  await sleep(FIRST_REST_MS)
  const first = service.rssBytes() / MB
  const threads = countThreads(service)
  await runJobs(service)
  const busy = service.rssBytes() / MB
  await sleep(LONG_REST_MS)
  const last = service.rssBytes() / MB
  return [
    atMost('memory at rest', [first, 150], 'MB', { afterMs: FIRST_REST_MS, begun }),
    ...(threads === null ? [] : [atMost('threads at rest', [threads.length, 8], '', { threads })]),
    atMost(`memory at rest after ${JOBS} jobs`, [last, 200], 'MB', { afterMs: LONG_REST_MS, busy }),
  ]
}

/** On the built-in engine, each followed to its end. */
async function runJobs({ url }: PeerProcess): Promise<void> {
  let submitted = 0
  const client = async () => {
    while (submitted < JOBS) {
      const { id } = await submitJob(url, textWorkflow(submitted++))
      await untilSucceeded(`${url}/api/v2/jobs/${id}`)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, client))
}

async function untilSucceeded(url: string): Promise<void> {
  for (;;) {
    const { status } = (await (await fetch(url)).json()) as { status: string }
    if (status === 'succeeded') return
    if (status !== 'queued' && status !== 'running') throw new Error(`a job ended as ${status}`)
    await sleep(LOOK_EVERY_MS)
  }
}

function countThreads({ pid }: PeerProcess): readonly string[] | null {
  const folder = `/proc/${pid}/task`
  return existsSync(folder) ? readdirSync(folder) : null
}

function atMost(name: string, [measured, bar]: readonly [number, number], unit: string, detail: object): Figure {
  return { name, measured, bar, unit, direction: 'at_most', detail: { ...detail } }
}
