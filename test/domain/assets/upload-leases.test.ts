import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUploadLeases } from '../../../src/domain/assets/resumable/upload-leases.ts'
import type { ResumableUpload } from '../../../src/domain/assets/resumable/upload-store.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'

const UPLOAD: ResumableUpload = {
  ...{ id: 'upload', accountId: 'local', lengthBytes: 10, metadata: '', place: 'here', hash: null, assetId: null },
  fields: { filePath: 'a.bin', contentType: 'image/png', expectedHash: null, tags: [], expiresInSeconds: null },
  ...{ createdAt: new Date(0), expiresAt: new Date(1e12) },
}

test('of two requests that come in the same moment one writes, also where the store would let both in', async () => {
  const leases = createUploadLeases({
    store: { hold: async () => UPLOAD, renew: async () => true, release: async () => {} },
    newId: () => 'lease',
    clock: createFixedClock(),
    isAlone: true,
  })
  let writing = 0
  let most = 0
  const both = await Promise.allSettled(
    [1, 2].map(() =>
      leases.run('upload', async () => {
        writing += 1
        most = Math.max(most, writing)
        await new Promise((resolve) => setImmediate(resolve))
        writing -= 1
      }),
    ),
  )
  assert.equal(most, 1)
  assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  const refused = both.find((each) => each.status === 'rejected')
  assert.ok(refused?.reason instanceof ServiceError && refused.reason.refusal === 'upload_locked')
})
