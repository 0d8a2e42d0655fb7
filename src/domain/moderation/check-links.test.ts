import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCheckLinks } from './check-links.ts'

const [OLD, NEW] = [1, 2].map((byte) => ({ id: `k${byte}`, secret: Buffer.alloc(32, byte) }))
const BYTES = { hash: 'a'.repeat(64), sizeBytes: 7, contentType: `image/${'x'.repeat(240)}` }

test('an address names its bytes until it expires, under every known key and no other', () => {
  let now = new Date('2026-01-01T00:00:00Z')
  const clock = { now: () => now }
  const query = createCheckLinks([OLD!], clock).sign(BYTES, 30_000).split('?')[1] as string
  const both = createCheckLinks([NEW!, OLD!], clock)
  assert.deepEqual(both.verify(query), { ...BYTES, expiresAt: new Date('2026-01-01T00:00:30Z') })
  assert.throws(() => createCheckLinks([NEW!], clock).verify(query), /not valid/)
  for (const other of ['', '.', `${query}x`, query.slice(1), `${query}&download=1`])
    assert.throws(() => both.verify(other), /not valid/)
  now = new Date('2026-01-01T00:00:30Z')
  assert.throws(() => both.verify(query), /not valid/)
})
