import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCors, readCorsOrigin } from './cors.ts'

test('only exact http(s) origins can be listed', () => {
  assert.equal(readCorsOrigin('https://app.test:8443'), 'https://app.test:8443')
  for (const text of [
    '*',
    '',
    'app.test',
    'https://app.test/',
    'https://app.test/x',
    'https://a.test?x',
    'ftp://a.test',
    'null',
  ]) {
    assert.throws(() => readCorsOrigin(text), /must be exactly/, text)
  }
})

test('origins are compared as a whole', () => {
  const cors = createCors(['https://app.test'], [])
  assert.ok(cors.isAllowed('https://app.test'))
  for (const origin of ['http://app.test', 'https://app.test:444', 'https://app.test.evil', 'https://x.app.test']) {
    assert.ok(!cors.isAllowed(origin), origin)
  }
})
