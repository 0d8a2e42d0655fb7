import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findDeviations } from '../../bench/model/check-model.ts'
import type { Measured, MeasuredRun } from '../../bench/model/costs.ts'
import { baseOf, findEnd, LIMITS, predict } from '../../bench/model/predict.ts'
import { PLANS, toCostTable, toEndTable, toErrorTable, toPlanTable } from '../../bench/model/report.ts'
import { read } from './files.ts'

const COST = { nodeMicros: 10_000, postgresMicros: 4000, statements: 20, notifies: 1, logBytes: 6000 }
const IDLE = { nodeMicros: 5000, postgresMicros: 1000, statements: 3, logBytes: 100 }
const JOB = { ...COST, objectWrites: 1, objectReads: 1, outputBytes: 16_384 }
const [PLAN] = Object.values(PLANS)

function runOf(processes: number, factor: number): MeasuredRun {
  const job = { ...JOB, postgresMicros: JOB.postgresMicros * factor }
  return { processes, perJob: { light: job, heavy: job }, perSubmit: COST, perPoll: COST, idlePerSecond: IDLE }
}

test('a plan needs what its jobs and its processes at rest cost together', () => {
  const need = predict({ ...PLAN, jobsPerSecond: 100, apiNodes: 10, directWorkers: 0 }, { cost: JOB, idle: IDLE })
  // A hundred jobs of 4 ms with five writes of progress at 0.2 ms, and ten processes at 1 ms a second.
  assert.ok(Math.abs(need.postgresCores - 0.51) < 1e-9)
  assert.equal(need.statementsPerSecond, 2030)
  assert.equal(need.connections, 90)
  assert.equal(need.shards, 1)
})

test('accounts are divided over as many clusters as the scarcest part asks for; one account is never divided', () => {
  const large = { ...PLAN, jobsPerSecond: 10_000, busiestShare: 0.5 }
  const need = predict(large, { cost: JOB, idle: IDLE })
  assert.equal(need.shards, Math.ceil(need.postgresCores / LIMITS.postgresCores))
  assert.equal(need.busiestJobsPerSecond, 5000)
  assert.deepEqual(need.first.limit, 'jobsPerAccount')
})

test('one Postgres ends where its processor or its log does', () => {
  assert.equal(findEnd({ cost: JOB }).jobsPerSecond, LIMITS.postgresCores * 250)
  assert.match(findEnd({ cost: { ...JOB, logBytes: 10_000_000 } }).by, /log/)
})

test('what several processes cost more than one is the error of the model', () => {
  const found = findDeviations([runOf(1, 1), runOf(2, 1.1)])
  const [wrong] = found.filter(({ error }) => Math.abs(error) > 1e-9)
  assert.equal(wrong.processes, 2)
  assert.ok(Math.abs(wrong.error - 0.1) < 1e-9)
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
  assert.equal(baseOf(measured.runs).processes, 1)
})
