import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../../../domain/errors.ts'
import { readUploadFields } from './resumable-uploads.ts'

const encode = (values: Readonly<Record<string, string>>) =>
  Object.entries(values)
    .map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
    .join(',')

test('the names of our form and those that clients use by habit mean the same', () => {
  const plain = { expectedHash: null, tags: [], expiresInSeconds: null }
  const photo = { ...plain, filePath: 'ü.png', contentType: 'image/png' }
  assert.deepEqual(readUploadFields(encode({ filename: 'ü.png', filetype: 'image/png', other: 'x' })), photo)
  assert.deepEqual(readUploadFields(encode({ filename: 'ü.png' })), photo)
  const said = {
    file_path: 'input/a.bin',
    content_type: 'application/x-a',
    expected_hash: `blake3:${'a'.repeat(64)}`,
    tags: '["b","a"]',
    expires_in: '600',
  }
  assert.deepEqual(readUploadFields(encode(said)), {
    filePath: 'input/a.bin',
    contentType: 'application/x-a',
    expectedHash: 'a'.repeat(64),
    tags: ['b', 'a'],
    expiresInSeconds: 600,
  })
})

test('what is not of the form is refused and named', () => {
  for (const [metadata, problem] of [
    ['', /file_path is missing/],
    ['filename YQ==,filename Yg==', /twice/],
    ['filename not-base64!', /base64/],
    [`${encode({ filename: 'a' })},tags ${Buffer.from('a').toString('base64')}`, /JSON list/],
    [`${encode({ filename: 'a', expected_hash: 'x' })}`, /blake3/],
    [`${encode({ filename: 'a', expires_in: '-1' })}`, /whole number/],
  ] as const) {
    assert.throws(
      () => readUploadFields(metadata),
      (error: unknown) => error instanceof ServiceError && problem.test(error.message),
      metadata,
    )
  }
})
