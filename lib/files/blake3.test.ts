import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Blake3, openBlake3 } from './blake3.ts'

// From the official test vectors: input bytes count 0, 1, 2 ... 250, 0, 1 ...
const VECTORS: ReadonlyArray<readonly [length: number, hex: string]> = [
  [0, 'af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262'],
  [1, '2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213'],
  [1024, '42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7'],
  [31_744, '62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47'],
]

const counting = (length: number) => Uint8Array.from({ length }, (_, index) => index % 251)
const withoutNative = () => Promise.reject(new Error('no binary for this machine'))

const implementations: ReadonlyArray<readonly [string, () => Promise<Blake3>]> = [
  ['native', () => openBlake3()],
  ['wasm', () => openBlake3({ loadNative: withoutNative })],
]

for (const [name, open] of implementations) {
  test(`${name}: the official vectors hold, whole and in pieces`, async () => {
    const blake3 = await open()
    assert.equal(blake3.implementation, name)
    for (const [length, hex] of VECTORS) {
      const input = counting(length)
      assert.equal(blake3.hash(input), hex)
      const hasher = blake3.createHasher()
      for (let at = 0; at < length; at += 1000) hasher.update(input.subarray(at, at + 1000))
      assert.equal(hasher.digest(), hex)
    }
  })

  test(`${name}: hashers that run at the same time do not disturb each other`, async () => {
    const blake3 = await open()
    const [one, two] = [blake3.createHasher(), blake3.createHasher()]
    for (let at = 0; at < 1024; at += 256) {
      one.update(counting(1024).subarray(at, at + 256))
      two.update(Uint8Array.of(at % 7))
    }
    assert.equal(one.digest(), VECTORS[2]?.[1])
    assert.equal(two.digest(), blake3.hash(Uint8Array.of(0, 256 % 7, 512 % 7, 768 % 7)))
  })
}
