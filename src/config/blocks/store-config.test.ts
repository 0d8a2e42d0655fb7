/** The settings of a Postgres database: what is read from an address, what is refused, and that a password is never shown. */
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { parseAddress, readAddress } from '../../../lib/postgres/address.ts'
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
    writeFileSync(path.join(cwd, 'ca.pem'), '')
    const { config, secrets } = load({
      [ENV.database]: `postgresql://ann%40b:${encodeURIComponent(PASSWORD)}@db.example.com:6543/shop?sslmode=verify-ca&sslrootcert=ca.pem`,
      [ENV.databasePool]: '20',
      [ENV.migrate]: 'check',
    })
    const file = encodeURIComponent(path.join(cwd, 'ca.pem'))
    assert.deepEqual(config.store, {
      kind: 'postgres',
      url: `postgres://ann%40b@db.example.com:6543/shop?sslmode=verify-ca&sslrootcert=${file}&sslnegotiation=postgres&channel_binding=prefer&target_session_attrs=any`,
      shown: 'postgres://db.example.com:6543/shop',
      tls: 'verify-ca',
      maxConnections: 20,
      migrate: 'check',
    })
    assert.equal(secrets.databasePassword?.reveal(), PASSWORD)
    assert.deepEqual(config.blobs, { kind: 'fs', directory: path.join(cwd, '.atelier', 'blobs') })
  })

  test('needs no TLS where nobody can listen, and says so where somebody can', () => {
    for (const near of ['127.0.0.1', 'localhost', '[::1]:5432', 'localhost,127.0.0.1:5433']) {
      assert.equal(loadStore(`postgres://a@${near}/shop`).tls, 'disable', near)
    }
    for (const socket of ['/shop?host=/run/postgresql', '%2Frun%2Fpostgresql/shop']) {
      const { shown, tls } = loadStore(`postgres://a@${socket}`)
      assert.deepEqual([shown, tls], ['postgres:///run/postgresql/shop', 'disable'])
    }
    assert.match(refusal({ [ENV.database]: 'postgres://a@10.0.0.7/shop' }), /another machine.*sslmode=verify-full/)
    assert.match(refusal({ [ENV.database]: 'postgres://a@localhost,10.0.0.7/shop' }), /another machine/)
    assert.equal(loadStore('postgres://a@10.0.0.7/shop?sslmode=disable').tls, 'disable')
  })

  test('means by its parameters what libpq means by them', () => {
    writeFileSync(path.join(cwd, 'ca.pem'), '')
    const read = (query: string) => readAddress(parseAddress(loadStore(`postgres://a@h1:1,h2/shop?${query}`).url))
    const some = read('sslmode=require&options=-c%20x%3D1+2&application_name=me&connect_timeout=7')
    assert.deepEqual(
      some.hosts,
      [
        { host: 'h1', port: 1 },
        { host: 'h2', port: 5432 },
      ],
      'each host has its port',
    )
    assert.deepEqual(
      [some.tls, some.channelBinding, some.target, some.options, some.applicationName, some.connectTimeoutSeconds],
      ['require', 'prefer', 'read-write', '-c x=1+2', 'me', 7],
    )
    assert.equal(read('sslmode=require&sslrootcert=ca.pem').tls, 'verify-ca', 'what is named is checked against')
    assert.equal(read('sslrootcert=system').tls, 'verify-full')
    assert.equal(read('ssl=true&target_session_attrs=any').target, 'any')
    assert.equal(read('sslmode=require&channel_binding=require').channelBinding, 'require')
    const own = read('sslmode=require&sslcert=ca.pem&sslkey=ca.pem').clientCertificate
    assert.equal(own?.key, path.join(cwd, 'ca.pem'))
  })

  test('gets from the variables of libpq what it does not say', () => {
    const env = { PGHOST: 'h1,h2', PGPORT: '6000', PGUSER: 'ann', PGDATABASE: 'shop', PGSSLMODE: 'require' }
    const { config, secrets } = load({ ...env, [ENV.database]: 'postgres://', PGPASSWORD: PASSWORD })
    assert.match(
      config.store.kind === 'postgres' ? config.store.url : '',
      /^postgres:\/\/ann@h1:6000,h2:6000\/shop\?sslmode=require/,
    )
    assert.equal(secrets.databasePassword?.reveal(), PASSWORD)
    const said = load({
      ...env,
      [ENV.database]: 'postgres://bob:own@localhost:1/other?sslmode=disable',
      PGPASSWORD: 'x',
    })
    assert.match(
      said.config.store.kind === 'postgres' ? said.config.store.url : '',
      /^postgres:\/\/bob@localhost:1\/other\?/,
    )
    assert.equal(said.secrets.databasePassword?.reveal(), 'own', 'the address wins')
    assert.equal(load(env).config.store.kind, 'sqlite', 'they do not choose the store')
    assert.match(
      refusal({ [ENV.database]: 'postgres://a@h/shop', PGSSLMODE: 'prefer' }),
      /^database \(from ATELIER_DATABASE, with PGSSLMODE\) has an sslmode/,
    )
  })

  test('is refused when it is none, with one sentence', () => {
    const faults: readonly (readonly [string, RegExp])[] = [
      ['', /is not the address of a Postgres database/],
      ['mysql://a@localhost/shop', /is not the address/],
      ['postgres://a@localhost/shop#x', /is not the address/],
      ['postgres://a:hunter2/x@localhost/shop', /is not the address.*%40/],
      ['postgres://a:hunter2%zz@localhost/shop', /write a percent sign as %25/],
      ['postgres://localhost/shop', /names no user/],
      ['postgres://a@localhost', /names no database/],
      ['postgres://a@localhost/', /names no database/],
      ['postgres://a@localhost:99999/shop', /port that is not a number/],
      ['postgres://a@localhost/shop?sslmode=prefer', /not one of disable, require, verify-ca, verify-full/],
      ['postgres://a@localhost/shop?sslrootcert=x', /sslrootcert, which needs TLS/],
      ['postgres://a@localhost/shop?sslmode=verify-ca', /verify-ca and no sslrootcert/],
      ['postgres://a@localhost/shop?sslmode=require&sslrootcert=system', /use it with sslmode=verify-full/],
      ['postgres://a@localhost/shop?sslmode=verify-full&sslrootcert=nowhere.pem', /cannot be read \(ENOENT\)/],
      ['postgres://a@localhost/shop?sslmode=require&sslcert=x', /one of sslcert and sslkey/],
      ['postgres://a@localhost/shop?channel_binding=require', /channel_binding=require, which needs TLS/],
      ['postgres://a@h,i/shop?sslmode=require&target_session_attrs=standby', /not one of any, read-write, primary/],
      ['postgres://a@h,i/shop?sslmode=require&port=1,2,3', /more or fewer ports than hosts/],
      ['postgres://a@localhost/shop?connect_timeout=0', /connect_timeout that is not a number/],
      ['postgres://a@localhost/shop?host=/run', /one: …@host\/name/],
      ['postgres://a@/shop', /one: …@host\/name/],
      ['postgres://a@localhost/shop?statement_timeout=0', /parameter "statement_timeout"; known are sslmode/],
    ]
    for (const [text, reason] of faults) {
      const message = refusal({ [ENV.database]: text })
      assert.match(message, /^database /, text)
      assert.match(message, reason, text)
      assert.doesNotMatch(message, /hunter2/)
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

  test('may come from a file in the way of libpq, which nobody else may read', () => {
    const file = path.join(cwd, 'passwords')
    const lines = ['# host:port:database:user:password', 'h:1:shop:ann:no', 'localhost:5432:sh\\:op:*:a\\:b\\\\:c']
    writeFileSync(file, lines.join('\n'), { mode: 0o600 })
    const env = { [ENV.database]: 'postgres://ann@localhost/sh%3Aop', PGPASSFILE: file }
    assert.equal(load(env).secrets.databasePassword?.reveal(), 'a:b\\:c')
    const byParameter = `postgres://ann@localhost/sh%3Aop?passfile=${encodeURIComponent(file)}`
    assert.equal(load({ [ENV.database]: byParameter }).secrets.databasePassword?.reveal(), 'a:b\\:c')
    assert.equal(load({ ...env, [ENV.database]: 'postgres://ann@localhost/x' }).secrets.databasePassword, null)
    chmodSync(file, 0o644)
    assert.match(refusal(env), /others may read \(chmod 600\)/)
    assert.match(refusal({ ...env, PGPASSFILE: 'nowhere' }), /is not a file/)
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
