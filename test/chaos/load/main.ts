/**
 * The clients of a trial, as a process of its own: `main.ts <file with LoadPlan>`. Sessions of each kind begin at a steady pace, unless too
 * many are under way. On the message `stop` none begin any more, and the process ends when all have come to their end.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { seededRandom } from '../../support/seeded-random.ts'
import { openAccountSocket } from './account-socket.ts'
import { runCallSession } from './call-session.ts'
import { Client, type LoadAccount } from './client.ts'
import { runJobSession } from './job-session.ts'
import { type Journal, openJournal, type Told } from './told.ts'
import { runUploadSession, type Twins } from './upload-session.ts'

export interface LoadPlan {
  readonly seed: number
  readonly fronts: readonly string[]
  readonly accounts: readonly LoadAccount[]
  readonly deployments: readonly string[]
  readonly hasEngines: boolean
  readonly journalPath: string
  readonly rates: LoadRates
}

/** Sessions that begin each second. */
export interface LoadRates {
  readonly jobs: number
  readonly calls: number
  readonly uploads: number
}

export interface LoadNews {
  readonly begun: Readonly<Record<keyof LoadRates, number>>
  readonly open: Readonly<Record<keyof LoadRates, number>>
  readonly acknowledged: Readonly<Record<keyof LoadRates, number>>
}

// In this many seconds' worth of sessions an outage is ridden out; then clients wait for each other.
const MAX_OPEN_SECONDS = 40
const MIN_OPEN = 12
const NEWS_MS = 1000
const KEPT_ASSETS = 50

const plan = JSON.parse(readFileSync(process.argv[2] as string, 'utf8')) as LoadPlan
const acknowledged = { jobs: 0, calls: 0, uploads: 0 }
const journal = countingJournal(openJournal(plan.journalPath))
const begun = { jobs: 0, calls: 0, uploads: 0 }
const open = { jobs: 0, calls: 0, uploads: 0 }
const stopping = new AbortController()

const callers = plan.accounts.map((account, index) => {
  const random = seededRandom(plan.seed * 31 + index)
  const client = new Client(account, { fronts: plan.fronts, journal, random })
  const assets: string[] = []
  const socket = openAccountSocket(client)
  const anyAsset = () => (assets.length === 0 ? null : random.pick(assets))
  const { deployments, hasEngines } = plan
  return { client, random, assets, socket, deployments, hasEngines, anyAsset }
})
const twins: Twins = { bytes: null }

type Caller = (typeof callers)[number]

const SESSIONS: Readonly<Record<keyof LoadRates, (caller: Caller) => Promise<void>>> = {
  jobs: (caller) => runJobSession(caller),
  calls: ({ client, random }) => runCallSession(client, random),
  async uploads({ client, random, assets }) {
    const id = await runUploadSession(client, random, twins)
    if (id === null) return
    assets.push(id)
    if (assets.length > KEPT_ASSETS) assets.shift()
  },
}

/** Begins sessions of one kind at its pace; resolves when the last one has ended. */
async function keepUp(kind: keyof LoadRates): Promise<void> {
  const perSecond = plan.rates[kind]
  const random = seededRandom(plan.seed * 17 + kind.length)
  const underWay = new Set<Promise<void>>()
  while (!stopping.signal.aborted && perSecond > 0) {
    if (underWay.size < Math.max(MIN_OPEN, perSecond * MAX_OPEN_SECONDS)) {
      begun[kind] += 1
      open[kind] += 1
      const session = SESSIONS[kind](random.pick(callers))
        .catch((error) => journal.tell({ what: 'flaw', kind: 'lost', text: String(error?.stack ?? error), id: null }))
        .finally(() => {
          underWay.delete(session)
          open[kind] -= 1
        })
      underWay.add(session)
    }
    await pause((1000 / perSecond) * 2 * random.next())
  }
  await Promise.all(underWay)
}

function countingJournal({ tell }: Journal): Journal {
  const kinds: Partial<Record<Told['what'], keyof LoadRates>> = { job: 'jobs', call: 'calls', asset: 'uploads' }
  return {
    tell(told) {
      const kind = kinds[told.what]
      if (kind !== undefined) acknowledged[kind] += 1
      tell(told)
    },
  }
}

process.on('message', (message) => {
  if (message === 'stop') stopping.abort()
})
// Without whoever started them, clients have nobody to report to.
process.on('disconnect', () => process.exit(1))
const news = setInterval(() => process.send?.({ begun, open, acknowledged } satisfies LoadNews), NEWS_MS)
await Promise.all((Object.keys(SESSIONS) as (keyof LoadRates)[]).map(keepUp))
clearInterval(news)
for (const { socket } of callers) socket.close()
process.send?.({ begun, open, acknowledged } satisfies LoadNews)
process.disconnect()
process.exit(0)
