import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createContentSigner, toSigningKey } from '../../../src/domain/assets/signed-url.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'

const clock = createFixedClock()
const oldKey = { id: 'old', secret: new Uint8Array(32).fill(1) }
const newKey = { id: 'new', secret: new Uint8Array(32).fill(2) }
const assetId = '9f8a1c0d-0000-4000-8000-000000000001'
const otherId = '9f8a1c0d-0000-4000-8000-000000000002'
const grant = { accountId: 'team-a', assetId, expiresAt: new Date('2026-01-02T00:00:00.000Z') }
const signer = createContentSigner([newKey, oldKey], clock)

function split(url: string): [string, string] {
  const [path, query] = url.split('?')
  return [path.replace('/content/', ''), query]
}

/** How an address is refused; null when it is accepted. */
function refusalOf(id: string, query: string, by = signer): string | null {
  try {
    by.verify(id, query)
    return null
  } catch (error) {
    assert.ok(error instanceof ServiceError)
    return `${error.refusal}: ${error.message} ${JSON.stringify(error.details)}`
  }
}

test('an address gives back what was granted, and names its expiry as clients read it', () => {
  const url = signer.sign(grant)
  assert.match(url, /^\/content\/[0-9a-f-]{36}\?X-Goog-Date=20260101T000000Z&X-Goog-Expires=86400&/)
  assert.deepEqual(signer.verify(...split(url)), grant)
  assert.equal(signer.sign(grant), url, 'the same grant has the same address')
})

test('the newest key signs, every known key verifies, a retired one does not', () => {
  const before = createContentSigner([oldKey], clock).sign(grant)
  assert.match(signer.sign(grant), /&key=new&/)
  assert.deepEqual(signer.verify(...split(before)), grant)
  assert.notEqual(refusalOf(...split(before), createContentSigner([newKey], clock)), null)
  const renamed = createContentSigner([{ ...oldKey, id: 'new' }], clock)
  assert.notEqual(refusalOf(...split(before.replace('key=old', 'key=new')), renamed), null)
})

test('tampered, expired, truncated and replayed addresses are refused with one wording', () => {
  const [, query] = split(signer.sign(grant))
  const elsewhere = split(
    createContentSigner([{ id: 'new', secret: new Uint8Array(32).fill(9) }], clock).sign(grant),
  )[1]
  const expired = split(
    signer.sign({ ...grant, expiresAt: clock.now(), signedAt: new Date(clock.now().getTime() - 5000) }),
  )[1]
  const signature = query.indexOf('signature=') + 'signature='.length
  const wordings = new Set([
    refusalOf(otherId, query),
    refusalOf(assetId.toUpperCase(), query),
    refusalOf(assetId, ''),
    refusalOf(assetId, query.slice(0, -1)),
    refusalOf(assetId, `${query}A`),
    refusalOf(assetId, `${query}&x=1`),
    refusalOf(assetId, query.replace('86400', '86401')),
    refusalOf(assetId, query.replace('86400', '086400')),
    refusalOf(assetId, query.replace('20260101', '20260102')),
    refusalOf(assetId, query.replace('team-a', 'team-b')),
    refusalOf(assetId, query.replace('team-a', 'team%2Da')),
    refusalOf(assetId, query.replace('key=new', 'key=old')),
    refusalOf(assetId, query.replace('key=new', 'key=none')),
    refusalOf(assetId, query.split('&').reverse().join('&')),
    refusalOf(assetId, query.slice(0, signature) + query.slice(signature).toLowerCase()),
    refusalOf(assetId, elsewhere),
    refusalOf(assetId, expired),
  ])
  assert.deepEqual([...wordings], ['link_invalid: this address is not valid, or not any more; ask for a new one null'])
})

test('an address ends at its very second', () => {
  const [, query] = split(signer.sign(grant))
  const at = (text: string) => createContentSigner([newKey], createFixedClock(new Date(text)))
  assert.equal(refusalOf(assetId, query, at('2026-01-01T23:59:59.999Z')), null)
  assert.notEqual(refusalOf(assetId, query, at('2026-01-02T00:00:00.000Z')), null)
})

test('no change of a single character, and no account name, gets through', () => {
  const [, query] = split(signer.sign(grant))
  fc.assert(
    fc.property(fc.nat(query.length - 1), fc.constantFrom(...'0aZ_-%&='), (place, letter) => {
      fc.pre(query[place] !== letter)
      assert.notEqual(refusalOf(assetId, query.slice(0, place) + letter + query.slice(place + 1)), null)
    }),
    { numRuns: 300, seed: 7 },
  )
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 30 }), (accountId) => {
      fc.pre(accountId.isWellFormed())
      assert.equal(signer.verify(...split(signer.sign({ ...grant, accountId }))).accountId, accountId)
    }),
    { numRuns: 200, seed: 7 },
  )
})

test('a key without a name is called after its secret, which the name does not show', () => {
  const { id } = toSigningKey(oldKey.secret)
  assert.match(id, /^[A-Za-z0-9_-]{12}$/)
  assert.equal(toSigningKey(oldKey.secret).id, id)
  assert.notEqual(toSigningKey(newKey.secret).id, id)
})
