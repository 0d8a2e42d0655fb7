import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runFleetKills } from './fleet-kills.ts'

const LEASE_MS = 30_000

test('engines die one after the other under load: every job ends well, none twice, nobody is left without work', {
  timeout: 120_000,
}, async () => {
  const report = await runFleetKills({
    engines: 3,
    jobs: 80,
    inFlight: 12,
    killEveryMs: 700,
    downMs: 200,
    nodeMs: 10,
    settings: { engineLostAfter: '2s' },
  })
  assert.deepEqual(report.otherwise, [])
  assert.equal(report.succeeded, 80)
  assert.equal(report.doubled, 0)
  assert.equal(report.wrongOutputs, 0)
  assert.ok(report.kills > 0)
  assert.ok(Math.min(...report.split) > 0, `the split was ${report.split}`)
  assert.ok(Math.max(...report.recoveriesMs) < LEASE_MS + 5000)
})
