/**
 * Engines die under load, one after the other, and come back as new processes that know nothing. Afterwards every job must have
 * ended well, none twice, and no attempt may have been executed more than once.
 */

import { call } from '../support/call.ts'
import { type FakeComfy, startFakeComfy } from '../support/fake-comfyui/fake-comfyui.ts'
import { pictureGraph } from '../support/fleet-app.ts'
import { startTestApp } from '../support/start-app.ts'

export interface FleetKillsOptions {
  readonly engines: number
  readonly jobs: number
  /** How many may wait or run at a time: clients that submit as fast as they get answers. */
  readonly inFlight: number
  readonly killEveryMs: number
  readonly downMs: number
  readonly nodeMs: number
  readonly settings?: Readonly<Record<string, string>>
  readonly say?: (line: string) => void
}

export interface FleetKillsReport {
  readonly succeeded: number
  readonly otherwise: readonly string[]
  readonly kills: number
  /** Executions per engine, over all its lives. */
  readonly split: readonly number[]
  /** Attempts that an engine began more than once. */
  readonly doubled: number
  /** Jobs without exactly one output. */
  readonly wrongOutputs: number
  /** From each death to the end of the job that was running there. */
  readonly recoveriesMs: readonly number[]
  readonly tookMs: number
}

const TERMINAL = new Set(['succeeded', 'failed', 'canceled', 'expired'])

export async function runFleetKills(options: FleetKillsOptions): Promise<FleetKillsReport> {
  const { nodeMs, settings = {}, say = () => {} } = options
  const startedAt = performance.now()
  const slots = await Promise.all(Array.from({ length: options.engines }, () => openSlot(nodeMs)))
  const app = await startTestApp({
    settings: {
      comfyui: slots.map(({ live }) => live.url.href).join(','),
      maxQueue: String(options.jobs),
      ...settings,
    },
  })
  try {
    const ends = new Map<string, { readonly status: string; readonly outputs: number; readonly atMs: number }>()
    const deaths: { readonly atMs: number; readonly jobs: readonly string[] }[] = []
    const over = new AbortController()
    const running = new Set<string>()
    const killing = killOneAfterTheOther(slots, { ...options, signal: over.signal, running, deaths })
    await submitAll(app.url, options, { ends, running, say })
    over.abort()
    await killing
    return toReport({ slots, ends, deaths, startedAt })
  } finally {
    await app[Symbol.asyncDispose]()
    for (const { live } of slots) await live[Symbol.asyncDispose]()
  }
}

/** One address behind which engines live one after the other. */
interface Slot {
  live: FakeComfy
  readonly lives: FakeComfy[]
}

async function openSlot(nodeMs: number): Promise<Slot> {
  const live = await startFakeComfy({ nodeMs })
  return { live, lives: [live] }
}

type Deaths = { readonly atMs: number; readonly jobs: readonly string[] }[]
type Ends = Map<string, { readonly status: string; readonly outputs: number; readonly atMs: number }>

interface KillParts extends FleetKillsOptions {
  readonly signal: AbortSignal
  readonly running: ReadonlySet<string>
  readonly deaths: Deaths
}

async function killOneAfterTheOther(slots: readonly Slot[], parts: KillParts): Promise<void> {
  for (let turn = 0; !parts.signal.aborted; turn++) {
    await pause(parts.killEveryMs, parts.signal)
    if (parts.signal.aborted) return
    const slot = slots[turn % slots.length]
    const { port } = slot.live
    parts.deaths.push({ atMs: performance.now(), jobs: [...parts.running] })
    await slot.live[Symbol.asyncDispose]()
    await pause(parts.downMs, parts.signal)
    slot.live = await startFakeComfy({ port, nodeMs: parts.nodeMs })
    slot.lives.push(slot.live)
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end, { once: true })
  })
}

interface Watch {
  readonly ends: Ends
  readonly running: Set<string>
  readonly say: (line: string) => void
}

async function submitAll(
  url: string,
  { jobs, inFlight }: FleetKillsOptions,
  { ends, running, say }: Watch,
): Promise<void> {
  let next = 0
  const client = async () => {
    while (next < jobs) {
      const workflow = pictureGraph(next++)
      const answer = await call(url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
      if (answer.status !== 201) throw new Error(`a submit was refused: ${answer.text}`)
      await follow(url, answer.json.id, { ends, running })
      if (ends.size % 100 === 0) say(`${ends.size} of ${jobs} jobs have ended`)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, client))
}

async function follow(url: string, id: string, { ends, running }: Pick<Watch, 'ends' | 'running'>): Promise<void> {
  for (;;) {
    const { json: job } = await call(url, `/api/v2/jobs/${id}`)
    if (job.status === 'running') running.add(id)
    else running.delete(id)
    if (TERMINAL.has(job.status)) {
      const reason = job.error === null ? '' : `:${job.error.code}`
      ends.set(id, { status: `${job.status}${reason}`, outputs: job.outputs.length, atMs: performance.now() })
      return
    }
    await pause(25, new AbortController().signal)
  }
}

interface ReportParts {
  readonly slots: readonly Slot[]
  readonly ends: Ends
  readonly deaths: Deaths
  readonly startedAt: number
}

function toReport({ slots, ends, deaths, startedAt }: ReportParts): FleetKillsReport {
  const prompts = slots.flatMap(({ lives }) =>
    lives.flatMap(({ executions }) => executions.map(({ promptId }) => promptId)),
  )
  const all = [...ends.values()]
  return {
    succeeded: all.filter(({ status }) => status === 'succeeded').length,
    otherwise: all.filter(({ status }) => status !== 'succeeded').map(({ status }) => status),
    kills: deaths.length,
    split: slots.map(({ lives }) => lives.reduce((sum, { executions }) => sum + executions.length, 0)),
    doubled: prompts.length - new Set(prompts).size,
    wrongOutputs: all.filter(({ status, outputs }) => status === 'succeeded' && outputs !== 1).length,
    recoveriesMs: deaths.flatMap(({ atMs, jobs }) =>
      jobs.map((id) => (ends.get(id)?.atMs ?? Number.POSITIVE_INFINITY) - atMs),
    ),
    tookMs: performance.now() - startedAt,
  }
}
