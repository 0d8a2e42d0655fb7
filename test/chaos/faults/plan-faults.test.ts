import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FAULTS } from './fault-kinds.ts'
import { planFaults } from './plan-faults.ts'

const SHAPE = { apis: 4, workers: 4, engines: 6, joined: 1, bytes: 'bucket', bus: 'nats' } as const
const HOUR = { lastsMs: 3_600_000, shape: SHAPE, everyMs: 5000 }

test('the same seed plans the same faults, another one others', () => {
  assert.deepEqual(planFaults({ seed: 1, ...HOUR }), planFaults({ seed: 1, ...HOUR }))
  assert.notDeepEqual(planFaults({ seed: 1, ...HOUR }), planFaults({ seed: 2, ...HOUR }))
})

test('an hour has every kind of fault, each mended in time, and no two of one target at once', () => {
  const planned = planFaults({ seed: 1, ...HOUR })
  assert.deepEqual(new Set(planned.map(({ kind }) => kind)), new Set(Object.keys(FAULTS)))
  const until = new Map<string, number>()
  for (const { atMs, target, lastsMs } of planned) {
    assert.ok((until.get(target) ?? 0) <= atMs, target)
    assert.ok(atMs + lastsMs <= HOUR.lastsMs)
    until.set(target, atMs + lastsMs)
  }
})

test('a world without engines has no faults of engines', () => {
  const planned = planFaults({
    seed: 1,
    ...HOUR,
    shape: { apis: 2, workers: 0, engines: 0, joined: 0, bytes: 'files', bus: 'notify' },
  })
  assert.equal(
    planned.some(({ target }) => /engine|worker/.test(target)),
    false,
  )
})
