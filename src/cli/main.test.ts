import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { type Refusal, ServiceError } from '../domain/errors.ts'
import { explain } from './main.ts'
import type { Terminal } from './terminal.ts'

function explained(refusal: Refusal): string {
  const stderr = new PassThrough({ encoding: 'utf8' })
  assert.equal(explain(new ServiceError(refusal, 'it is so'), { stderr } as unknown as Terminal), 1)
  return String(stderr.read())
}

test('a full or absent storage ends a command in one line, and any other refusal is a defect that shows its stack', () => {
  for (const refusal of ['storage_full', 'store_unavailable'] as const)
    assert.equal(explained(refusal), 'atelier: it is so; atelier doctor says more\n')
  for (const refusal of ['not_found', 'invalid_field'] as const) {
    assert.match(explained(refusal), /^atelier: unexpected failure\n.*it is so\n +at /)
    assert.doesNotMatch(explained(refusal), /doctor/)
  }
})
