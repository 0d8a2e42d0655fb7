/** How processes hear of each other, out of the settings; and settings that do not stand together. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConfigSources, loadConfig } from '../config.ts'
import { ConfigError } from '../config-error.ts'
import { ENV } from '../env.ts'

const SHARED = { [ENV.database]: 'postgres://a@127.0.0.1/shop', [ENV.secretKey]: 'ab'.repeat(32) }

function load(flags: Readonly<Record<string, string>>, more: Partial<ConfigSources> = {}) {
  return loadConfig({ cwd: '/nowhere', env: SHARED, flags, ...more })
}

function refusal(flags: Readonly<Record<string, string>>, more: Partial<ConfigSources> = {}): string {
  try {
    load(flags, more)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    assert.ok(!error.message.includes('\n') && !error.message.includes('pass-word'), error.message)
    return error.message
  }
  assert.fail('the configuration was accepted')
}

function listenerOf(flags: Readonly<Record<string, string>>) {
  const { bus } = load({ kind: 'cloud', ...flags }).config
  if (bus.kind !== 'notify') assert.fail('a bus by the database')
  const { host, port, addressAt } = bus.listener
  return [host, port, addressAt(9)]
}

test('one process needs no bus; several use their database', () => {
  assert.deepEqual(load({}, { env: {} }).config.bus, { kind: 'local' })
  assert.equal(load({}).config.bus.kind, 'notify')
})

test('the internal port is open where the service is, or everywhere when others are told an address', () => {
  assert.deepEqual(listenerOf({}), ['127.0.0.1', null, 'http://127.0.0.1:9'])
  assert.deepEqual(listenerOf({ host: '10.1.2.3', internalPort: '77' }), ['10.1.2.3', 77, 'http://10.1.2.3:9'])
  assert.match(String(listenerOf({ host: '0.0.0.0' })[2]), /^http:\/\/\d+\.\d+\.\d+\.\d+:9$/)
  assert.deepEqual(listenerOf({ advertise: 'gpu-7' }), ['0.0.0.0', null, 'http://gpu-7:9'])
  assert.deepEqual(listenerOf({ advertise: 'fd00::7' }), ['::', null, 'http://[fd00::7]:9'])
  assert.deepEqual(listenerOf({ advertise: 'https://w7.example.com' }), ['0.0.0.0', null, 'https://w7.example.com:443'])
  assert.deepEqual(listenerOf({ advertise: 'http://w7:8190' })[2], 'http://w7:8190')
  assert.deepEqual(listenerOf({ advertise: 'http://127.0.0.1:8190' }), ['127.0.0.1', null, 'http://127.0.0.1:8190'])
  assert.equal(listenerOf({ advertise: '::1' })[0], '::1')
  for (const advertise of ['http://w7/path', 'ftp://w7', '', 'a b', 'http://u@w7'])
    assert.match(refusal({ advertise }), /^advertise = .*give for example 10\.0\.0\.5/)
})

test('NATS servers are several or one, with their credentials in the environment or a file', () => {
  const env = { ...SHARED, [ENV.bus]: 'nats://ann:pass-word@one,nats://two:4333' }
  const { config, secrets } = load({}, { env })
  assert.deepEqual(config.bus, {
    ...{ kind: 'nats', servers: ['one:4222', 'two:4333'], isEncrypted: false, user: 'ann', credentialsFile: null },
    ...{ rootCertificateFile: null, clientCertificateFiles: null },
  })
  assert.equal(secrets.busPassword?.reveal(), 'pass-word')
  assert.ok(!JSON.stringify(config).includes('pass-word'))
  const byToken = load({}, { env: { ...SHARED, [ENV.bus]: 'tls://pass-word%2F%40%3A@one' } })
  assert.ok(byToken.config.bus.kind === 'nats' && byToken.config.bus.user === null, 'a name alone is a token')
  assert.equal(byToken.secrets.busPassword?.reveal(), 'pass-word/@:')
  assert.ok(!JSON.stringify(byToken.config).includes('pass-word'))
  const { bus } = load({ bus: 'tls://one?credentials=svc.creds' }).config
  assert.ok(bus.kind === 'nats' && bus.isEncrypted && bus.credentialsFile === '/nowhere/svc.creds')
  assert.match(refusal({ bus: 'nats://ann:pass-word@one' }), /^bus \(from --bus\) holds credentials.*ATELIER_BUS/)
  assert.match(refusal({ bus: 'nats://pass-word@one' }), /^bus \(from --bus\) holds credentials.*ATELIER_BUS/)
  const both = { ...SHARED, [ENV.bus]: 'nats://ann:pass-word@one?credentials=x' }
  assert.match(refusal({}, { env: both }), /names a file of credentials; keep one/)
  for (const wrong of [
    ...[
      'redis://x',
      'nats://',
      'nats://one,tls://two',
      'nats://one/path',
      'nats://one,nats://u:p@two',
      'nats://:p@one',
    ],
    ...['tls://one?tls=1', 'nats://one?sslrootcert=a', 'tls://one?sslcert=a', 'tls://one,tls://two?sslrootcert=a'],
  ])
    assert.match(refusal({ bus: wrong }), /^bus \(from --bus\) (is not|names|has)/, wrong)
})

test('files of certificates are named in the address of NATS servers, and must be readable', () => {
  const file = import.meta.filename
  const { bus } = load({ bus: `tls://one?sslrootcert=${file}&sslcert=${file}&sslkey=${file},tls://two` }).config
  assert.ok(bus.kind === 'nats' && bus.isEncrypted)
  assert.deepEqual(
    [bus.rootCertificateFile, bus.clientCertificateFiles, bus.servers],
    [file, { certificate: file, key: file }, ['one:4222', 'two:4222']],
  )
  assert.match(
    refusal({ bus: 'tls://one?sslrootcert=ca.pem' }),
    /sslrootcert "\/nowhere\/ca.pem", which cannot be read/,
  )
})

test('what is about several processes does not fit SQLite, nor dialling NATS', () => {
  const wrong = { bus: 'nats://one', internalPort: '8190', advertise: 'here' }
  for (const [name, value] of Object.entries(wrong))
    assert.match(refusal({ [name]: value }, { env: {} }), new RegExp(`^${name} .*SQLite serves one process`))
  assert.match(refusal({ bus: 'nats://one', advertise: 'here' }), /^advertise .*they do not; leave it out/)
})
