/** The settings of a Postgres database: what is read from an address, what is refused, and that a password is never shown. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { type ConfigSources, loadConfig } from '../config.ts'
import { ConfigError } from '../config-error.ts'
import { ENV } from '../env.ts'

const KEY = 'ab'.repeat(32)
const PASSWORD = 'hunter2 is/secret'
let cwd: string
before(() => {
  cwd = mkdtempSync(path.join(tmpdir(), 'atelier-database-'))
})
after(() => rmSync(cwd, { recursive: true, force: true }))

function load(env: Readonly<Record<string, string>>, more: Partial<ConfigSources> = {}) {
  return loadConfig({ flags: {}, cwd, ...more, env: { [ENV.secretKey]: KEY, ...env } })
}

function loadStore(database: string) {
  const { store } = load({ [ENV.database]: database }).config
  return store.kind === 'postgres' ? store : assert.fail('a Postgres store')
}

function refusal(env: Readonly<Record<string, string>>, more: Partial<ConfigSources> = {}): string {
  try {
    load(env, more)
  } catch (error) {
    assert.ok(error instanceof ConfigError, inspect(error))
    assert.ok(!error.message.includes('\n'), 'one line')
    return error.message
  }
  assert.fail('the configuration was accepted')
}

describe('the address of a database', () => {
  test('is taken apart: what connects, what may be shown, and the secret', () => {
    const { config, secrets } = load({
      [ENV.database]: `postgresql://ann%40b:${encodeURIComponent(PASSWORD)}@db.example.com:6543/shop?sslmode=verify-ca&sslrootcert=ca.pem`,
      [ENV.databasePool]: '20',
      [ENV.migrate]: 'check',
    })
    assert.deepEqual(config.store, {
      kind: 'postgres',
      url: 'postgres://ann%40b@db.example.com:6543/shop',
      shown: 'postgres://db.example.com:6543/shop',
      tls: 'verify-ca',
      rootCertificateFile: path.join(cwd, 'ca.pem'),
      maxConnections: 20,
      migrate: 'check',
    })
    assert.equal(secrets.databasePassword?.reveal(), PASSWORD)
    assert.deepEqual(config.blobs, { kind: 'fs', directory: path.join(cwd, '.atelier', 'blobs') })
  })

  test('needs no TLS where nobody can listen, and says so where somebody can', () => {
    for (const near of ['127.0.0.1', 'localhost', '[::1]:5432']) {
      assert.equal(loadStore(`postgres://a@${near}/shop`).tls, 'disable', near)
    }
    const socket = loadStore('postgres://a@/shop?host=/run/postgresql')
    assert.deepEqual(
      [socket.url, socket.shown, socket.tls],
      ['postgres://a@/shop?host=%2Frun%2Fpostgresql', 'postgres:///run/postgresql/shop', 'disable'],
    )
    assert.match(refusal({ [ENV.database]: 'postgres://a@10.0.0.7/shop' }), /another machine.*sslmode=verify-full/)
    assert.equal(loadStore('postgres://a@10.0.0.7/shop?sslmode=disable').tls, 'disable')
  })

  test('is refused when it is none, with one sentence', () => {
    const faults: readonly (readonly [string, RegExp])[] = [
      ['', /is not the address of a Postgres database/],
      ['mysql://a@localhost/shop', /is not the address/],
      ['postgres://a@localhost/shop#x', /is not the address/],
      ['postgres://localhost/shop', /names no user/],
      ['postgres://a@localhost', /names no database/],
      ['postgres://a@localhost/', /names no database/],
      ['postgres://a@localhost/shop?sslmode=prefer', /not one of disable, require, verify-ca, verify-full/],
      ['postgres://a@localhost/shop?sslmode=require&sslrootcert=x', /sslrootcert that nothing is checked against/],
      ['postgres://a@localhost/shop?host=/run', /one: …@host\/name/],
      ['postgres://a@/shop', /one: …@host\/name/],
      ['postgres://a@localhost/shop?statement_timeout=0', /parameter "statement_timeout"/],
    ]
    for (const [text, reason] of faults) {
      const message = refusal({ [ENV.database]: text })
      assert.match(message, /^database \(from ATELIER_DATABASE\) /, text)
      assert.match(message, reason, text)
    }
  })
})

describe('the password of a database', () => {
  const withPassword = `postgres://ann:${encodeURIComponent(PASSWORD)}@localhost/shop`

  test('may come from a file', () => {
    const file = path.join(cwd, 'password')
    writeFileSync(file, `${PASSWORD}\n# rotated in May\n`)
    const env = { [ENV.database]: 'postgres://ann@localhost/shop', [ENV.databasePasswordFile]: file }
    assert.equal(load(env).secrets.databasePassword?.reveal(), PASSWORD)
    assert.match(refusal({ ...env, [ENV.database]: withPassword }), /holds a password.*names another; keep one/)
    assert.match(refusal({ ...env, [ENV.databasePasswordFile]: 'nowhere' }), /databasePasswordFile names .*not a file/)
    writeFileSync(file, '\n')
    assert.match(refusal(env), /first line is empty/)
  })

  test('is refused on a command line, and shown nowhere', () => {
    const message = refusal({}, { flags: { database: withPassword } })
    assert.match(message, /other users of this machine can see.*ATELIER_DATABASE.*--database-password-file/)
    const loaded = load({ [ENV.database]: withPassword })
    const shown = [
      message,
      JSON.stringify(loaded),
      inspect(loaded, { depth: 9, showHidden: true }),
      refusal({ [ENV.database]: `${withPassword}?sslmode=never` }),
      refusal({ [ENV.database]: withPassword.replace('/shop', '') }),
    ]
    for (const text of shown) {
      assert.ok(!text.includes('hunter2'), text)
      assert.ok(!text.includes(encodeURIComponent(PASSWORD)), text)
    }
  })
})

describe('a database', () => {
  const env = { [ENV.database]: 'postgres://a@localhost/shop' }

  test('needs a secret key where jobs run', () => {
    const without = () => ({ flags: {}, env, cwd })
    assert.throws(() => loadConfig(without()), /needs a secretKey.*ATELIER_SECRET_KEY.*openssl rand/)
    assert.equal(loadConfig({ ...without(), isForUpkeep: true }).config.store.kind, 'postgres')
    assert.equal(loadConfig({ ...without(), isForAccounts: true }).config.store.kind, 'postgres')
  })

  test('does not go with what is for one machine', () => {
    assert.match(refusal({ ...env, [ENV.synchronous]: 'normal' }), /^synchronous .*is for SQLite.*leave it out$/)
    assert.match(refusal({ ...env, [ENV.modelsDir]: 'm' }), /^modelsDir .*one machine.*leave it out$/)
  })

  test('is what its other settings need', () => {
    for (const name of ['databasePool', 'databasePasswordFile', 'migrate'] as const) {
      const value = { databasePool: '9', databasePasswordFile: 'x', migrate: 'check' }[name]
      assert.match(refusal({ [ENV[name]]: value }), new RegExp(`^${name} .*none is named; give --database`))
    }
  })
})

test('several secret keys: the first seals, the others open', () => {
  const { secrets } = load({ [ENV.secretKey]: `${'01'.repeat(32)}, ${'02'.repeat(32)}` })
  assert.deepEqual(secrets.secretKey?.reveal(), new Uint8Array(32).fill(1))
  assert.deepEqual(
    secrets.formerSecretKeys.map((key) => key.reveal()),
    [new Uint8Array(32).fill(2)],
  )
})
