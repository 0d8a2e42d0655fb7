import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadJobsContract } from './index.ts'

const spec = loadJobsContract({ needsCredentials: true })

test('every reference in the contract leads somewhere', () => {
  const references = [...JSON.stringify(spec.document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map((match) => match[1])
  assert.ok(references.length > 50)
  for (const reference of references) {
    const target = reference
      .split('/')
      .reduce<unknown>((at, name) => (at as Record<string, unknown>)?.[name], spec.document)
    assert.ok(target !== undefined, reference)
  }
})

test('operation ids are unique, and each operation documents success and failure with the request id', () => {
  const operations = Object.values(spec.document.paths).flatMap((item) => Object.values(item)) as {
    operationId: string
    responses: Record<string, { headers?: object; $ref?: string }>
  }[]
  const ids = operations.map((operation) => operation.operationId)
  assert.equal(new Set(ids).size, ids.length)
  for (const { operationId, responses } of operations) {
    assert.ok(
      Object.keys(responses).some((status) => status.startsWith('2')),
      operationId,
    )
    for (const [status, response] of Object.entries(responses)) {
      assert.ok(
        response.$ref !== undefined || 'X-Service-Request-Id' in (response.headers ?? {}),
        `${operationId} ${status}`,
      )
    }
  }
})

test('problems name the field and never the value', () => {
  assert.equal(spec.check('Priority', 5, 'priority'), null)
  assert.match(spec.check('Priority', true, 'priority') ?? '', /^priority must be integer/)
  const problem = spec.check('ExtraData', { api_key_comfy_org: { key: 'secret' } }, 'extra_data') ?? ''
  assert.match(problem, /^extra_data\.api_key_comfy_org must be string/)
  assert.doesNotMatch(problem, /secret/)
  assert.match(spec.check('ExtraData', { nope: 1 }, 'extra_data') ?? '', /not allowed: "nope"/)
})

test('a value that may have several forms is judged by the one that it comes close to', () => {
  const url = 'https://example.com/hooks'
  const problemOf = (webhook: unknown) => spec.check('JobWebhook', webhook, 'webhook')
  assert.equal(problemOf(url), null)
  assert.equal(problemOf(5), 'webhook must be string or object')
  assert.match(problemOf({}) ?? '', /^webhook must have required property 'url'/)
  assert.equal(problemOf({ url: 5 }), 'webhook.url must be string')
  assert.match(problemOf({ url, events: ['nope'] }) ?? '', /^webhook\.events\.0 must be one of job\.succeeded, /)
  assert.match(problemOf({ url, event: [] }) ?? '', /not allowed: "event"; allowed are url, events/)
  assert.match(problemOf(`https://${'a'.repeat(3000)}`) ?? '', /more than 2048/)
})

test('the methods of a path come from the contract', () => {
  assert.deepEqual(spec.methodsOf('/api/v2/jobs'), ['GET', 'HEAD', 'POST'])
  assert.deepEqual(spec.methodsOf('/api/v2/assets/x'), ['DELETE', 'GET', 'HEAD'])
  assert.deepEqual(spec.methodsOf('/api/v2/jobs/x/events'), ['GET'])
  assert.deepEqual(spec.methodsOf('/api/v2/openapi-json'), [])
})
