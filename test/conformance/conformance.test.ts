/**
 * The service does what its served documents say: requests that are generated from the documents are answered as these promise,
 * in every kind. `npm run test:contract` sends many more of them.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { call } from '../support/clients/call.ts'
import { runConformance } from './run.ts'
import { readServedDocument } from './served-document.ts'
import { KINDS, type ServiceUnderTest, startServiceUnderTest } from './service.ts'
import { streamFaults } from './streams.ts'

const OPTIONS = { requests: 300, seed: 20_261_115 }

const HEARD = [
  'jobs-v2 output',
  'jobs-v2 preview',
  'jobs-v2 progress',
  'jobs-v2 status',
  'legacy-v1 executed',
  'legacy-v1 executing',
  'legacy-v1 execution_cached',
  'legacy-v1 execution_error',
  'legacy-v1 execution_interrupted',
  'legacy-v1 execution_start',
  'legacy-v1 execution_success',
  'legacy-v1 feature_flags',
  'legacy-v1 progress',
  'legacy-v1 progress_state',
  'legacy-v1 status',
]

for (const kind of KINDS) {
  describe(kind, () => {
    let service: ServiceUnderTest
    before(async () => {
      service = await startServiceUnderTest(kind)
    })
    after(() => service[Symbol.asyncDispose]())

    test('events and socket messages have the declared shapes', async () => {
      const { faults, heard } = await streamFaults(service)
      assert.deepEqual(faults, [])
      assert.deepEqual([...heard].sort(), HEARD)
    })

    test('requests generated from the served documents are answered as these promise', async () => {
      const { findings, requests } = await runConformance(service, OPTIONS)
      assert.deepEqual(findings, [])
      assert.ok(requests > OPTIONS.requests)
    })
  })
}

test('the document of a model says whether it can be run without credentials', async () => {
  for (const [kind, isOpen] of [
    ['local', true],
    ['local with a token', false],
  ] as const) {
    await using service = await startServiceUnderTest(kind)
    const path = '/v2/models/fake/direct/openapi.json'
    const { json } = await call(service.url, path, { headers: service.surfaces[0].headers })
    assert.equal(readServedDocument(json).operations[0].isOpen, isOpen, kind)
  }
})
