import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSealer } from '../../../lib/sealer.ts'
import { createWebhookSecrets } from './job-hooks.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const ROOTS = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]

const secrets = createWebhookSecrets(createSealer(Buffer.alloc(32, 9)), ROOTS)

function endpoint(options: { readonly previousUntil?: Date; readonly sealedFor?: string } = {}) {
  const [secret, previous] = [secrets.make(), secrets.make()]
  const sealedFor = options.sealedFor ?? 'e1'
  return {
    plain: { secret, previous },
    stored: {
      id: 'e1',
      accountId: 'a',
      secret: secrets.seal(secret, sealedFor),
      previousSecret: options.previousUntil === undefined ? null : secrets.seal(previous, sealedFor),
      previousUntil: options.previousUntil ?? null,
    },
  }
}

const texts = (list: readonly Uint8Array[]) => list.map((each) => Buffer.from(each).toString('hex'))

test('an endpoint signs with its secret, and with the former one until its time is over', () => {
  const alone = endpoint()
  assert.deepEqual(texts(secrets.of(alone.stored, NOW)), texts([alone.plain.secret]))
  const both = endpoint({ previousUntil: new Date(NOW.getTime() + 1) })
  assert.deepEqual(texts(secrets.of(both.stored, NOW)), texts([both.plain.secret, both.plain.previous]))
  const over = endpoint({ previousUntil: NOW })
  assert.deepEqual(texts(secrets.of(over.stored, NOW)), texts([over.plain.secret]))
})

test('a sealed secret that was copied from another endpoint does not open', () => {
  assert.deepEqual(secrets.of(endpoint({ sealedFor: 'e2' }).stored, NOW), [])
})

test('the common secret of an account follows from the keys of the service, and is its own', () => {
  const none = { id: 'e1', secret: null, previousSecret: null, previousUntil: null }
  const ofA = texts(secrets.of({ ...none, accountId: 'a' }, NOW))
  assert.equal(new Set([...ofA, ...texts(secrets.of({ ...none, accountId: 'b' }, NOW))]).size, 4)
  assert.equal(ofA[0], texts([secrets.common('a')])[0])
})
