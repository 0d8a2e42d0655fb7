/** `npm run test:webhooks [jobs] [seconds]`: 2,000 events under a kill every 5 seconds by default. */
import { killAndCheckWebhooks } from './webhook-kills.ts'

const jobs = Number(process.argv[2] ?? 700)
const lifeMs = 1000 * Number(process.argv[3] ?? 5)
await killAndCheckWebhooks({ jobs, lifeMs, kills: 10, report: (line) => console.log(line) })
