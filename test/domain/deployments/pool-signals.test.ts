import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeploymentState } from '../../../src/domain/deployments/deployment.ts'
import type { PoolDemand } from '../../../src/domain/deployments/deployment-store.ts'
import { createPoolSignals } from '../../../src/domain/deployments/pool-signals.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'

const clock = createFixedClock()
const WAITED_MS = 90_000

function rig(states: Readonly<Record<string, DeploymentState>>, demand: Partial<PoolDemand>) {
  const oldestQueuedAt = new Date(clock.now().getTime() - WAITED_MS)
  const node = (workers: Record<string, number>) => ({ about: { version: '1', host: 'x', workers } })
  return createPoolSignals({
    store: {
      demands: async (pools) =>
        pools.map((pool) => ({ pool, queued: 0, running: 0, runnable: 0, oldestQueuedAt, ...demand })),
    },
    deployments: { list: () => Object.entries(states).map(([id, state]) => ({ id, state })) },
    findLive: async () => [node({ default: 2, faces: 1 }), node({ faces: 3 })],
    clock,
  })
}

test('workers of all processes are counted by pool, and what is wanted is what runs and what could', async () => {
  const signals = rig({ faces: 'ready' }, { queued: 40, running: 3, runnable: 5 })
  const figures = { queued: 40, running: 3, wantedWorkers: 8, oldestWaitMs: WAITED_MS }
  assert.deepEqual(await signals.list(), [
    { pool: 'default', workers: 2, ...figures },
    { pool: 'faces', workers: 4, ...figures },
  ])
  assert.deepEqual(await signals.find('faces'), { pool: 'faces', workers: 4, ...figures })
  assert.equal(await signals.find('unknown'), null)
})

test('a deployment that starts wants its first worker, and one that is stopped wants none for what waits', async () => {
  const signals = rig({ starting: 'provisioning', over: 'stopped', leaving: 'draining' }, { queued: 2, runnable: 2 })
  const wanted = async () => Object.fromEntries((await signals.list()).map((each) => [each.pool, each.wantedWorkers]))
  assert.deepEqual(await wanted(), { default: 2, starting: 2, over: 0, leaving: 2 })
  const idle = rig({ starting: 'provisioning', asleep: 'ready' }, { oldestQueuedAt: null })
  assert.deepEqual(
    (await idle.list()).map(({ wantedWorkers, oldestWaitMs }) => [wantedWorkers, oldestWaitMs]),
    [
      [0, 0],
      [1, 0],
      [0, 0],
    ],
  )
})
