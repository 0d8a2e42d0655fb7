import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readHost } from './addresses.ts'
import { originRefusal } from './gate.ts'

function ask(host: string, origin?: string, fetchSite?: string): boolean {
  return originRefusal({ host: readHost(host)!, origin, fetchSite }, (one) => one === 'https://ok.test') === null
}

test('programs, the own page and listed origins pass', () => {
  assert.ok(ask('localhost:1'))
  assert.ok(ask('localhost:1', 'http://localhost:1', 'same-origin'))
  assert.ok(ask('localhost', 'http://localhost:1'))
  assert.ok(ask('a.test', 'https://A.test'))
  assert.ok(ask('localhost:1', 'https://ok.test', 'cross-site'))
  assert.ok(ask('a.test:80', 'http://a.test'))
  assert.ok(ask('a.test:443', 'https://a.test'))
  assert.ok(ask('a.test', 'https://a.test:443', 'same-site'))
})

test('everything else that a browser sends is refused', () => {
  assert.ok(!ask('localhost:1', undefined, 'cross-site'))
  assert.ok(!ask('localhost:1', 'http://localhost:1', 'cross-site'))
  assert.ok(!ask('localhost:1', 'http://localhost:2'))
  assert.ok(!ask('localhost:1', 'http://localhost'))
  assert.ok(!ask('localhost:1', 'https://localhost'))
  assert.ok(!ask('a.test:443', 'http://a.test'))
  assert.ok(!ask('a.test', 'http://a.test:8080', 'same-site'))
  assert.ok(!ask('localhost:1', 'http://127.0.0.1:1'))
  assert.ok(!ask('localhost:1', 'null'))
  assert.ok(!ask('localhost:1', 'http://localhost:1/path'))
  assert.ok(!ask('a.test', 'https://b.test'))
})
