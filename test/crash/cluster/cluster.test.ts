import { test } from 'node:test'
import { runClusterTrial } from './cluster-trial.ts'

test('killed nodes, cut connections and a database that crashes under load lose nothing, run nothing twice and charge nothing twice', async () => {
  const kinds = ['kill a node', 'end connections of Postgres', 'crash Postgres'] as const
  await runClusterTrial({ nodes: 3, jobs: 40, seed: 1, everyMs: 1500, faults: 6, kinds })
})
