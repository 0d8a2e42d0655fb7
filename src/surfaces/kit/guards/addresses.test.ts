import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import {
  createDeploymentHosts,
  createHostGuard,
  createRouteDeployment,
  createTrustedProxies,
  deploymentAddressOf,
  isLoopbackName,
  readCallerAddress,
  readForwarded,
  readHost,
} from './addresses.ts'

test('a host names a deployment by exactly one label, with the staging label on either side', () => {
  const hosts = createDeploymentHosts('example.com')
  const named: [string, string | null][] = [
    ['demo.run.example.com', 'demo'],
    ['a-1.run.example.com', 'a-1'],
    ['demo.stg.run.example.com', 'demo'],
    ['demo.run.stg.example.com', 'demo'],
    ['run.example.com', null],
    ['.run.example.com', null],
    ['a.b.run.example.com', null],
    ['-a.run.example.com', null],
    ['demo.run.example.com.evil.test', null],
    ['demorun.example.com', null],
    ['demo.example.com', null],
    ['example.com', null],
  ]
  for (const [host, id] of named) assert.equal(hosts(host), id, host)
})

test('a prefix is taken off, the rest of the address stays as it was', () => {
  function routed(url: string, mountPrefix = ''): [string | undefined, string | null] {
    const request = { url } as IncomingMessage
    createRouteDeployment(mountPrefix)(request)
    return [request.url, deploymentAddressOf(request)?.prefix ?? null]
  }
  assert.deepEqual(routed('/deployment/demo/api/v2/jobs?a=/x'), ['/api/v2/jobs?a=/x', '/deployment/demo'])
  assert.deepEqual(routed('/base/deployment/demo/docs', '/base'), ['/base/docs', '/deployment/demo'])
  assert.deepEqual(routed('/deployment/a/deployment/b/x'), ['/deployment/b/x', '/deployment/a'])
  const untouched = [
    '/api/v2/jobs',
    '/deployment/',
    '/deployment/demo',
    '/deployment//x',
    '/deployment/De/x',
    '/deployment/a%2Fb/x',
    '/x/deployment/demo/y',
  ]
  for (const url of untouched) assert.deepEqual(routed(url), [url, null], url)
})

test('a host is split into name and port, and anything else is none', () => {
  assert.deepEqual(readHost('LocalHost:8189'), { name: 'localhost', port: '8189' })
  assert.deepEqual(readHost('[::1]'), { name: '[::1]', port: '' })
  for (const text of ['', ' ', 'a/b', 'a:b', 'a:1:2', 'user@a', '::1', 'a?b', `${'a'.repeat(254)}`]) {
    assert.equal(readHost(text), null, text)
  }
})

test('only real loopback names are loopback', () => {
  for (const name of ['localhost', '127.0.0.1', '127.255.0.3', '[::1]', '::1']) assert.ok(isLoopbackName(name), name)
  for (const name of ['', '0.0.0.0', '::', '127.0.0.1.evil.example', '127.evil.example', 'localhost.evil.example']) {
    assert.ok(!isLoopbackName(name), name)
  }
})

test('configured names count with or without a port, IPv6 with or without brackets', () => {
  const isAllowed = createHostGuard({
    bindHost: '127.0.0.1',
    hasToken: false,
    allowedHosts: ['A.test', 'b.test:80', '2001:db8::1'],
  })
  for (const name of ['a.test', 'b.test', '[2001:db8::1]', 'localhost']) assert.ok(isAllowed(name), name)
  for (const name of ['c.test', '10.0.0.1']) assert.ok(!isAllowed(name), name)
})

test('a star allows every name', () => {
  assert.ok(createHostGuard({ bindHost: '127.0.0.1', hasToken: false, allowedHosts: ['*'] })('x.test'))
})

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
