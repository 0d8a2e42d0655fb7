/** The role of a process: what it takes on by itself, and which settings do not fit it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConfigSources, loadConfig } from '../config.ts'
import { ConfigError } from '../config-error.ts'
import { ENV } from '../env.ts'

const SHARED = { [ENV.database]: 'postgres://a@127.0.0.1/shop', [ENV.secretKey]: 'ab'.repeat(32) }

function load(flags: Readonly<Record<string, string>>, more: Partial<ConfigSources> = {}) {
  return loadConfig({ cwd: '/nowhere', env: SHARED, flags, ...more }).config
}

function refusal(flags: Readonly<Record<string, string>>, more: Partial<ConfigSources> = {}): string {
  try {
    load(flags, more)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    assert.ok(!error.message.includes('\n'), 'one line')
    return error.message
  }
  assert.fail('the configuration was accepted')
}

const storeOf = (flags: Readonly<Record<string, string>>) => {
  const { store } = load(flags)
  return store.kind === 'postgres' ? [store.maxConnections, store.migrate] : assert.fail('a Postgres store')
}

test('a process does everything unless it is told otherwise', () => {
  const { role, fleet, jobs } = loadConfig({ cwd: '/nowhere', env: {}, flags: {} }).config
  assert.deepEqual([role, fleet.hasEmbedded, jobs.pools, jobs.drainDelayMs], ['all', true, null, 0])
  assert.ok(jobs.workers > 0)
})

test('the role api has no engine and runs no job', () => {
  const { fleet, jobs } = load({ role: 'api' })
  assert.deepEqual([fleet.hasEmbedded, fleet.urls, jobs.workers], [false, [], 0])
  assert.equal(load({ role: 'api', embedded: 'off', workers: '0' }).jobs.workers, 0, 'what is so anyway may be said')
})

test('connections and migrations follow from the role, unless they are given', () => {
  assert.deepEqual(storeOf({}), [8, 'auto'])
  assert.deepEqual(storeOf({ role: 'api' }), [8, 'check'])
  assert.deepEqual(storeOf({ role: 'worker', embedded: 'on' }), [4, 'check'])
  assert.deepEqual(storeOf({ role: 'worker', embedded: 'on', databasePool: '9', migrate: 'auto' }), [9, 'auto'])
})

test('a role needs a database that processes can share', () => {
  const alone = { env: {} }
  assert.match(refusal({ role: 'api' }, alone), /role = "api" \(from --role\) needs a database.*--database/)
  assert.match(refusal({ role: 'worker', embedded: 'on' }, alone), /role = "worker".*needs a database/)
})

test('what runs jobs does not fit the role api', () => {
  const wrong = { comfyui: 'http://gpu:8188', comfyuiLaunch: 'python x --port {port}', nodes: 'mine', pools: 'default' }
  for (const [name, value] of Object.entries(wrong)) {
    assert.match(refusal({ role: 'api', [name]: value }), new RegExp(`^${name} \\(from --.*runs none`), name)
  }
  assert.match(refusal({ role: 'api', embedded: 'on' }), /^embedded .*runs none/)
  assert.match(refusal({ role: 'api', workers: '2' }), /^workers .*runs none/)
})

test('the role worker needs an engine, and something to do', () => {
  assert.match(refusal({ role: 'worker' }), /has no engine; name servers with --comfyui.*--embedded on/)
  assert.match(refusal({ role: 'worker', embedded: 'off' }), /has no engine/)
  assert.match(refusal({ role: 'worker', embedded: 'on', workers: '0' }), /^workers = 0 .*nothing to do/)
  assert.equal(load({ role: 'worker', comfyui: 'http://127.0.0.1:8188' }).jobs.workers, 1)
})

test('pools are named like deployments', () => {
  assert.deepEqual(load({ kind: 'cloud', pools: 'default,faces' }).jobs.pools, ['default', 'faces'])
  assert.match(refusal({ pools: 'default,faces' }), /names "faces", and the kind local has the pool default alone/)
  for (const wrong of ['', 'Faces', 'a b']) assert.match(refusal({ pools: wrong }), /^pools = /, wrong)
})

test('commands that look after the store do not care about the role', () => {
  const upkeep = { isForUpkeep: true, env: { ...SHARED, [ENV.role]: 'worker' } }
  assert.equal(load({}, upkeep).role, 'worker')
})
