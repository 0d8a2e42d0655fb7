/**
 * `npm run test:cluster [minutes] [seed]`: one of three nodes is killed every 5 s, and connections are cut in between; then Postgres
 * crashes every 10 s under 5,000 jobs.
 */
import { runTrial } from './cluster-trial.ts'

const minutes = Number(process.argv[2] ?? 10)
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_007)
const report = (line: string) => console.log(line)
console.log(`${minutes} minutes of kills, seed ${seed}`)
const kills = Math.ceil((minutes * 60) / 5)
const faults = Array.from({ length: kills * 2 }, (_, index) => (index % 2 === 0 ? ('kill' as const) : ('cut' as const)))
const killed = await runTrial({ nodes: 3, clients: 12, seed, jobs: 0, everyMs: 2500, faults, report })
console.log(`refused: ${JSON.stringify([...killed.refused])}`)
const crashes = Array.from({ length: 12 }, () => 'crash' as const)
const crashed = await runTrial({ nodes: 3, clients: 12, seed, jobs: 5000, everyMs: 10_000, faults: crashes, report })
console.log(`refused: ${JSON.stringify([...crashed.refused])}`)
console.log('nothing was lost, nothing ran or was charged twice, and the books balance')
