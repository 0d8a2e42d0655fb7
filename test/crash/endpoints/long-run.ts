/** `npm run test:endpoints [calls] [moves] [kills] [sqlite|postgres]`: 1,000 calls, 20 publishes and rollbacks, 5 kills on SQLite by default. */
import { killAndCheckEndpoints } from './endpoint-kills.ts'

const [calls = 1000, moves = 20, kills = 5] = process.argv.slice(2, 5).map(Number)
const store = process.argv[5] === 'postgres' ? 'postgres' : 'sqlite'
await killAndCheckEndpoints({ store, calls, moves, kills, report: (line) => console.log(line) })
