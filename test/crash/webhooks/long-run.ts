/** `npm run test:webhooks [jobs] [seconds] [sqlite|postgres]`: 2,000 events under a kill every 5 seconds, on SQLite, by default. */
import { killAndCheckWebhooks } from './webhook-kills.ts'

const jobs = Number(process.argv[2] ?? 700)
const lifeMs = 1000 * Number(process.argv[3] ?? 5)
const store = process.argv[4] === 'postgres' ? 'postgres' : 'sqlite'
await killAndCheckWebhooks({ store, jobs, lifeMs, kills: 10, report: (line) => console.log(line) })
