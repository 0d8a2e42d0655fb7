/** Checks of a Postgres database: whether it can be used, what its settings promise, and how it is kept. */

import { inspectBus } from '../../compose/bus/inspect-bus.ts'
import { type DatabaseFacts, inspectPostgres } from '../../compose/storage/inspect-storage.ts'
import type { BusConfig } from '../../config/blocks/bus-config.ts'
import type { PostgresConfig } from '../../config/blocks/store-config.ts'
import type { Secrets } from '../../config/secrets.ts'
import { type Finding, fail, ok, toReason, warn } from './check.ts'

const WHAT = 'database'
// Leases tolerate more; beyond it something is wrong with one of the clocks.
const CLOCK_TOLERANCE_MS = 2000
const OLD_SNAPSHOT_MS = 600_000
const TESTED_VERSIONS = [15, 16, 17, 18]

export async function checkDatabase(
  config: PostgresConfig,
  { secrets, bus }: { readonly secrets: Secrets; readonly bus: BusConfig },
): Promise<readonly Finding[]> {
  try {
    const facts = await inspectPostgres(config, secrets)
    return [
      checkVersion(config, facts),
      checkSchema(facts),
      ...checkRights(facts),
      checkDurability(facts),
      checkConnections(config, facts),
      checkClock(facts),
      ...checkNotices(facts),
      ...checkUpkeep(facts),
      ...(await checkBus(bus, { secrets, nodes: facts.nodes })),
      checkSecretKey(facts),
    ]
  } catch (error) {
    return [fail(WHAT, toReason(error), 'see docs/scale-out.md')]
  }
}

function checkVersion({ shown, tls }: PostgresConfig, { version }: DatabaseFacts): Finding {
  const says = `${shown}, Postgres ${version}, sslmode ${tls}`
  if (TESTED_VERSIONS.includes(Number.parseInt(version, 10))) return ok(WHAT, says)
  return warn(WHAT, says, 'use one of the versions 15 to 18, which Atelier is tested with')
}

function checkSchema({ migrations: { applied, pending, toContract } }: DatabaseFacts): Finding {
  const what = 'schema'
  if (pending.length > 0)
    return warn(what, `${pending.length} migrations pending`, 'back the database up, then run `atelier migrate`')
  if (toContract.length === 0) return ok(what, `${applied} migrations applied`)
  const remedy = 'when no older version runs any more: `atelier migrate --contract`'
  return warn(
    what,
    `${applied} migrations applied, ${toContract.length} wait to take away what is no longer used`,
    remedy,
  )
}

function checkRights({ missingRights }: DatabaseFacts): Finding[] {
  if (missingRights.length === 0) return []
  const says = `this user may not ${missingRights.join(' or ')} the schema`
  return [fail('permissions', says, 'make the user the owner of the database, or grant it what is missing')]
}

const UNSAFE: readonly (readonly [setting: string, value: string, remedy: string])[] = [
  ['fsync', 'off', 'set fsync = on: a crash of the machine loses or damages the database'],
  ['full_page_writes', 'off', 'set full_page_writes = on: a crash of the machine may damage the database'],
  ['synchronous_commit', 'off', 'set synchronous_commit = on: a crash of the server loses jobs that were acknowledged'],
  ['autovacuum', 'off', 'set autovacuum = on: tables grow without end, and claims become slow'],
]

function checkDurability({ settings }: DatabaseFacts): Finding {
  const what = 'durability'
  const wrong = UNSAFE.filter(([name, value]) => settings[name] === value)
  if (wrong.length === 0)
    return ok(what, `fsync, full_page_writes and synchronous_commit (${settings['synchronous_commit']})`)
  const says = wrong.map(([name, value]) => `${name} is ${value}`).join(', ')
  return fail(what, says, wrong.map(([, , remedy]) => remedy).join('; '))
}

function checkConnections({ maxConnections }: PostgresConfig, { settings, connections }: DatabaseFacts): Finding {
  const most = Number(settings['max_connections'])
  const says = `${connections} of ${most} in use; each process takes up to ${maxConnections}`
  if (most - connections >= maxConnections) return ok('connections', says)
  return warn('connections', says, 'raise max_connections of the server, or lower databasePool')
}

function checkClock({ clockAheadMs, roundTripMs }: DatabaseFacts): Finding {
  const direction = clockAheadMs < 0 ? 'behind' : 'ahead of'
  const says = `the server is ${Math.abs(clockAheadMs)} ms ${direction} this machine (answers within ${roundTripMs} ms)`
  if (Math.abs(clockAheadMs) <= CLOCK_TOLERANCE_MS + roundTripMs) return ok('clock', says)
  return warn('clock', says, 'let both keep their time by NTP')
}

function checkNotices({ hearsNotices }: DatabaseFacts): Finding[] {
  if (hearsNotices) return []
  const remedy =
    'give the address of the server itself: a pooler in transaction mode swallows notices and breaks migrations'
  return [fail('notices', 'a notice that was sent did not come back', remedy)]
}

function checkUpkeep({ invalidIndexes, halfDetached, bloated, oldestSnapshotMs, idleSlots }: DatabaseFacts): Finding[] {
  const findings: Finding[] = []
  if (invalidIndexes.length > 0)
    findings.push(
      warn('indexes', `unusable: ${invalidIndexes.join(', ')}`, 'rebuild them with REINDEX INDEX CONCURRENTLY'),
    )
  if (halfDetached.length > 0)
    findings.push(
      warn('partitions', `half removed: ${halfDetached.join(', ')}`, 'a running service ends this by itself'),
    )
  if (bloated.length > 0) {
    const says = bloated.map(({ table, dead, live }) => `${table} (${dead} removed rows, ${live} live)`).join(', ')
    findings.push(warn('bloat', says, 'let autovacuum run more often, or run VACUUM on these tables'))
  }
  if (oldestSnapshotMs > OLD_SNAPSHOT_MS) {
    const says = `a transaction has been open for ${Math.round(oldestSnapshotMs / 60_000)} minutes`
    findings.push(
      warn('snapshots', says, 'end it: while it is open no removed row is reclaimed, and claims become slow'),
    )
  }
  if (idleSlots.length > 0) {
    const says = `replication slots that nobody reads: ${idleSlots.join(', ')}`
    findings.push(
      warn('replication', says, 'drop those that are no longer wanted: each keeps the log from being removed'),
    )
  }
  return findings.length > 0 ? findings : [ok('upkeep', 'no bloat, no unusable index, no old transaction')]
}

function checkSecretKey({ secretKeyOpens }: DatabaseFacts): Finding {
  const what = 'secret key'
  if (secretKeyOpens === null) return ok(what, 'nothing is sealed under it yet')
  if (secretKeyOpens) return ok(what, 'it opens what the database holds sealed')
  const remedy =
    'set ATELIER_SECRET_KEY to the one of the running processes; when you exchange it, give the former one too, behind the new one and a comma'
  return fail(what, 'it does not open what the database holds sealed', remedy)
}

const BUS = 'bus'

async function checkBus(
  config: BusConfig,
  { secrets, nodes }: { readonly secrets: Secrets; readonly nodes: DatabaseFacts['nodes'] },
): Promise<Finding[]> {
  const condition = await inspectBus(config, { secrets, nodes })
  if (condition === null) return []
  if (condition.kind === 'nats') {
    const remedy =
      'check the address and the credentials; until then changes are found by looking, and previews are missing'
    const { refusal } = condition
    if (refusal !== null) return [fail(BUS, `${refusal.fault}; a start is refused`, refusal.remedy)]
    return [condition.isReached ? ok(BUS, 'NATS answers') : fail(BUS, 'NATS does not answer', remedy)]
  }
  const { peers } = condition
  const unreached = peers.flatMap(({ name, fault }) => (fault === null ? [] : [`${name}: ${fault}`]))
  if (unreached.length === 0) {
    const says = peers.length === 0 ? 'no process runs now' : `all ${peers.length} processes are reached from here`
    return [ok(BUS, says)]
  }
  const remedy =
    'set advertise and internalPort there, and let the processes reach each other; until then previews of its jobs are missing elsewhere'
  return unreached.map((says) => warn(BUS, says, remedy))
}
