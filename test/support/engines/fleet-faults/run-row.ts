/**
 * Runs rows of the fault matrix through the whole service: the three points of each in parallel, each with two servers of its own that
 * share weights which no other server has. The first has the fault; the second joins once the fault has occurred. Some rows share a
 * service: its start takes longer than they do, and jobs that need different weights do not meet.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ComfyBounds } from '../../../../src/adapters/engines/comfyui/comfy-bounds.ts'
import { readPromptId } from '../../../../src/adapters/engines/comfyui/run/comfy-prompt.ts'
import { type FleetApp, type FleetAppOptions, pictureGraph, startFleetApp } from '../../app/fleet-app.ts'
import { call } from '../../clients/call.ts'
import { assetRef, CheckedClient } from '../../clients/checked-client.ts'
import { waitUntil } from '../../wait-until.ts'
import { isShortBound, shortBounds } from '../comfy-test-bounds.ts'
import type { Phase } from '../fake-comfyui/executor.ts'
import type { FakeComfy } from '../fake-comfyui/fake-comfyui.ts'
import type { Execution } from '../fake-comfyui/fake-options.ts'
import { toPng } from '../fake-comfyui/picture.ts'
import { endOf, type FaultRow, PHASES } from './row.ts'

const CANCEL_GRACE_MS = 1_000

const ROWS_PER_SERVICE = 8
const SERVICES_AT_ONCE = 2

/** Each row as a test. */
export function testRows(
  title: string,
  rows: readonly FaultRow[],
  options: Pick<FleetAppOptions, 'isJoined'> = {},
): void {
  // How long a cancel may take is a bound of the whole service.
  const { short = [], long = [] } = Object.groupBy(rows, ({ within }) =>
    within.cancelGraceMs === undefined ? 'long' : 'short',
  )
  describe(title, { concurrency: SERVICES_AT_ONCE }, () => {
    for (const group of chunks(long)) testTogether(group, options)
    for (const group of chunks(short)) testTogether(group, { ...options, cancelGraceMs: CANCEL_GRACE_MS })
  })
}

function chunks(rows: readonly FaultRow[]): readonly (readonly FaultRow[])[] {
  const count = Math.ceil(rows.length / ROWS_PER_SERVICE)
  const size = Math.ceil(rows.length / count)
  return Array.from({ length: count }, (_, index) => rows.slice(index * size, (index + 1) * size))
}

function testTogether(rows: readonly FaultRow[], options: Omit<FleetAppOptions, 'servers'>): void {
  describe(`from ${rows[0].name}`, { concurrency: true }, () => {
    let app: FleetApp
    before(async () => {
      app = await startFleetApp({ ...options, servers: rows.flatMap(serversOf) })
    })
    after(() => app[Symbol.asyncDispose]())
    for (const [index, row] of rows.entries()) test(row.name, () => runRow(app, row, index))
  })
}

function serversOf(row: FaultRow, index: number): FleetAppOptions['servers'] {
  return PHASES.flatMap((phase) => {
    const checkpoints = [weightsOf(phase, index)]
    const faults = row.since === 'birth' ? { faults: structuredClone(row.faults ?? {}) } : {}
    return [{ checkpoints, ...faults, bounds: boundsOf(row) }, { checkpoints }]
  })
}

async function runRow(app: FleetApp, row: FaultRow, index: number): Promise<void> {
  const first = 2 * PHASES.length * index
  const cells = PHASES.map(
    (phase, place) => new Cell(app, row, { phase, at: first + 2 * place, weights: weightsOf(phase, index) }),
  )
  const results = await Promise.allSettled(cells.map((cell) => cell.run()))
  for (const [place, result] of results.entries()) {
    if (result.status === 'rejected') throw new Error(`${row.name}, ${PHASES[place]}`, { cause: result.reason })
  }
}

/**
 * Short are only the bounds that the row says it ends within, and only towards the server with the fault. Everything else is
 * waited for longer than the test lasts: that the job ends shows that one of those ended it.
 */
function boundsOf({ within, bounds }: FaultRow): Partial<ComfyBounds> {
  return { ...shortBounds(...Object.keys(within).filter(isShortBound)), ...bounds }
}

function weightsOf(phase: Phase, row: number): string {
  return `${row}-${phase}.safetensors`
}

interface TestPoint {
  readonly phase: Phase
  /** The first of its servers. */
  readonly at: number
  /** That only its servers have. */
  readonly weights: string
}

// biome-ignore lint/suspicious/noExplicitAny: a job as the API shows it
type Job = any

class Cell {
  readonly #app: FleetApp
  readonly #row: FaultRow
  readonly #phase: Phase
  readonly #faulty: FakeComfy
  readonly #sound: FakeComfy
  readonly #faultyId: string
  readonly #soundId: string
  readonly #weights: string

  constructor(app: FleetApp, row: FaultRow, { phase, at, weights }: TestPoint) {
    this.#weights = weights
    this.#app = app
    this.#row = row
    this.#phase = phase
    this.#faulty = app.fakes[at] as FakeComfy
    this.#sound = app.fakes[at + 1] as FakeComfy
    this.#faultyId = `gpu${at + 1}`
    this.#soundId = `gpu${at + 2}`
  }

  async run(): Promise<void> {
    const { fleet } = this.#app
    // The job begins on the faulty server: the other one may join only then.
    fleet.cordon(this.#soundId)
    const graph = await this.#toGraph()
    if (this.#row.graph === 'text') await this.#fillCache(graph)
    this.#faulty.hold(this.#phase)
    const isEarly = this.#row.since !== 'point' && this.#canStrike
    if (isEarly) await this.#strike()
    const id = await this.#app.submit(graph)
    const ended = this.#untilEnded(id)
    if (isEarly) fleet.resume(this.#soundId)
    // A fault of the submit may keep the run from getting there.
    await Promise.race([this.#faulty.held(this.#phase), ended])
    if (!isEarly) await this.#strike()
    // Before the other server joins: what is lost with its server may otherwise have begun there when the cancel comes.
    if (this.#row.isCanceled) await this.#cancel(id)
    if (!isEarly) fleet.resume(this.#soundId)
    if (this.#row.isKept && this.#canStrike) await ended
    this.#faulty.release(this.#phase)
    await this.#check(await ended)
  }

  get #canStrike(): boolean {
    return this.#row.never?.[this.#phase] === undefined
  }

  async #strike(): Promise<void> {
    const { faults, act, since, isEverywhere } = this.#row
    for (const fake of isEverywhere ? [this.#faulty, this.#sound] : [this.#faulty]) {
      // A copy: counts of what still has to strike are kept in it.
      if (since !== 'birth') Object.assign(fake.faults, structuredClone(faults ?? {}))
      await act?.(fake)
    }
  }

  async #fillCache(graph: object): Promise<void> {
    await this.#app.until(await this.#app.submit(graph), 'succeeded')
    ;(this.#faulty.executions as Execution[]).length = 0
  }

  async #cancel(id: string): Promise<void> {
    const { status } = await call(this.#app.url, `/api/v2/jobs/${id}/cancel`, { method: 'POST' })
    assert.equal(status, 200)
  }

  #untilEnded(id: string): Promise<Job> {
    return this.#app.until(id, 'succeeded', 'failed', 'canceled', 'expired')
  }

  async #toGraph(): Promise<Record<string, object>> {
    const picture = pictureGraph(this.#color(), this.#weights)
    const { '3': loader } = picture as { '3': object }
    if (this.#row.graph === 'text') return { '3': loader, '4': node('PreviewAny', { source: ['3', 0] }) }
    if (this.#row.graph === 'raising' && this.#canStrike) {
      const inputs = { image: ['1', 0], exception_type: 'ValueError', message: 'no good' }
      return {
        ...picture,
        '2': node('DemoRaise', inputs),
        '4': node('SaveImage', { images: ['2', 0], filename_prefix: 'x' }),
      }
    }
    if (this.#row.graph !== 'loaded') return picture
    const client = new CheckedClient(this.#app.url)
    const { id } = await client.uploaded(`${this.#phase}.png`, toPng({ width: 2, height: 2, color: this.#color() }))
    return { ...picture, '1': node('LoadImage', { image: assetRef(id) }) }
  }

  #color(): number {
    return 0x336600 + PHASES.indexOf(this.#phase)
  }

  async #check(job: Job): Promise<void> {
    const ending = endOf(this.#row, this.#phase)
    const [status, code] = ending.split(':')
    const isDone = ending === 'moved' || ending === 'again' || ending === 'succeeded'
    assert.deepEqual(
      [job.status, job.error?.code],
      [isDone ? 'succeeded' : status, code],
      `it ended ${job.status}: ${JSON.stringify(job.error)}`,
    )
    if (isDone) await this.#checkBytes(job)
    this.#checkExecutions(job.id, ending)
    if (this.#row.quarantines?.includes(this.#phase)) await this.#untilQuarantined()
  }

  /** After the job's end: the slot is given back when its engine has been dealt with. */
  async #untilQuarantined(): Promise<void> {
    const { fleet } = this.#app
    await waitUntil(() => fleet.find(this.#faultyId).state === 'quarantined')
  }

  async #checkBytes(job: Job): Promise<void> {
    assert.equal(job.outputs.length, 1)
    const [output] = job.outputs
    const content = await call(this.#app.url, new URL(output.url).pathname)
    assert.equal(content.status, 200)
    assert.equal(content.bytes.length, output.size_bytes)
    assert.deepEqual(content.bytes, this.#expectedBytes())
  }

  #expectedBytes(): Buffer {
    if (this.#row.graph === 'text') return Buffer.from(this.#weights)
    if (this.#row.graph !== 'loaded') return toPng({ width: 8, height: 8, color: this.#color() })
    // What the server made of the file: the same on both.
    const { files } = this.#sound.executions.length > 0 ? this.#sound : this.#faulty
    const path = files.paths().find((each) => each.startsWith('output/'))
    return files.get(path ?? '') ?? Buffer.alloc(0)
  }

  /** Prompts that were begun, each by its attempt: no attempt has two, however often the job was moved. */
  #checkExecutions(jobId: string, ending: string): void {
    const begun = [...this.#faulty.executions, ...this.#sound.executions]
    const attempts = begun.map((execution) => (this.#row.isUnspent ? execution.promptId : attemptOf(jobId, execution)))
    assert.equal(new Set(attempts).size, attempts.length, `attempts with two executions: ${attempts}`)
    const { executions } = this.#row
    const usual = ending === 'moved' || ending === 'again' ? 2 : 1
    const expected = typeof executions === 'object' ? executions[this.#phase] : (executions ?? usual)
    assert.equal(begun.length, expected, `executions: ${attempts}`)
    if (ending === 'moved') assert.equal(this.#sound.executions.length, 1, 'the other server ran it')
    if (ending === 'succeeded') assert.equal(this.#sound.executions.length, 0, 'it never left its server')
  }
}

function node(classType: string, inputs: object): object {
  return { class_type: classType, inputs }
}

/** `attempt.round`: from the prompt's id, or where the server gave its own, from the folder that the attempt saves into. */
function attemptOf(jobId: string, { promptId, graph }: Execution): string {
  const place = readPromptId(promptId, jobId)
  if (place !== null) return `${place.attempt}.${place.round}`
  const folder = Object.values(graph).map(({ inputs }) => String(inputs.filename_prefix ?? ''))
  const own = folder.flatMap((path) => new RegExp(`^atelier/${jobId}-(\\d+)-[0-9a-f]{8}/`).exec(path)?.[1] ?? [])
  assert.equal(own.length, 1, `an execution of nobody: ${promptId}`)
  return `${own[0]}.0`
}
