/** The long storm: `npm run test:deployments -- [jobs] [moves] [processes]`. Prints what became of every job, and how long rollbacks took. */
import { assertUnharmed, BAD_BUILDS, runStorm } from '../../support/deployments/storm.ts'

const [jobs = '1000', moves = '10', processes = '1'] = process.argv.slice(2)
const kills = { kills: 8, restarts: 3, builderKills: 2, badBuilds: BAD_BUILDS }
const report = await runStorm({
  jobs: Number(jobs),
  moves: Number(moves),
  ...kills,
  processes: processes === '2' ? 2 : 1,
})
console.log(JSON.stringify(report, null, 2))
assertUnharmed(report)
