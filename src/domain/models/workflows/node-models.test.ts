import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findImages } from './node-models.ts'

const MIB = 2 ** 20

test('pictures on our own storage are taken until an answer has its share of memory; the rest stay addresses', async () => {
  const sizeBytes = 100 * MIB
  const asked: number[] = []
  const hosted = async (_url: string, maxBytes: number) => {
    asked.push(maxBytes)
    return sizeBytes > maxBytes ? null : ({ byteLength: sizeBytes } as Buffer)
  }
  const readBody = Object.assign(async () => Buffer.alloc(0), { hosted })
  const output = Array.from({ length: 64 }, () => 'http://ours.example/same-large-file')
  assert.equal((await findImages(output, readBody)).length, 2)
  assert.ok(asked.every((maxBytes) => maxBytes <= 256 * MIB))
  assert.equal(asked.at(-1), 56 * MIB)
})
