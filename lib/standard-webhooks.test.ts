import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSecretText, signMessage, toSecretText } from './standard-webhooks.ts'

// The example of the specification's own libraries.
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const MESSAGE = {
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  at: new Date(1_614_265_330_000),
  body: '{"test": 2432232314}',
}
const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='

function read(text: string): Uint8Array {
  const secret = readSecretText(text)
  assert.ok(secret)
  return secret
}

test('a message is signed as in the example of the specification', () => {
  assert.deepEqual(signMessage([read(SECRET)], MESSAGE), {
    'webhook-id': MESSAGE.id,
    'webhook-timestamp': '1614265330',
    'webhook-signature': SIGNATURE,
  })
})

test('each secret makes a signature of its own, in their order', () => {
  const other = new Uint8Array(32).fill(7)
  const { 'webhook-signature': both } = signMessage([other, read(SECRET)], MESSAGE)
  const { 'webhook-signature': first } = signMessage([other], MESSAGE)
  assert.equal(both, `${first} ${SIGNATURE}`)
})

test('secrets of 24 to 64 bytes are read, with and without their prefix, and nothing else', () => {
  for (const size of [24, 32, 64]) {
    const secret = new Uint8Array(size).fill(size)
    assert.deepEqual(new Uint8Array(read(toSecretText(secret))), secret)
    assert.deepEqual(new Uint8Array(read(toSecretText(secret).slice('whsec_'.length))), secret)
  }
  for (const size of [0, 23, 65]) assert.equal(readSecretText(toSecretText(new Uint8Array(size))), null)
  assert.equal(readSecretText('whsec_not base64 at all, whatever it is'), null)
})
