/**
 * Engines die under load, one after the other: processes of their own that are killed without warning and come back at the same
 * address knowing nothing. Afterwards every job must have ended well and with its own bytes, and by the engines' own logs, which
 * outlive them, no attempt may have been executed more than once.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { sleep } from '../../../lib/waiting/sleep.ts'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import type { ConfigPatch } from '../../support/app/patch-config.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { FakeComfyChild } from '../../support/engines/fake-comfyui/child.ts'
import type { ExecutionNews } from '../../support/engines/fake-comfyui/fake-options.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { attemptsByPrompt } from '../../support/engines/jobs-by-prompt.ts'

export interface FleetKillsOptions {
  readonly engines: number
  readonly jobs: number
  /** How many may wait or run at a time: clients that submit as fast as they get answers. */
  readonly inFlight: number
  /** The next engine is killed after this time, or when this many more jobs have ended, however long that takes. */
  readonly killEvery: { readonly ms: number } | { readonly ends: number }
  readonly downMs: number
  readonly nodeMs: number
  readonly patch?: ConfigPatch
  /** Ends the trial early: kills, restarts and clients stop, and all processes go. */
  readonly signal?: AbortSignal
  readonly say?: (line: string) => void
}

export interface FleetKillsReport {
  readonly succeeded: number
  /** How all others ended. */
  readonly otherwise: readonly string[]
  readonly kills: number
  /** Executions that came to their end, per engine, over all its lives. */
  readonly split: readonly number[]
  /** Attempts that were begun more than once, by the engines' logs. */
  readonly begunTwice: number
  /** Attempts that came to their end more than once, by the engines' logs. */
  readonly doubled: number
  /** Executions that belong to no attempt of any job. */
  readonly strange: number
  /** Jobs whose engine died between the end of the run and the reading of its files: each ran to its end in two attempts. */
  readonly ranAgain: number
  /** Succeeded jobs without exactly one output, or with other bytes than their own. */
  readonly wrongOutputs: number
  /** From each death to the end of every job that was running then. */
  readonly recoveriesMs: readonly number[]
  readonly tookMs: number
}

interface End {
  readonly status: string
  readonly isOwnBytes: boolean
  readonly atMs: number
}

interface Death {
  readonly atMs: number
  readonly jobs: ReadonlySet<string>
}

const TERMINAL = new Set(['succeeded', 'failed', 'canceled', 'expired'])
const POLL_MS = 25

export async function runFleetKills(options: FleetKillsOptions): Promise<FleetKillsReport> {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-fleet-kills-'))
  await using opened = new AsyncDisposableStack()
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const engines = Array.from({ length: options.engines }, (_, index) =>
    opened.use(new FakeComfyChild({ nodeMs: options.nodeMs, logPath: join(folder, `engine-${index}.log`) })),
  )
  await Promise.all(engines.map((engine) => engine.start()))
  const settings = {
    comfyui: engines.map(({ url }) => url).join(','),
    maxQueue: String(options.jobs),
  }
  const app = opened.use(await startTestApp({ settings, patch: options.patch }))
  return await new Trial(app.url, engines, options).run()
}

class Trial {
  readonly #url: string
  readonly #engines: readonly FakeComfyChild[]
  readonly #options: FleetKillsOptions
  readonly #ends = new Map<string, End>()
  readonly #running = new Set<string>()
  readonly #deaths: Death[] = []
  #submitted = 0

  constructor(url: string, engines: readonly FakeComfyChild[], options: FleetKillsOptions) {
    this.#url = url
    this.#engines = engines
    this.#options = options
  }

  async run(): Promise<FleetKillsReport> {
    const startedAt = performance.now()
    const over = new AbortController()
    const killing = this.#killOneAfterTheOther(over.signal)
    const clients = Promise.all(Array.from({ length: this.#options.inFlight }, () => this.#client()))
    await Promise.all([clients.finally(() => over.abort()), killing])
    return this.#toReport(performance.now() - startedAt)
  }

  /** Kills one engine after the other, by time or by jobs ended. A new process is awaited only before its engine is killed again. */
  async #killOneAfterTheOther(over: AbortSignal): Promise<void> {
    const restarts = this.#engines.map(() => Promise.resolve())
    for (let kill = 0; ; kill++) {
      await this.#untilNextKill(kill, over)
      const at = kill % this.#engines.length
      await restarts[at]
      if (over.aborted) break
      restarts[at] = this.#killAndRestart(this.#engines[at] as FakeComfyChild, over)
    }
    await Promise.all(restarts)
  }

  async #untilNextKill(kills: number, over: AbortSignal): Promise<void> {
    const { killEvery } = this.#options
    if ('ms' in killEvery) return await sleep(killEvery.ms, over)
    while (!over.aborted && this.#ends.size < (kills + 1) * killEvery.ends) await sleep(POLL_MS, over)
  }

  async #killAndRestart(engine: FakeComfyChild, over: AbortSignal): Promise<void> {
    this.#deaths.push({ atMs: performance.now(), jobs: new Set(this.#running) })
    await engine.kill()
    await sleep(this.#options.downMs, over)
    await engine.start()
  }

  async #client(): Promise<void> {
    const { jobs, say = () => {} } = this.#options
    while (this.#submitted < jobs) {
      this.#options.signal?.throwIfAborted()
      const color = this.#submitted++
      const body = JSON.stringify({
        workflow: pictureGraph(color),
        extra_data: { extra_pnginfo: { workflow: { id: String(color) } } },
      })
      const answer = await call(this.#url, '/api/v2/jobs', { method: 'POST', body })
      if (answer.status !== 201) throw new Error(`a submit was refused: ${answer.text}`)
      await this.#follow(answer.json.id, color)
      if (this.#ends.size % 100 === 0) say(`${this.#ends.size} of ${jobs} jobs have ended`)
    }
  }

  async #follow(id: string, color: number): Promise<void> {
    for (;;) {
      const { json: job } = await call(this.#url, `/api/v2/jobs/${id}`)
      if (job.status === 'running') this.#running.add(id)
      else this.#running.delete(id)
      if (TERMINAL.has(job.status)) {
        const atMs = performance.now()
        const reason = job.error === null ? '' : `:${job.error.code}`
        const isOwnBytes = await this.#hasOwnBytes(job.outputs, color)
        this.#ends.set(id, { status: `${job.status}${reason}`, isOwnBytes, atMs })
        return
      }
      await sleep(POLL_MS, this.#options.signal)
      this.#options.signal?.throwIfAborted()
    }
  }

  async #hasOwnBytes(outputs: readonly { readonly url: string }[], color: number): Promise<boolean> {
    const [output] = outputs
    if (outputs.length !== 1 || output === undefined) return false
    const { status, bytes } = await call(this.#url, new URL(output.url).pathname)
    return status === 200 && bytes.equals(toPng({ width: 8, height: 8, color }))
  }

  #toReport(tookMs: number): FleetKillsReport {
    const logs = this.#engines.map((engine) => engine.news())
    const ends = [...this.#ends.values()]
    const isEnd = ({ what, status }: ExecutionNews) => what === 'ended' && status === 'success'
    const begun = this.#attemptsOf(logs.flat().filter(({ what }) => what === 'begun'))
    const ended = this.#attemptsOf(logs.flat().filter(isEnd))
    return {
      succeeded: ends.filter(({ status }) => status === 'succeeded').length,
      otherwise: ends.filter(({ status }) => status !== 'succeeded').map(({ status }) => status),
      kills: this.#deaths.length,
      split: logs.map((log) => log.filter(isEnd).length),
      begunTwice: countRepeats(begun.known),
      doubled: countRepeats(ended.known),
      strange: begun.strange,
      ranAgain: countRepeats(ended.known.map((attempt) => attempt.split(' ', 1)[0] ?? '')),
      wrongOutputs: ends.filter(({ status, isOwnBytes }) => status === 'succeeded' && !isOwnBytes).length,
      recoveriesMs: this.#deaths.flatMap(({ atMs, jobs }) =>
        [...jobs].map((id) => (this.#ends.get(id)?.atMs ?? Number.POSITIVE_INFINITY) - atMs),
      ),
      tookMs: Math.round(tookMs),
    }
  }

  /** `job attempt` of each execution. */
  #attemptsOf(executions: readonly ExecutionNews[]): { readonly known: string[]; readonly strange: number } {
    const attemptOf = attemptsByPrompt(this.#ends.keys())
    const known = executions.flatMap(({ promptId }) => {
      const at = attemptOf(promptId)
      return at === null ? [] : [`${at.jobId} ${at.attempt}`]
    })
    return { known, strange: executions.length - known.length }
  }
}

function countRepeats(names: readonly string[]): number {
  return names.length - new Set(names).size
}
