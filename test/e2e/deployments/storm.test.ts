/**
 * Moves and rollbacks under load, while the service and its engines are killed: no submit is refused, no job is lost, and each runs on the
 * release that it was promised. What ran where is told by the engines themselves. The long one: `npm run test:deployments`.
 */
import { test } from 'node:test'
import { assertUnharmed, runStorm } from '../../support/deployments/storm.ts'

test('moves and rollbacks under load, with engines killed in between, lose, refuse and misplace nothing', async () => {
  assertUnharmed(await runStorm({ jobs: 60, moves: 4, kills: 3, restarts: 1 }))
})
