import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findFlaws } from './fleet-flaws.ts'
import { runFleetKills } from './fleet-kills.ts'

test('engines are killed one after the other under load: every job ends well, none twice, nobody is left without work', {
  timeout: 600_000,
}, async ({ signal }) => {
  const jobs = 60
  const report = await runFleetKills({
    engines: 3,
    jobs,
    inFlight: 12,
    killEvery: { ends: 10 },
    downMs: 200,
    nodeMs: 25,
    // A killed server refuses connections, which tells of its death: one that is only slow must not be given up.
    patch: { fleet: { lostAfterMs: 600_000 } },
    signal,
  })
  // Too short for a share of each that means something: only that nobody is forgotten.
  assert.deepEqual(findFlaws(report, { jobs, leastShare: 0.01 }), [])
  assert.ok(report.kills > 0)
})
