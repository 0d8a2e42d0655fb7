import { test } from 'node:test'
import { runTrial } from './cluster-trial.ts'

const OPTIONS = { nodes: 3, clients: 6, jobs: 30 }

test('nodes that are killed and connections that are cut lose nothing, run nothing twice and charge nothing twice', async () => {
  await runTrial({ ...OPTIONS, seed: 1, everyMs: 1500, faults: ['kill', 'cut', 'kill', 'cut'] })
})

test('a database that crashes under load costs time and nothing else', async () => {
  await runTrial({ ...OPTIONS, nodes: 2, seed: 2, everyMs: 2000, faults: ['crash', 'crash'] })
})
