/**
 * How one gets into a server: every way to pass a password, drawn names and passwords, TLS as libpq means it, certificates, several
 * hosts; and what an operator is told, with which exit code, when one does not.
 */
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { silentLog } from '../../../../../lib/log.ts'
import { createClient } from '../../../../../lib/postgres/driver.ts'
import { openConnections } from '../../../../../src/adapters/store/postgres/database/connections.ts'
import { command, postgresOnly, query } from '../../../../../src/adapters/store/statements/statement.ts'
import { integer, shape, text } from '../../../../../src/adapters/store/tables/table.ts'
import { runAtelier } from '../../../../support/cli/atelier.ts'
import { runInProcess } from '../../../../support/cli/in-process.ts'
import {
  certificate,
  type PostgresServer,
  startPostgres,
  TEST_PASSWORD,
} from '../../../../support/postgres/postgres-server.ts'
import { startReplicatedPostgres } from '../../../../support/postgres/replicated-postgres.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'
import { waitUntil } from '../../../../support/wait-until.ts'

const ACCESS = `hostssl all bound 127.0.0.1/32 scram-sha-256
hostssl all trusted 127.0.0.1/32 trust
hostssl all md5user 127.0.0.1/32 md5
hostssl all clear 127.0.0.1/32 password
hostssl certified all 127.0.0.1/32 cert
host plain all 127.0.0.1/32 scram-sha-256
hostssl all all 127.0.0.1/32 scram-sha-256
local all all scram-sha-256
`
const KEY = { ATELIER_SECRET_KEY: 'ab'.repeat(32) }
const encoded = encodeURIComponent
const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
const literal = (text: string) => `'${text.replaceAll("'", "''")}'`

let cwd: string
let server: PostgresServer
before(async () => {
  cwd = mkdtempSync(path.join(tmpdir(), 'atelier-access-'))
  // A server runs as somebody else, who makes its socket there.
  chmodSync(cwd, 0o777)
  server = await startPostgres({ access: ACCESS, settings: { unix_socket_directories: cwd } })
  await onServer(
    'CREATE DATABASE certified',
    'CREATE DATABASE plain',
    ...['bound', 'trusted', 'clear'].map((name) => `CREATE USER ${name} PASSWORD 'pw'`),
    `SET password_encryption = 'md5'; CREATE USER md5user PASSWORD 'pw'`,
  )
})
after(async () => {
  await server[Symbol.asyncDispose]()
  rmSync(cwd, { recursive: true, force: true })
})

async function onServer(...texts: readonly string[]): Promise<void> {
  const client = createClient({ url: server.url })
  await client.connect()
  for (const text of texts) await client.query(text)
  await client.end()
}

const run = (args: readonly string[], env: Readonly<Record<string, string>>) => runInProcess(args, { cwd, env })
const address = (query: string, { user = 'atelier', database = 'postgres', host = '127.0.0.1' } = {}) =>
  `postgres://${user}@${host}:${server.port}/${database}?${query}`
const TRUSTING = `sslmode=verify-full&sslrootcert=${encoded(certificate('authority.pem'))}`

/** What the server says about a connection that came about; what it said when none did. */
async function enter(url: string, password?: string): Promise<string> {
  const client = createClient({ url, password })
  try {
    await client.connect()
    const { rows } = await client.query(
      'SELECT current_user AS who, ssl, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()',
    )
    const [{ who, ssl, client_dn: dn }] = rows
    return `${who} ${ssl ? 'over TLS' : 'in the clear'}${dn === null ? '' : ` as ${dn}`}`
  } catch (error) {
    const { code, message } = error as Error & { readonly code?: string }
    return code ?? message
  } finally {
    await client.end().catch(() => {})
  }
}

describe('a password', () => {
  // Everything on a keyboard, and letters and signs of many scripts, of which none is changed by the normalisation of passwords.
  const CHARACTERS = [
    ...Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)),
    ...'äßéñøŁжЯαΩ中文字한あ€£→🔑😀',
  ]

  test('reaches the server by every way, whatever it, the user and the database are called', async () => {
    const random = seededRandom(35)
    const draw = (most: number) =>
      Array.from({ length: random.between(1, most) }, () => random.pick(CHARACTERS)).join('')
    const passwords = [TEST_PASSWORD, '%', '%41', ' ', '#', "'", '\\', ...Array.from({ length: 9 }, () => draw(24))]
    for (const [index, password] of passwords.entries()) {
      const [user, database] = [`u${index} ${draw(8)}`, `d${index} ${draw(8)}`]
      await onServer(
        `CREATE USER ${quoted(user)} PASSWORD ${literal(password)}`,
        `CREATE DATABASE ${quoted(database)} OWNER ${quoted(user)}`,
      )
      const about = JSON.stringify({ user, database, password })
      const names = { user: encoded(user), database: encoded(database) }
      const bare = address(TRUSTING, names)
      const file = path.join(cwd, `password-${index}`)
      writeFileSync(file, `${password}\n`)
      const passFile = path.join(cwd, `pgpass-${index}`)
      const escaped = (text: string) => text.replaceAll(/[\\:]/g, '\\$&')
      writeFileSync(passFile, `*:*:${escaped(database)}:${escaped(user)}:${escaped(password)}\n`, { mode: 0o600 })
      const variables = { PGHOST: '127.0.0.1', PGPORT: `${server.port}`, PGUSER: user, PGDATABASE: database }
      const tls = { PGSSLMODE: 'verify-full', PGSSLROOTCERT: certificate('authority.pem') }
      const ways: Readonly<Record<string, Readonly<Record<string, string>>>> = {
        address: { ATELIER_DATABASE: bare.replace('@', `:${encoded(password)}@`) },
        parameter: { ATELIER_DATABASE: `${bare}&password=${encoded(password)}` },
        file: { ATELIER_DATABASE: bare, ATELIER_DATABASE_PASSWORD_FILE: file },
        PGPASSWORD: { ATELIER_DATABASE: bare, PGPASSWORD: password },
        PGPASSFILE: { ATELIER_DATABASE: bare, PGPASSFILE: passFile },
        variables: { ATELIER_DATABASE: 'postgres://', ...variables, ...tls, PGPASSWORD: password },
      }
      for (const [way, env] of Object.entries(ways)) {
        const { code, stderr } = await run(['migrate', '--dry-run'], env)
        assert.equal(code, 0, `${way}: ${about}: ${stderr}`)
      }
    }
  })

  test('is used by every command and by the bus of a service', async () => {
    await onServer('CREATE DATABASE whole')
    const env = { ...KEY, ATELIER_DATABASE: address(TRUSTING, { database: 'whole' }), PGPASSWORD: TEST_PASSWORD }
    for (const args of [['migrate'], ['accounts', 'list'], ['verify', '--data-dir', 'bytes']]) {
      const { code, stderr } = await run(args, env)
      assert.equal(code, 0, `${args[0]}: ${stderr}`)
    }
    const doctor = await run(['doctor', '--port', '0'], env)
    assert.match(doctor.stdout, /ok {4}database +.*sslmode verify-full\n/)
    assert.doesNotMatch(doctor.stdout, /notices/, 'a notice came back')
    await using connections = openConnections({ url: env.ATELIER_DATABASE, password: TEST_PASSWORD, log: silentLog })
    const one = query('test.one', shape({ one: integer() }), postgresOnly('SELECT 1 AS one'))
    const { durable, relaxed, read, chore } = connections
    const answers = await Promise.all([durable, relaxed, read, chore].map((pool) => pool.get(one)))
    assert.deepEqual(
      answers.map((answer) => answer?.one),
      [1, 1, 1, 1],
    )
  })
})

describe('TLS', () => {
  test('is what sslmode says, as libpq means it', async () => {
    const foreign = `sslrootcert=${encoded(certificate('other-authority.pem'))}`
    const own = `sslrootcert=${encoded(certificate('authority.pem'))}`
    const tls = 'atelier over TLS'
    const faces: readonly (readonly [query: string, outcome: string, host?: string])[] = [
      ['sslmode=disable', '28000'],
      ['sslmode=require', tls],
      ['sslmode=require', tls, 'localhost'],
      [`sslmode=require&${own}`, tls],
      [`sslmode=require&${foreign}`, 'SELF_SIGNED_CERT_IN_CHAIN'],
      [`sslmode=verify-ca&${own}`, tls],
      [`sslmode=verify-ca&${foreign}`, 'SELF_SIGNED_CERT_IN_CHAIN'],
      [`sslmode=verify-full&${own}`, tls],
      [`sslmode=verify-full&${own}`, tls, 'localhost'],
      [`sslmode=verify-full&${foreign}`, 'SELF_SIGNED_CERT_IN_CHAIN'],
      ['sslmode=verify-full', 'SELF_SIGNED_CERT_IN_CHAIN'],
      ['sslrootcert=system', 'SELF_SIGNED_CERT_IN_CHAIN'],
    ]
    for (const [query, outcome, host = '127.0.0.1'] of faces) {
      const given = await enter(address(query, { host }), TEST_PASSWORD)
      const isSame = outcome === 'SELF_SIGNED_CERT_IN_CHAIN' ? /CERT|UNABLE_TO/.test(given) : given === outcome
      assert.ok(isSame, `${query} at ${host}: ${given} instead of ${outcome}`)
    }
    assert.equal(await enter(address('sslmode=disable', { database: 'plain' }), TEST_PASSWORD), 'atelier in the clear')
    const socket = `postgres://atelier@/postgres?host=${encoded(cwd)}&port=${server.port}&sslmode=verify-full`
    assert.equal(await enter(socket, TEST_PASSWORD), 'atelier in the clear', 'a socket needs none')
  })

  test('trusts the authorities of the system', async () => {
    const env = { ATELIER_DATABASE: address('sslrootcert=system'), PGPASSWORD: TEST_PASSWORD }
    const args = ['migrate', '--dry-run']
    const trusting = await runAtelier(args, { env: { ...env, SSL_CERT_FILE: certificate('authority.pem') } })
    assert.equal(trusting.code, 0, trusting.stderr)
    assert.equal((await runAtelier(args, { env })).code, 2)
  })

  test('checks the name in the certificate with verify-full alone', async () => {
    const show = async (name: string) => {
      for (const kind of ['pem', 'key']) {
        writeFileSync(path.join(server.dataFolder, `server.${kind}`), readFileSync(certificate(`${name}.${kind}`)))
      }
      const client = createClient({ url: address('sslmode=require'), password: TEST_PASSWORD })
      await client.connect()
      await client.query('SELECT pg_reload_conf()')
      await client.end()
    }
    const at = (mode: string) => server.url.replace('verify-full', mode)
    await show('elsewhere')
    await waitUntil(async () => (await enter(server.url)) === 'ERR_TLS_CERT_ALTNAME_INVALID')
    assert.equal(await enter(at('verify-ca')), 'atelier over TLS')
    const refused = await run(['migrate'], { ATELIER_DATABASE: server.url })
    assert.deepEqual(
      [refused.code, /is for another name; use that name/.test(refused.stderr)],
      [2, true],
      refused.stderr,
    )
    await show('server')
    await waitUntil(async () => (await enter(server.url)) === 'atelier over TLS')
  })

  test('shows the certificate of the client, which may be all that it needs', async () => {
    const own = `sslcert=${encoded(certificate('client.pem'))}&sslkey=${encoded(certificate('client.key'))}`
    const at = { database: 'certified' }
    assert.equal(await enter(address(`${TRUSTING}&${own}`, at)), 'atelier over TLS as /CN=atelier')
    assert.equal(await enter(address(`sslmode=require&${own}`, at)), 'atelier over TLS as /CN=atelier')
    assert.equal(await enter(address(TRUSTING, at)), '28000')
  })

  test('is bound to the password when that is asked for, and never given up for it', async () => {
    const required = (user: string) => enter(address(`${TRUSTING}&channel_binding=require`, { user }), 'pw')
    assert.equal(await required('bound'), 'bound over TLS')
    assert.deepEqual(
      [await required('trusted'), await required('md5user'), await required('clear')],
      ['NO_BINDING', 'NO_BINDING', 'NO_BINDING'],
    )
    for (const user of ['bound', 'trusted', 'md5user', 'clear']) {
      for (const binding of ['prefer', 'disable']) {
        assert.equal(await enter(address(`${TRUSTING}&channel_binding=${binding}`, { user }), 'pw'), `${user} over TLS`)
      }
    }
  })
})

test('settings and name of the address reach the server, and our own settings win', async () => {
  const parameters = `${TRUSTING}&options=${encoded('-c work_mem=5MB -c statement_timeout=1')}&application_name=shop%20one`
  await using connections = openConnections({ url: address(parameters), password: TEST_PASSWORD, log: silentLog })
  const shown = query(
    'test.shown',
    shape({ memory: text(), timeout: text(), name: text() }),
    postgresOnly(`SELECT current_setting('work_mem') AS memory, current_setting('statement_timeout') AS timeout,
      current_setting('application_name') AS name`),
  )
  assert.deepEqual(await connections.read.get(shown), { memory: '5MB', timeout: '10s', name: 'shop one' })
})

test('who is not let in is told why in one line, without the password, and with exit code 2', async () => {
  const good = { ATELIER_DATABASE: address(TRUSTING) }
  const wrong = { ...good, PGPASSWORD: 'hunter2 is wrong' }
  const faces: readonly (readonly [env: Readonly<Record<string, string>>, reason: RegExp])[] = [
    [wrong, /the password is wrong; give it in ATELIER_DATABASE, PGPASSWORD or --database-password-file/],
    [good, /asks for a password, and none is given; give it in/],
    [{ ...wrong, ATELIER_DATABASE: address(TRUSTING, { user: 'nobody' }) }, /the password is wrong/],
    [{ ATELIER_DATABASE: address('sslmode=disable'), PGPASSWORD: 'hunter2' }, /without TLS; add sslmode=verify-full/],
    [{ ATELIER_DATABASE: address('sslmode=verify-full'), PGPASSWORD: 'hunter2' }, /not trusted .*sslrootcert=<file>/],
    [
      { ATELIER_DATABASE: address(TRUSTING, { database: 'missing' }), PGPASSWORD: TEST_PASSWORD },
      /there is no such database; make it with: createdb/,
    ],
    [
      { ATELIER_DATABASE: address(`${TRUSTING}&channel_binding=require`, { user: 'trusted' }) },
      /channel_binding=require/,
    ],
  ]
  const commands = [['migrate'], ['serve', '--port', '0'], ['accounts', 'list'], ['verify', '--data-dir', 'bytes']]
  for (const [env, reason] of faces) {
    for (const args of commands) {
      const { code, stderr } = await run(args, { ...KEY, ...env })
      assert.equal(code, 2, `${args[0]}: ${stderr}`)
      assert.match(
        stderr,
        /^atelier: [^\n]*The database at postgres:\/\/127\.0\.0\.1:\d+\/\w+ cannot be used: [^\n]+\n$/,
      )
      assert.match(stderr, reason, args[0])
      assert.doesNotMatch(stderr, /hunter2/)
    }
  }
  const move = await run(['move', '--from', 'data', '--to', address(TRUSTING)], { ...KEY, PGPASSWORD: 'hunter2' })
  assert.deepEqual([move.code, /the password is wrong/.test(move.stderr)], [2, true], move.stderr)
  const away = await run(['migrate'], { ATELIER_DATABASE: `postgres://a:b@127.0.0.1:1/x?${TRUSTING}` })
  assert.equal(away.code, 1, 'a server that is away may come back')
})

test('among several hosts the one that takes writes is used, and the next one after it', async () => {
  await using pair = await startReplicatedPostgres()
  const { primary, standby } = pair
  assert.ok(standby !== null)
  const { password, search } = new URL(primary.url)
  const url = `postgres://atelier:${password}@127.0.0.1:1,127.0.0.1:${standby.port},127.0.0.1:${primary.port}/postgres${search}`
  await using connections = openConnections({ url, log: silentLog })
  const portOf = query('test.port', shape({ port: integer() }), postgresOnly('SELECT inet_server_port() AS port'))
  const write = command('test.write-hosts', postgresOnly('CREATE TABLE IF NOT EXISTS hosts (n integer)'))
  assert.deepEqual(await connections.durable.get(portOf), { port: primary.port })
  assert.equal(await enter(`${url}&target_session_attrs=primary`), 'atelier over TLS')
  assert.equal(await enter(url, 'wrong'), '28P01', 'a refusal ends the search')
  const onStandby = `${standby.url}&target_session_attrs=read-write`
  assert.equal(await enter(onStandby), '08001', 'one host is asked too')
  await pair.failOver()
  await connections.durable.transaction((tx) => tx.run(write), { isRepeatable: true })
  assert.deepEqual(await connections.durable.get(portOf), { port: pair.primary.port })
})
