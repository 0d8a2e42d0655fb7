/**
 * Many generated requests over every served document, in every kind: `npm run test:contract -- [requests] [seed]`. Prints each
 * disagreement with an example, and ends with 1 when there was any.
 */
import { runConformance } from './run.ts'
import { KINDS, startServiceUnderTest } from './service.ts'

const [requests = 20_000, seed = 20_261_115] = process.argv.slice(2).map(Number)
let faults = 0
for (const kind of KINDS) {
  await using service = await startServiceUnderTest(kind)
  const report = await runConformance(service, { requests: Math.ceil(requests / KINDS.length), seed })
  faults += report.findings.length
  console.log(`${kind}: ${report.requests} requests, ${report.findings.length} disagreements (seed ${seed})`)
  for (const finding of report.findings) console.log(`  ${finding}`)
}
process.exitCode = faults === 0 ? 0 : 1
