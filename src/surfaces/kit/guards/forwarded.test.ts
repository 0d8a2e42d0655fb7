import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTrustedProxies, readCallerAddress, readForwarded } from './forwarded.ts'

test('only the listed networks are trusted, also in their IPv6 spelling', () => {
  const isTrusted = createTrustedProxies([
    { address: '10.0.0.0', prefixBits: 8, family: 'ipv4' },
    { address: '::1', prefixBits: 128, family: 'ipv6' },
  ])
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '::1']) assert.ok(isTrusted(address), address)
  for (const address of [undefined, '11.0.0.1', '::2', '::ffff:11.0.0.1', '127.0.0.1'])
    assert.ok(!isTrusted(address), address)
})

test('the first value of each header counts, and odd ones count as absent', () => {
  assert.deepEqual(
    readForwarded({
      'x-forwarded-proto': 'HTTPS, http',
      'x-forwarded-host': 'a.test:1, b.test',
      'x-forwarded-prefix': '/x/y/',
    }),
    { scheme: 'https', host: 'a.test:1', prefix: '/x/y' },
  )
  for (const prefix of ['x', '//evil.example', '/a b', '/a"', '/a?b', `/${'a'.repeat(300)}`]) {
    assert.equal(readForwarded({ 'x-forwarded-prefix': prefix }).prefix, '', prefix)
  }
  assert.deepEqual(readForwarded({ 'x-forwarded-proto': 'ftp', 'x-forwarded-host': 'a/b' }), {
    scheme: null,
    host: null,
    prefix: '',
  })
})

test('a caller is the last hop that is no proxy of ours, whatever it says before that', () => {
  const isTrusted = createTrustedProxies([{ address: '10.0.0.0', prefixBits: 8, family: 'ipv4' }])
  const rows: readonly [peer: string | undefined, header: string | undefined, caller: string][] = [
    ['11.0.0.1', '12.0.0.1', '11.0.0.1'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['::ffff:10.0.0.1', '1.1.1.1, 12.0.0.1', '12.0.0.1'],
    ['10.0.0.1', '1.1.1.1, 12.0.0.1, 10.0.0.2', '12.0.0.1'],
    ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['10.0.0.1', '12.0.0.1, unknown', '10.0.0.1'],
    ['10.0.0.1', '2001:db8::1', '2001:db8::1'],
    [undefined, '12.0.0.1', ''],
  ]
  for (const [peer, header, caller] of rows) assert.equal(readCallerAddress(peer, header, isTrusted), caller, header)
})
