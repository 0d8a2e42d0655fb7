import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findDeviations } from '../../bench/model/check-model.ts'
import type { Measured, MeasuredRun } from '../../bench/model/costs.ts'
import { findEnd, LIMITS, predict } from '../../bench/model/predict.ts'
import { PLANS, toCostTable, toEndTable, toErrorTable, toPlanTable } from '../../bench/model/report.ts'
import { read } from './files.ts'

const OWN = { nodeMicros: 10_000, postgresMicros: 4000, statements: 20, logBytes: 6000 }
const NONE = { nodeMicros: 0, postgresMicros: 0, statements: 0, logBytes: 0 }
const IDLE = { nodeMicros: 5000, postgresMicros: 1000, statements: 3, logBytes: 100 }
const JOB = { own: OWN, perPeer: { ...NONE, postgresMicros: 500 } }
const [PLAN] = Object.values(PLANS)

/** Processes that behave exactly as the model says, but for a factor on what Postgres does. */
function runOf(processes: number, factor = 1): MeasuredRun {
  const processSeconds = 0.1 * processes
  const job = {
    nodeMicros: OWN.nodeMicros + IDLE.nodeMicros * processSeconds,
    postgresMicros: factor * (OWN.postgresMicros + 500 * (processes - 1) + IDLE.postgresMicros * processSeconds),
    statements: OWN.statements + IDLE.statements * processSeconds,
    logBytes: OWN.logBytes + IDLE.logBytes * processSeconds,
    ...{ notifies: 1, processSeconds, objectWrites: 1, objectReads: 1, outputBytes: 16_384 },
  }
  const request = { ...OWN, notifies: 0, processSeconds: 0 }
  return { processes, perJob: { light: job, heavy: job }, perSubmit: request, perPoll: request, idlePerSecond: IDLE }
}

test('a plan needs what its jobs, looks for work and processes at rest cost together', () => {
  const plan = { ...PLAN, jobsPerSecond: 40, apiNodes: 10, directWorkers: 0, withRoom: 10 }
  const need = predict(plan, { job: JOB, idle: IDLE })
  // 40 jobs of 4 ms with five writes of progress at 0.2 ms, ten processes that look 20 times, ten at rest with 1 ms a second.
  assert.ok(Math.abs(need.postgresCores - (0.2 + 10 * 20 * 0.0005 + 0.01)) < 1e-9)
  assert.equal(need.statementsPerSecond, 830)
  assert.equal(need.connections, 90)
  assert.equal(need.shards, 1)
})

test('accounts are divided over as many clusters as the scarcest part asks for; one account is never divided', () => {
  const large = { ...PLAN, jobsPerSecond: 10_000, busiestShare: 0.5 }
  const need = predict(large, { job: JOB, idle: IDLE })
  assert.equal(need.shards, Math.ceil(need.postgresCores / LIMITS.postgresCores))
  assert.equal(need.busiestJobsPerSecond, 5000)
  assert.deepEqual(need.first.limit, 'jobsPerAccount')
})

test('one Postgres ends where its processor or its log does', () => {
  assert.equal(findEnd({ job: JOB }).jobsPerSecond, LIMITS.postgresCores * 250)
  assert.match(findEnd({ job: { ...JOB, own: { ...OWN, logBytes: 10_000_000 } } }).by, /log/)
})

test('processes that cost what the model says have no error; what four cost beyond it is one', () => {
  const right = findDeviations([runOf(1), runOf(2), runOf(4)])
  assert.deepEqual(
    right.filter(({ error }) => Math.abs(error) > 1e-9),
    [],
  )
  const wrong = findDeviations([runOf(1), runOf(2), runOf(4, 1.1)]).filter(({ error }) => Math.abs(error) > 1e-9)
  assert.deepEqual(
    wrong.map(({ what, processes, error }) => [what, processes, Math.round(error * 1000)]),
    [
      ['job, light: postgresMicros', 4, 100],
      ['job, heavy: postgresMicros', 4, 100],
    ],
  )
})

test('the tables of docs/scale.md are those of the measurement that is kept', () => {
  const measured = JSON.parse(read('bench/model/measured.json')) as Measured
  assert.deepEqual(
    measured.runs.map(({ processes }) => processes),
    [1, 2, 4],
  )
  const page = read('docs/scale.md')
  for (const toText of [toCostTable, toEndTable, toPlanTable, toErrorTable]) {
    assert.ok(page.includes(toText(measured)), `put into docs/scale.md:\n${toText(measured)}`)
  }
})
