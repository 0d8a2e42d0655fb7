/**
 * `npm run bench [scenario …]`: measures every figure of docs/performance.md, as ratios within this one run. Prints a table and
 * writes bench/results/latest.json. Exits 1 when a bar is missed. With `--compare <commit>` it measures this checkout against
 * another one instead (compare.ts).
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { compareWith } from './compare.ts'
import { consoleScenario } from './console/scenario.ts'
import { type Figure, isMet, toRow, toTable } from './kit/figure.ts'
import { model } from './model/scenario.ts'
import { peers } from './peers/scenario.ts'
import { auth } from './scenarios/auth.ts'
import { bus } from './scenarios/bus.ts'
import { bodies } from './scenarios/bytes/bodies.ts'
import { s3 } from './scenarios/bytes/s3.ts'
import { transfer } from './scenarios/bytes/transfer.ts'
import { uploads } from './scenarios/bytes/uploads.ts'
import { fleetOverhead } from './scenarios/fleet/fleet-overhead.ts'
import { fleetViewers } from './scenarios/fleet/fleet-viewers.ts'
import { warmStart } from './scenarios/fleet/warm-start.ts'
import { graph } from './scenarios/graph.ts'
import { images } from './scenarios/images.ts'
import { jobOverhead } from './scenarios/job-overhead.ts'
import { engineMemory } from './scenarios/memory/engine-memory.ts'
import { memory } from './scenarios/memory/memory.ts'
import { poll } from './scenarios/poll.ts'
import { postgresClaims } from './scenarios/postgres/postgres-claims.ts'
import { postgresJobs } from './scenarios/postgres/postgres-jobs.ts'
import { postgresSubmits } from './scenarios/postgres/postgres-submits.ts'
import { processes } from './scenarios/processes.ts'
import { rest } from './scenarios/rest.ts'
import { heldCalls } from './scenarios/router/held-calls.ts'
import { router } from './scenarios/router/router.ts'
import { schedule } from './scenarios/schedule/schedule.ts'
import { sockets } from './scenarios/sockets.ts'
import { stalls } from './scenarios/stalls.ts'
import { streams } from './scenarios/streams.ts'
import { submit } from './scenarios/submit.ts'
import { traces } from './scenarios/traces.ts'

const SCENARIOS: Readonly<Record<string, () => Promise<Figure[]>>> = {
  poll,
  submit,
  traces,
  streams,
  sockets,
  transfer,
  uploads,
  auth,
  overhead: jobOverhead,
  fleet: fleetOverhead,
  viewers: fleetViewers,
  warm: warmStart,
  graph,
  images,
  memory,
  'engine-memory': engineMemory,
  rest,
  router,
  held: heldCalls,
  stalls,
  bodies,
  bus,
  'postgres-claims': postgresClaims,
  'postgres-submits': postgresSubmits,
  'postgres-jobs': postgresJobs,
  model,
  s3,
  processes,
  schedule: () => schedule(trace),
  console: consoleScenario,
  peers,
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { compare: { type: 'string' }, rounds: { type: 'string', default: '5' } },
})
// A file behind `schedule` is the load that is replayed.
const trace = positionals.find((name) => !(name in SCENARIOS) && existsSync(name)) ?? null
const wanted = positionals.filter((name) => name !== trace)
const unknown = wanted.filter((name) => !(name in SCENARIOS))
if (unknown.length > 0) {
  console.error(`No scenario ${unknown.join(', ')}; there are ${Object.keys(SCENARIOS).join(', ')}.`)
  process.exit(2)
}

if (values.compare !== undefined) {
  compareWith({ commit: values.compare, rounds: readRounds(values.rounds), scenarios: wanted })
  process.exit()
}

const figures: Figure[] = []
for (const [name, run] of Object.entries(SCENARIOS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  console.error(`measuring ${name} …`)
  figures.push(...(await run()))
}

console.log(toTable(figures.map(toRow)))
mkdirSync('bench/results', { recursive: true })
const machine = {
  cores: availableParallelism(),
  cpu: cpus()[0]?.model,
  node: process.version,
  measuredAt: new Date().toISOString(),
}
writeFileSync('bench/results/latest.json', `${JSON.stringify({ machine, figures }, null, 2)}\n`)
process.exitCode = figures.every(isMet) ? 0 : 1

function readRounds(text: string): number {
  const rounds = Number(text)
  if (Number.isInteger(rounds) && rounds >= 1 && rounds <= 9) return rounds
  console.error(`--rounds is a whole number from 1 to 9, not ${text}.`)
  process.exit(2)
}
