import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readBaseUrl, resolveLink } from './client.ts'
import { toErrorLines } from './job-answers.ts'

test('links are followed as the contract says', () => {
  const base = 'https://host:8443/deployment/x'
  assert.equal(resolveLink('https://other/api/v2/jobs/1', base), 'https://other/api/v2/jobs/1')
  assert.equal(resolveLink('/deployment/x/api/v2/jobs/1', base), 'https://host:8443/deployment/x/api/v2/jobs/1')
  assert.equal(resolveLink('/jobs/1', base), 'https://host:8443/deployment/x/api/v2/jobs/1')
  assert.equal(resolveLink('jobs/1', base), 'https://host:8443/deployment/x/api/v2/jobs/1')
})

test('a base address is http(s) without query', () => {
  assert.equal(readBaseUrl('http://127.0.0.1:8189/'), 'http://127.0.0.1:8189')
  assert.equal(readBaseUrl('https://h/p/'), 'https://h/p')
  for (const bad of ['', 'host', 'ftp://h', 'http://h#x=1']) {
    assert.throws(() => readBaseUrl(bad), /is not an http\(s\) address/, bad)
  }
  assert.throws(() => readBaseUrl('http://h?x=1'), /is not an http\(s\) address/)
})

test('a refusal lists every error of a node', () => {
  const body = {
    error: {
      code: 'invalid_workflow',
      message: 'two mistakes',
      details: {
        node_errors: {
          '3': [
            { field: 'seed', reason: 'missing_input' },
            { field: '', reason: 'bad', message: 'Not good' },
          ],
        },
      },
    },
  }
  assert.deepEqual(toErrorLines(body, 422), [
    'invalid_workflow: two mistakes',
    '  node 3, input seed: missing_input',
    '  node 3: Not good',
  ])
  assert.deepEqual(toErrorLines('nonsense', 502), ['http 502: the server gave no reason'])
  assert.deepEqual(
    toErrorLines({ error: { code: 'missing_asset', message: 'gone', details: { missing_ids: ['a', 'b'] } } }, 422),
    ['missing_asset: gone', '  missing: a, b'],
  )
})
