/** `npm run test:crash [kills] [seed]`: the long version, 300 kills by default. Prints its seed, so that a failure can be replayed. */
import { killAndCheckLimits } from '../accounts/kill-limits.ts'
import { killAndCheck } from './kill-and-check.ts'

const kills = Number(process.argv[2] ?? 300)
const seed = Number(process.argv[3] ?? Date.now() % 1_000_000_007)
console.log(`${kills} kills, seed ${seed}`)
const ledger = await killAndCheck({ kills, seed, report: (line) => console.log(line) })
console.log(`${ledger.jobs.length} jobs and ${ledger.assets.length} assets acknowledged, none lost`)
await killAndCheckLimits({ kills, seed, report: (line) => console.log(line) })
console.log('limits held, counters equal rows')
