import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app/start-app.ts'
import { createFakeEngine } from '../support/engines/fake-engine.ts'

test('the overview of the local kind names its workers', async () => {
  await using app = await startTestApp({ settings: { workers: '3' }, overrides: { engine: createFakeEngine() } })
  const overview = (await (await fetch(`${app.url}/admin/v1/overview`)).json()) as {
    readonly pools: readonly { readonly pool: string; readonly workers: number }[]
  }
  assert.deepEqual(
    overview.pools.map(({ pool, workers }) => [pool, workers]),
    [['default', 3]],
  )
})
