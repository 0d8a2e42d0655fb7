import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../lib/log.ts'
import { storageUnavailable } from '../../errors.ts'
import { storeResult } from './conclude-call.ts'

type Deps = Parameters<typeof storeResult>[0]
type Call = Parameters<typeof storeResult>[1]

test('a result that is paid for outlasts storage that is away for a moment', async () => {
  const body = Buffer.alloc(1024 * 1024, 1)
  let tries = 0
  const deps = {
    quota: { leftFor: async () => Number.POSITIVE_INFINITY },
    limits: { maxResultBytes: 10_000_000 },
    log: silentLog,
    async storeBlob(source: AsyncIterable<Uint8Array>) {
      tries++
      if (tries === 1) throw storageUnavailable(new Error('refused'))
      let sizeBytes = 0
      for await (const chunk of source) sizeBytes += chunk.length
      return { hash: 'h', sizeBytes }
    },
  } as unknown as Deps
  const call = { isKeyed: true, isQueued: false, live: { ref: { accountId: 'a', id: 'c' } } } as unknown as Call
  const stored = await storeResult(deps, call, { body, contentType: 'image/png' } as Parameters<typeof storeResult>[2])
  assert.deepEqual(stored, {
    contentType: 'image/png',
    body: { kind: 'blob', hash: 'h' },
    sizeBytes: body.length,
    isKept: true,
  })
  assert.equal(tries, 2)
})
