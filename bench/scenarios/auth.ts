/**
 * The cost of authentication with 10,000 keys: of single lookups with a valid and an invalid key, and of whole requests that
 * differ only in the key.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock as clock } from '../../lib/clock.ts'
import { openSqliteStore, type SqliteStore } from '../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { openAccounts } from '../../src/domain/accounts/accounts.ts'
import { createCallers } from '../../src/domain/accounts/authenticate.ts'
import type { Authenticate } from '../../src/domain/accounts/caller.ts'
import { newKeyId, newKeyText } from '../../src/domain/accounts/keys/api-key.ts'
import { createApiKeys } from '../../src/domain/accounts/keys/api-keys.ts'
import { openKeyRing } from '../../src/domain/accounts/keys/key-ring.ts'
import { DEFAULT_TIERS } from '../../src/domain/accounts/limits/tiers.ts'
import { finishedJob } from '../kit/client-steps.ts'
import type { Figure } from '../kit/figure.ts'
import { alternate, measureLoad } from '../kit/load.ts'
import { forkServer } from '../kit/server-child.ts'

const KEYS = 10_000
const CALLS = 100_000
const ROUNDS = 5
const ACCOUNT = 'bench'

interface Opened {
  readonly authenticate: Authenticate
  readonly texts: readonly string[]
}

async function fill(store: SqliteStore): Promise<Opened> {
  const accounts = await openAccounts({ directory: store.directory, tiers: DEFAULT_TIERS, clock })
  const overrides = { requestsPerMinute: null, creditFloorMicros: null, queuedJobs: 1000 }
  await accounts.create({ id: ACCOUNT, name: 'Bench', tier: null, overrides })
  const ring = await openKeyRing({ store: store.apiKeys, clock })
  const keys = createApiKeys({ store: store.apiKeys, ring, clock })
  const field = { accountId: ACCOUNT, name: '', scopes: null, expiresAt: null }
  const made = await Promise.all(Array.from({ length: KEYS }, () => keys.create(field)))
  const { authenticate } = createCallers({
    ...{ keys: ring, findAccount: (id: string) => accounts.find(id), verifyToken: null, clock },
  })
  return { authenticate, texts: made.map(({ text }) => text) }
}

/** Microseconds per call, sorted, each call timed by itself. */
function timeCalls(authenticate: Authenticate, credentialOf: (index: number) => string): number[] {
  const times = new Float64Array(CALLS)
  for (let index = 0; index < CALLS; index++) {
    const credential = credentialOf(index)
    const startedAt = process.hrtime.bigint()
    try {
      authenticate(credential)
    } catch {
      // A wrong key is what is being measured.
    }
    times[index] = Number(process.hrtime.bigint() - startedAt) / 1000
  }
  return [...times.sort()]
}

function medianOf(rounds: readonly number[][], share: number): number {
  const values = rounds.map((times) => times[Math.floor(times.length * share)]).sort((a, b) => a - b)
  return values[Math.floor(values.length / 2)]
}

function measureCalls({ authenticate, texts }: Opened): Figure[] {
  const wrong = Array.from({ length: 1000 }, (_, index) => newKeyText(texts[index].slice(4, 16)))
  const unknown = Array.from({ length: 1000 }, () => newKeyText(newKeyId()))
  const kinds = {
    right: (index: number) => texts[(index * 7919) % KEYS],
    wrongSecret: (index: number) => wrong[index % 1000],
    unknownKey: (index: number) => unknown[index % 1000],
    noise: (index: number) => `atl_${'x'.repeat(40)}${index % 10_000}`,
  }
  const rounds: Record<string, number[][]> = {}
  for (let round = 0; round < ROUNDS + 1; round++) {
    for (const [kind, credentialOf] of Object.entries(kinds)) {
      const times = timeCalls(authenticate, credentialOf)
      // The first round only warms up.
      if (round > 0) rounds[kind] = [...(rounds[kind] ?? []), times]
    }
  }
  const p50 = Object.fromEntries(Object.entries(rounds).map(([kind, times]) => [kind, medianOf(times, 0.5)]))
  const p99 = Object.fromEntries(Object.entries(rounds).map(([kind, times]) => [kind, medianOf(times, 0.99)]))
  const dearest = Math.max(p50['wrongSecret'], p50['unknownKey'], p50['noise'])
  const detail = { p50Micros: p50, p99Micros: p99, keys: KEYS, calls: CALLS }
  return [
    {
      name: 'a caller is known, 10,000 keys, p50',
      measured: p50['right'],
      unit: 'µs',
      bar: 50,
      direction: 'at_most',
      detail,
    },
    {
      name: 'a wrong key against a right one, p50 of the check',
      ...{ measured: dearest / p50['right'], unit: '%', bar: 1.1, direction: 'at_most', detail },
    },
  ]
}

const ROUND = { connections: 32, seconds: 3 }

async function measureRequests(directory: string, key: string): Promise<Figure> {
  const settings = { kind: 'cloud', dataDir: directory, synchronous: 'normal' }
  await using atelier = await forkServer('bench/servers/atelier.ts', settings)
  const right = { authorization: `Bearer ${key}` }
  const wrong = { authorization: `Bearer ${newKeyText(key.slice(4, 16))}` }
  const job = await finishedJob(atelier.url, right)
  const path = `/api/v2/jobs/${job.id}`
  const poll = (headers: Record<string, string>, expectStatus: number) => () =>
    measureLoad(atelier, { ...ROUND, path, headers, expectStatus })
  const results = await alternate(3, { right: poll(right, 200), wrong: poll(wrong, 401) })
  return {
    name: 'a poll with a wrong key against one with a right key, CPU',
    measured: results.wrong.cpuMicrosPerRequest / results.right.cpuMicrosPerRequest,
    ...{ unit: '%', bar: 1.1, direction: 'at_most', detail: results },
  }
}

export async function auth(): Promise<Figure[]> {
  const directory = await mkdtemp(join(tmpdir(), 'atelier-bench-auth-'))
  try {
    const figures: Figure[] = []
    let key = ''
    {
      await using store = await openSqliteStore({ directory, synchronous: 'NORMAL' })
      const opened = await fill(store)
      key = opened.texts[KEYS - 1]
      figures.push(...measureCalls(opened))
    }
    return [...figures, await measureRequests(directory, key)]
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
