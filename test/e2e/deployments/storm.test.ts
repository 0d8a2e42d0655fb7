/**
 * Moves and rollbacks under load, while the service, its builder and its engines are killed: no submit is refused, no job is lost, and each
 * runs on the release that it was promised. What ran where is told by the engines themselves. The long one: `npm run test:deployments`.
 */
import { test } from 'node:test'
import { withoutUv } from '../../support/builds/bench.ts'
import { assertUnharmed, BAD_BUILDS, runStorm } from '../../support/deployments/storm.ts'

test('moves and rollbacks under load, with the service, its builder and its engines killed in between, lose, refuse and misplace nothing', {
  skip: withoutUv,
}, async () => {
  assertUnharmed(
    await runStorm({ jobs: 60, moves: 4, kills: 2, restarts: 1, builderKills: 1, badBuilds: BAD_BUILDS, processes: 1 }),
  )
})

test('where the process that runs the engines of releases is killed, another process takes them over', {
  skip: withoutUv,
}, async () => {
  assertUnharmed(
    await runStorm({ jobs: 30, moves: 2, kills: 1, restarts: 2, builderKills: 0, badBuilds: [], processes: 2 }),
  )
})
