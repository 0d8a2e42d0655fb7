import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../../errors.ts'
import { checkSafetensors, HEADER_MAX_BYTES } from './safetensors-header.ts'

const TENSOR = { dtype: 'F32', shape: [2], data_offsets: [0, 8] }

function fileWith(header: unknown, claimedLength?: number | bigint): Buffer {
  const json = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(claimedLength ?? json.length))
  return Buffer.concat([length, json, Buffer.alloc(8)])
}

async function pass(bytes: Buffer, chunkBytes: number): Promise<Buffer> {
  async function* source() {
    const reused = Buffer.alloc(chunkBytes)
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      const length = bytes.copy(reused, 0, at, at + chunkBytes)
      yield reused.subarray(0, length)
    }
  }
  const passed: Buffer[] = []
  for await (const chunk of checkSafetensors(source())) passed.push(Buffer.from(chunk))
  return Buffer.concat(passed)
}

const refused = (error: unknown) => error instanceof ServiceError && error.refusal === 'invalid_field'

test('a header with tensors and metadata passes, byte for byte, in pieces of any size', async () => {
  for (const header of [
    { w: TENSOR },
    { __metadata__: { format: 'pt' }, w: TENSOR, s: { ...TENSOR, shape: [] } },
    {},
  ]) {
    const bytes = fileWith(header)
    for (const chunkBytes of [1, 7, 8, 9, 4096]) assert.ok(bytes.equals(await pass(bytes, chunkBytes)))
  }
})

const pickle = Buffer.from('80027d7100285804000000646174617101', 'hex')
const WRONG: Readonly<Record<string, Buffer>> = {
  'an empty file': Buffer.alloc(0),
  'a file of seven bytes': Buffer.alloc(7, 1),
  'a header that is cut off': fileWith({ w: TENSOR }, 10_000),
  'a header over the limit': fileWith({ w: TENSOR }, HEADER_MAX_BYTES + 1),
  'an absurd length': fileWith({ w: TENSOR }, 2n ** 63n),
  'a pickle': pickle,
  'a zip archive': Buffer.concat([Buffer.from('PK\u0003\u0004'), Buffer.alloc(100)]),
  garbage: fileWith('{not json at all}'),
  'a list': fileWith([TENSOR]),
  'a text': fileWith('"text"'),
  'metadata that is not an object': fileWith({ __metadata__: 'x' }),
  'an entry without dtype': fileWith({ w: { shape: [2], data_offsets: [0, 8] } }),
  'an entry without shape': fileWith({ w: { dtype: 'F32', data_offsets: [0, 8] } }),
  'an entry without data_offsets': fileWith({ w: { dtype: 'F32', shape: [2] } }),
  'an entry that is not an object': fileWith({ w: 1 }),
  'offsets that run backwards': fileWith({ w: { ...TENSOR, data_offsets: [8, 0] } }),
  'a negative size': fileWith({ w: { ...TENSOR, shape: [-1] } }),
}

for (const [name, bytes] of Object.entries(WRONG)) {
  test(`${name} is refused`, async () => {
    for (const chunkBytes of [1, 4096]) await assert.rejects(pass(bytes, chunkBytes), refused)
  })
}

test('a wrong beginning is refused before the claimed length has come', async () => {
  let pulled = 0
  async function* source() {
    yield fileWith('x', 50_000_000)
    for (;;) {
      pulled++
      yield Buffer.alloc(1000)
    }
  }
  await assert.rejects(async () => {
    for await (const _chunk of checkSafetensors(source()));
  }, refused)
  assert.equal(pulled, 0)
})
