import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHostGuard, isLoopbackName, readHost } from './host-guard.ts'

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
