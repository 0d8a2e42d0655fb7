/**
 * `npm run test:cluster [minutes] [seed]`: one of three nodes is killed every 5 s, and connections are cut in between; then Postgres
 * crashes every 10 s under 5,000 jobs.
 */
import { runClusterTrial } from './cluster-trial.ts'

const minutes = Number(process.argv[2] ?? 10)
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_007)
const say = (line: string) => console.log(line)
console.log(`${minutes} minutes of kills, seed ${seed}`)
const faults = Math.ceil((minutes * 60) / 5) * 2
const kills = ['kill a node', 'end connections of Postgres'] as const
const killed = await runClusterTrial({ nodes: 3, seed, jobs: 0, everyMs: 2500, faults, kinds: kills, say })
console.log(`refused: ${JSON.stringify(killed.refused)}`)
const crashes = ['crash Postgres'] as const
const crashed = await runClusterTrial({ nodes: 3, seed, jobs: 5000, everyMs: 10_000, faults: 12, kinds: crashes, say })
console.log(`refused: ${JSON.stringify(crashed.refused)}`)
console.log('nothing was lost, nothing ran or was charged twice, and the books balance')
