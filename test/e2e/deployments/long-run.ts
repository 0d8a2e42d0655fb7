/** The long storm: `npm run test:deployments -- [jobs] [moves]`. Prints what became of every job, and how long rollbacks took. */
import { assertUnharmed, runStorm } from '../../support/deployments/storm.ts'

const [jobs = '1000', moves = '10'] = process.argv.slice(2)
const report = await runStorm({ jobs: Number(jobs), moves: Number(moves), kills: 8, restarts: 3 })
console.log(JSON.stringify(report, null, 2))
assertUnharmed(report)
