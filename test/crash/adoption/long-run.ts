/** `npm run test:adoption [kills] [sqlite|postgres] [processes] [seed]`: 200 kills on SQLite by default; Postgres with two processes. */
import { killAndCheckAdoption } from './adoption-kills.ts'

const [kills = 200] = process.argv.slice(2, 3).map(Number)
const store = process.argv[3] === 'postgres' ? 'postgres' : 'sqlite'
const [processes = store === 'postgres' ? 2 : 1, seed = 1] = process.argv.slice(4, 6).map(Number)
const terms = Math.floor(kills / 5)
await killAndCheckAdoption({ store, processes, kills, terms, seed, upMs: 3000, report: (line) => console.log(line) })
