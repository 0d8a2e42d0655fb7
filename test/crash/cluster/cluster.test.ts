import { test } from 'node:test'
import { runClusterTrial } from './cluster-trial.ts'

test('nodes that are killed and connections that are cut lose nothing, run nothing twice and charge nothing twice', async () => {
  const kinds = ['kill a node', 'end connections of Postgres'] as const
  await runClusterTrial({ nodes: 3, jobs: 30, seed: 1, everyMs: 1500, faults: 4, kinds })
})

test('a database that crashes under load costs time and nothing else', async () => {
  const kinds = ['crash Postgres'] as const
  await runClusterTrial({ nodes: 2, jobs: 30, seed: 2, everyMs: 2000, faults: 2, kinds })
})
