/** What one process changes about accounts, keys and deployments holds in another one on the same store. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log.ts'
import { createWireBus } from '../../src/adapters/bus/wire-bus.ts'
import { openSqliteStore } from '../../src/adapters/store/sqlite/open-sqlite-store.ts'
import { openSharedAccounts } from '../../src/compose/open-accounts.ts'
import { createDirectories } from '../../src/compose/open-directories.ts'
import type { Caller } from '../../src/domain/accounts/caller.ts'
import { openDeployments } from '../../src/domain/deployments/deployments.ts'
import type { Store } from '../../src/domain/store.ts'
import { createLoopback } from '../support/bus/loopback-medium.ts'

const CONFIG = { tiers: { free: {}, pro: { concurrentJobs: 9 } }, tiersFile: null, prices: null, jwt: null }

/** As much of a process as knows accounts and deployments. */
async function openProcess(store: Store, end: ReturnType<ReturnType<typeof createLoopback>['join']>) {
  const bus = createWireBus({ medium: end, links: end.links, log: silentLog })
  const directories = createDirectories({ store, bus, log: silentLog })
  const shared = await openSharedAccounts(CONFIG, { store, directories, clock: systemClock, log: silentLog })
  const announce = () => directories.announce('deployments')
  const deployments = await openDeployments({ store: store.deployments, clock: systemClock, announce })
  directories.follow({ ...shared.lists, deployments })
  const caller = (key: string) => shared.identify(key) as Caller
  /** Resolves as soon as the condition holds, looking whenever something has changed here. */
  const until = (holds: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const stops: (() => void)[] = []
      const look = () => {
        if (!holds()) return
        for (const stop of stops) stop()
        resolve()
      }
      stops.push(shared.onCredentialsChanged(look))
      deployments.onChange(look)
      look()
    })
  return { shared, deployments, caller, until, end, [Symbol.asyncDispose]: () => directories[Symbol.asyncDispose]() }
}

async function openTwo() {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-two-'))
  // The folder's lock admits one process; the objects of two share its store here.
  const store = { ...(await openSqliteStore({ directory: folder, synchronous: 'NORMAL' })), isExclusive: false }
  const medium = createLoopback()
  const [one, other] = [await openProcess(store, medium.join()), await openProcess(store, medium.join())]
  return {
    one,
    other,
    store,
    async [Symbol.asyncDispose]() {
      await Promise.all([one, other].map((each) => each[Symbol.asyncDispose]()))
      await store[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

type Two = Awaited<ReturnType<typeof openTwo>>

async function makeKey({ one, other }: Two): Promise<{ id: string; text: string }> {
  await one.shared.accounts.create({ id: 'acme', name: 'Acme', tier: null, overrides: {} })
  const { key, text } = await one.shared.apiKeys.create({ accountId: 'acme', name: '', scopes: null, expiresAt: null })
  await other.until(() => isAccepted(other, text))
  return { id: key.id, text }
}

function isAccepted({ caller }: Two['one'], key: string): boolean {
  try {
    caller(key)
    return true
  } catch {
    return false
  }
}

test('a key that one process makes is good in the other, and ends there with what it was let in for', async () => {
  await using two = await openTwo()
  const { one, other } = two
  const { id, text } = await makeKey(two)
  const held = other.caller(text)
  assert.equal(other.shared.isWelcome(held), true)
  await one.shared.apiKeys.revoke(id)
  assert.equal(isAccepted(one, text), false, 'at once where it was revoked')
  await other.until(() => !other.shared.isWelcome(held))
  assert.equal(isAccepted(other, text), false)
})

test('a lost notice is made up for by the next look', async () => {
  await using two = await openTwo()
  const { one, other } = two
  const { text } = await makeKey(two)
  const held = other.caller(text)
  other.end.cut()
  await one.shared.accounts.change('acme', { status: 'suspended' })
  await other.until(() => !other.shared.isWelcome(held))
})

test('after a gap everything is looked at again at once', async () => {
  await using two = await openTwo()
  const { one, other } = two
  const { text } = await makeKey(two)
  other.end.cut()
  await one.shared.accounts.change('acme', { tier: 'pro' })
  other.end.mend()
  await other.until(() => other.shared.limitsOf('acme').concurrentJobs === 9)
  assert.ok(isAccepted(other, text))
})

test('two changes of one account in two processes are both kept', async () => {
  await using two = await openTwo()
  const { one, other } = two
  await makeKey(two)
  // Neither has heard of the other's change when it makes its own.
  other.end.cut()
  await Promise.all([
    one.shared.accounts.change('acme', { status: 'suspended' }),
    other.shared.accounts.change('acme', { name: 'Acme and Sons' }),
  ])
  const stored = await two.store.directory.find('acme')
  assert.deepEqual([stored?.status, stored?.name], ['suspended', 'Acme and Sons'])
  await other.until(() => other.shared.accounts.find('acme')?.status === 'suspended')
  await one.until(() => one.shared.accounts.find('acme')?.name === 'Acme and Sons')
})

test('a deployment that one process stops takes no jobs in the other, and an operator may start it there', async () => {
  await using two = await openTwo()
  const { one, other } = two
  await one.deployments.create({ id: 'demo', accountId: null, workers: 1, idleAfterMs: null })
  await one.deployments.move({ id: 'demo', from: ['provisioning'], to: 'ready' })
  await other.until(() => other.deployments.find('demo')?.state === 'ready')
  await other.deployments.mustTakeJobs('demo')
  other.end.cut()
  await one.deployments.stop('demo', { now: true })
  assert.equal((await other.deployments.start('demo')).state, 'provisioning', 'an older copy does not decide')
  await one.until(() => one.deployments.find('demo')?.state === 'provisioning')
  await one.deployments.stop('demo', { now: true })
  await other.until(() => other.deployments.find('demo')?.state === 'stopped')
  await assert.rejects(other.deployments.mustTakeJobs('demo'), { refusal: 'deployment_stopped' })
  await one.deployments.start('demo')
  await one.deployments.move({ id: 'demo', from: ['provisioning'], to: 'ready' })
  await other.deployments.mustTakeJobs('demo')
})

test('where nobody else can write, nothing is polled and nobody is told', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'atelier-one-'))
  await using ending = new AsyncDisposableStack()
  ending.defer(() => rm(folder, { recursive: true, force: true }))
  await using store = await openSqliteStore({ directory: folder, synchronous: 'NORMAL' })
  let reads = 0
  const glance = () => {
    reads++
    return store.glance()
  }
  const watched = { isExclusive: store.isExclusive, glance }
  const told: unknown[] = []
  const end = createLoopback().join()
  const bus = createWireBus({ medium: end, links: end.links, log: silentLog })
  bus.onDirectory((notice) => told.push(notice))
  await using directories = createDirectories({ store: watched, bus, log: silentLog })
  const shared = await openSharedAccounts(CONFIG, { store, directories, clock: systemClock, log: silentLog })
  directories.follow(shared.lists)
  await shared.accounts.create({ id: 'acme', name: 'Acme', tier: null, overrides: {} })
  assert.deepEqual([reads, told], [0, []])
})
