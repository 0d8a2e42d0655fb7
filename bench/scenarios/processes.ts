/**
 * One, two and four processes for requests over one Postgres, each process under the same load: how much work a second of processor
 * time does, theirs and the server's together. If the processes got in each other's way anywhere but in Postgres, it would do less with
 * each further one. The three services stay up, each with a server of its own, and take turns in short slices: whatever else the
 * machine does falls on all of them alike.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import autocannon from 'autocannon'
import { type SpawnedServer, spawnServer } from '../../test/support/app/spawn-server.ts'
import { call } from '../../test/support/clients/call.ts'
import { type PostgresServer, startPostgres } from '../../test/support/postgres/postgres-server.ts'
import { waitUntil } from '../../test/support/wait-until.ts'
import type { Figure } from '../kit/figure.ts'
import { readFamilyMicros, readProcessMicros } from '../kit/processor-time.ts'

const SIZES = [1, 2, 4] as const
const ACCOUNTS = 32
const CONNECTIONS_EACH = 32
const SLICES = 10
// Requests to each process, not seconds: one that has had little processor time is not warm, however long it ran.
const WARM = { submits: 2000, polls: 2000 }
const SLICE = { submits: 300, polls: 600 }
// So many that none is asked for twice while its last answer still counts as fresh: every poll asks the store.
const JOBS_POLLED = 1600
// Nothing here measures how long an answer takes.
const PATIENT_SECONDS = 120
const ADMIN_TOKEN = 'admin-token-of-the-bench'
const TEXT = 'some words of a prompt, '.repeat(80)
const BODY = JSON.stringify({ workflow: { 1: { class_type: 'Text', inputs: { text: TEXT } } } })

type Size = (typeof SIZES)[number]
type Work = 'submits' | 'polls'

interface Service extends AsyncDisposable {
  readonly size: Size
  readonly server: PostgresServer
  readonly apis: readonly SpawnedServer[]
  readonly requests: Readonly<Record<Work, readonly autocannon.Request[]>>
}

interface Spent {
  readonly requests: number
  readonly seconds: number
  readonly ownMicros: number
  readonly postgresMicros: number
}

const STATUS: Readonly<Record<Work, number>> = { submits: 201, polls: 200 }
const NOTHING: Spent = { requests: 0, seconds: 0, ownMicros: 0, postgresMicros: 0 }

export async function processes(): Promise<Figure[]> {
  await using stack = new AsyncDisposableStack()
  const services: Service[] = []
  for (const size of SIZES) services.push(stack.use(await startService(size)))
  const spent = new Map<string, Spent>()
  for (let slice = 0; slice < SLICES; slice += 1) {
    for (const service of slice % 2 === 0 ? services : services.toReversed()) {
      for (const work of ['submits', 'polls'] as const) {
        const name = `${work} ${service.size}`
        spent.set(name, add(spent.get(name) ?? NOTHING, await measure(service, work)))
      }
    }
  }
  const measured = (work: Work, size: Size) => toMeasured(spent.get(`${work} ${size}`) ?? NOTHING)
  return (['submits', 'polls'] as const).flatMap((work) => {
    const detail = Object.fromEntries(SIZES.map((size) => [`${size}`, measured(work, size)]))
    const [one, ...others] = SIZES
    const share = (size: Size) => `${Math.round(measured(work, size).postgresShare * 100)} %`
    return others.map(
      (size): Figure => ({
        name: `${work} per processor second: ${size} API processes against one (share of Postgres ${share(one)} and ${share(size)})`,
        measured: measured(work, size).perProcessorSecond / measured(work, one).perProcessorSecond,
        ...{ unit: '%', bar: 0.85, direction: 'at_least', detail },
      }),
    )
  })
}

function add(one: Spent, other: Spent): Spent {
  return {
    requests: one.requests + other.requests,
    seconds: one.seconds + other.seconds,
    ownMicros: one.ownMicros + other.ownMicros,
    postgresMicros: one.postgresMicros + other.postgresMicros,
  }
}

function toMeasured({ requests, seconds, ownMicros, postgresMicros }: Spent) {
  return {
    perSecond: requests / seconds,
    perProcessorSecond: (requests / (ownMicros + postgresMicros)) * 1_000_000,
    microsEach: ownMicros / requests,
    postgresMicrosEach: postgresMicros / requests,
    postgresShare: postgresMicros / (ownMicros + postgresMicros),
  }
}

async function startService(size: Size): Promise<Service> {
  await using opening = new AsyncDisposableStack()
  const settings = { max_wal_size: '8GB', checkpoint_timeout: '30min' }
  const server = opening.use(await startPostgres({ isDurable: true, settings }))
  const folder = mkdtempSync(path.join(tmpdir(), 'atelier-bench-'))
  opening.defer(() => rmSync(folder, { recursive: true, force: true }))
  const flags = ['--role', 'api', '--kind', 'cloud', '--data-dir', folder, '--migrate', 'auto', '--log-level', 'silent']
  const env = { ATELIER_DATABASE: server.url, ATELIER_SECRET_KEY: 'ab'.repeat(32), ATELIER_ADMIN_TOKEN: ADMIN_TOKEN }
  const apis: SpawnedServer[] = []
  for (let index = 0; index < size; index += 1) apis.push(opening.use(await spawnServer(flags, env)))
  const keys = await makeAccounts(apis)
  const submits = keys.map((headers) => ({ method: 'POST', path: '/api/v2/jobs', body: BODY, headers }) as const)
  await drive(apis, submits, WARM.submits)
  const polls = await findJobs(apis[0], keys)
  await drive(apis, polls, WARM.polls)
  const running = opening.move()
  return { size, server, apis, requests: { submits, polls }, [Symbol.asyncDispose]: () => running.disposeAsync() }
}

/** The credentials of as many accounts, known to all processes. */
async function makeAccounts(apis: readonly SpawnedServer[]): Promise<{ authorization: string }[]> {
  const ask = async (at: string, body: object) => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
    const answer = await call(apis[0].url, `/admin/v1${at}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (answer.status !== 201) throw new Error(`${at}: ${answer.text}`)
    return answer.json
  }
  const keys: { authorization: string }[] = []
  for (let index = 0; index < ACCOUNTS; index += 1) {
    const limits = { requestsPerMinute: null, creditFloorMicros: null, queuedJobs: 1_000_000 }
    await ask('/accounts', { id: `account-${index}`, limits })
    keys.push({ authorization: `Bearer ${(await ask(`/accounts/account-${index}/keys`, {})).text}` })
  }
  const last = keys.at(-1) ?? { authorization: '' }
  for (const { url } of apis) {
    await waitUntil(async () => (await call(url, '/api/v2/jobs', { headers: last })).status === 200)
  }
  return keys
}

/** Polls of waiting jobs of all accounts. */
async function findJobs(api: SpawnedServer, keys: readonly { authorization: string }[]): Promise<autocannon.Request[]> {
  const perAccount = Math.ceil(JOBS_POLLED / keys.length)
  const lists = await Promise.all(
    keys.map(async (headers) => {
      const { json } = await call(api.url, `/api/v2/jobs?limit=${perAccount}`, { headers })
      return (json.jobs as { id: string }[]).map(({ id }) => ({ path: `/api/v2/jobs/${id}`, headers }))
    }),
  )
  return lists.flat()
}

async function measure({ server, apis, requests }: Service, work: Work): Promise<Spent> {
  const readOwn = () => apis.reduce((sum, { pid }) => sum + readProcessMicros(pid), 0)
  const [own, postgres, startedAt] = [readOwn(), readFamilyMicros(server.pid), performance.now()]
  const results = await drive(apis, requests[work], SLICE[work])
  return {
    requests: results.reduce((sum, result) => sum + countAnswers(result, STATUS[work]), 0),
    seconds: (performance.now() - startedAt) / 1000,
    ownMicros: readOwn() - own,
    postgresMicros: readFamilyMicros(server.pid) - postgres,
  }
}

/** The same load on each. */
function drive(apis: readonly SpawnedServer[], requests: readonly autocannon.Request[], amount: number) {
  const load = { connections: CONNECTIONS_EACH, amount, requests: [...requests], timeout: PATIENT_SECONDS }
  let begun = 0
  // Each connection begins elsewhere in the list; else all of them would ask for the same job at the same time.
  const setupClient = (client: autocannon.Client) => {
    const first = Math.floor((begun++ * requests.length) / (CONNECTIONS_EACH * apis.length)) % requests.length
    client.setRequests([...requests.slice(first), ...requests.slice(0, first)])
  }
  return Promise.all(apis.map(({ url }) => autocannon({ url, ...load, setupClient })))
}

function countAnswers(result: autocannon.Result, status: number): number {
  const { statusCodeStats } = result as unknown as { statusCodeStats: Record<string, { count: number }> }
  const count = Number(statusCodeStats[`${status}`]?.count ?? 0)
  if (count === 0 || result.errors > 0 || count < result.requests.total * 0.999)
    throw new Error(`expected status ${status}, got ${JSON.stringify(statusCodeStats)}, errors ${result.errors}`)
  return count
}
