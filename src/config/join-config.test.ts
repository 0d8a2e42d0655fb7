import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from './config.ts'
import { ConfigError } from './config-error.ts'
import { isMeantForJoined, readJoin } from './join-config.ts'

const KEY = `atl_${'a'.repeat(12)}_${'b'.repeat(38)}`
const ENV = { ATELIER_WORKER_TOKEN: `${KEY}\n` }

test('addresses lose their last slash, and the key comes from the environment without its line end', () => {
  const { join, key } = readJoin({ join: 'https://a.example.com/, https://b.example.com/prefix/' }, ENV)
  assert.deepEqual(join.urls, ['https://a.example.com', 'https://b.example.com/prefix'])
  assert.equal(key.reveal(), KEY)
  assert.ok(!JSON.stringify({ key }).includes(KEY))
})

test('plain HTTP is for this machine alone, unless it is asked for', () => {
  for (const join of ['http://127.0.0.1:8189', 'http://localhost:8189', 'http://[::1]:8189']) readJoin({ join }, ENV)
  assert.throws(() => readJoin({ join: 'http://api.example.com' }, ENV), ConfigError)
  readJoin({ join: 'http://api.example.com', allowPlainHttp: true }, ENV)
})

test('what cannot be joined is refused in words that never repeat the key', () => {
  for (const join of ['', 'api.example.com', 'ftp://x', 'https://u:p@x', 'https://x/?a=1']) {
    assert.throws(() => readJoin({ join }, ENV), ConfigError, join)
  }
  assert.throws(() => readJoin({ join: 'https://x' }, {}), /a worker key is missing/)
  assert.throws(
    () => readJoin({ join: 'https://x', token: KEY.slice(0, -1) }, {}),
    (error: Error) => error instanceof ConfigError && !error.message.includes('bbbb'),
  )
  assert.throws(() => readJoin({ join: 'https://x', tokenFile: '/nowhere/at-all' }, {}), /cannot be read \(ENOENT\)/)
})

test('settings of a service beside it do not keep a joined worker from starting, and those of engines count', () => {
  const env = { ATELIER_HOST: '0.0.0.0', ATELIER_PORT: 'none', ATELIER_DATABASE: 'mysql://x', ATELIER_WORKERS: '3' }
  assert.throws(() => loadConfig({ flags: {}, env, cwd: '/' }), ConfigError)
  const { config } = loadConfig({ flags: {}, env, cwd: '/', isMeant: isMeantForJoined })
  assert.equal(config.jobs.workers, 3)
  assert.throws(
    () => loadConfig({ flags: {}, env: { ATELIER_WORKERS: 'many' }, cwd: '/', isMeant: isMeantForJoined }),
    /workers/,
  )
})

test('health is asked for on this machine unless an address is given', () => {
  const healthOf = (health: string) => readJoin({ join: 'https://x', health }, ENV).join.health
  assert.equal(readJoin({ join: 'https://x' }, ENV).join.health, null)
  assert.deepEqual(healthOf('8190'), { host: '127.0.0.1', port: 8190 })
  assert.deepEqual(healthOf('0.0.0.0:8190'), { host: '0.0.0.0', port: 8190 })
  assert.deepEqual(healthOf('[::]:8190'), { host: '::', port: 8190 })
  for (const wrong of ['', 'x', '70000', '1:2:3', 'a:']) assert.throws(() => healthOf(wrong), ConfigError, wrong)
})
