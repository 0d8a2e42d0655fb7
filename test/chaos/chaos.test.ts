/**
 * A short trial with a few faults of each sort. What it asserts is the verdict: how much happened, and how fast, depends on the machine.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PlannedFault } from './faults/plan-faults.ts'
import { runTrial } from './trial.ts'

const FAULTS: readonly PlannedFault[] = [
  { atMs: 3000, kind: 'kill a node', target: 'worker-1', lastsMs: 1000 },
  { atMs: 4000, kind: 'silence between clients and a node', target: 'api-2', lastsMs: 3000 },
  { atMs: 6000, kind: 'kill an engine', target: 'engine-3', lastsMs: 1000 },
  { atMs: 8000, kind: 'cut a node from Postgres', target: 'worker-2', lastsMs: 3000 },
  { atMs: 9000, kind: 'a clock that is wrong', target: 'api-1', lastsMs: 8000 },
  { atMs: 11_000, kind: 'fail over to the standby', target: 'postgres', lastsMs: 0 },
  { atMs: 13_000, kind: 'a storage that refuses everything', target: 'storage', lastsMs: 3000 },
  { atMs: 14_000, kind: 'forgotten connections to Postgres', target: 'worker-1', lastsMs: 0 },
  { atMs: 15_000, kind: 'kill a node', target: 'api-2', lastsMs: 0 },
  { atMs: 18_000, kind: 'a full disk', target: 'api-1', lastsMs: 2000 },
  { atMs: 19_000, kind: 'end what listens to notices', target: 'postgres', lastsMs: 0 },
]

test('a service that is killed, cut off, misled and failed over keeps every promise that it gave', async () => {
  const shape = { apis: 2, workers: 2, engines: 3, joined: 1, bytes: 'bucket', bus: 'notify' } as const
  const rates = { jobs: 4, calls: 2, uploads: 1 }
  const report = await runTrial({ seed: 1, shape, rates, faults: FAULTS, lastsMs: 25_000 })
  const said = report.flaws.map(({ kind, text }) => `${kind}: ${text}`)
  assert.deepEqual(said, [], `${said.join('\n')}\n${JSON.stringify(report.evidence, null, 1)}`)
  assert.equal(report.failOvers, 1)
  assert.ok(report.acknowledged.jobs > 0 && report.acknowledged.calls > 0 && report.acknowledged.uploads > 0)
})
