import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openJoinedHealth } from './health.ts'

test('a joined worker lives from its start on, and is ready when its service takes it', async () => {
  let isReady = false
  await using health = await openJoinedHealth(
    { host: '127.0.0.1', port: 0 },
    {
      isReady: () => isReady,
      metrics: () => (isReady ? { contentType: 'text/plain', render: async () => 'x 1' } : null),
    },
  )
  const ask = async (path: string, method = 'GET') => (await fetch(`${health.url}${path}`, { method })).status
  assert.deepEqual([await ask('/healthz'), await ask('/readyz'), await ask('/metrics')], [200, 503, 503])
  isReady = true
  assert.deepEqual([await ask('/readyz'), await ask('/readyz', 'HEAD')], [200, 200])
  assert.deepEqual([await ask('/'), await ask('/metrics'), await ask('/healthz', 'POST')], [404, 200, 405])
})
