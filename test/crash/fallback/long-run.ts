/**
 * `npm run test:fallback [calls] [kills] [seed]`: 10,000 calls and 10 kills by default, on SQLite and then with two processes on
 * Postgres; and as many calls with one provider away from the start.
 */
import { storm } from './storm.ts'

const [calls = 10_000, kills = 10, seed = Date.now() % 1_000_000] = process.argv.slice(2, 5).map(Number)
const report = (line: string) => console.log(line)
report(`seed ${seed}`)
for (const store of ['sqlite', 'postgres'] as const) {
  await storm({ store, calls, kills, seed, report })
  await storm({ store, calls, kills: 0, seed, isOneDown: true, report })
}
