import assert from 'node:assert/strict'
import { test } from 'node:test'
import fastify from 'fastify'
import { ServiceError } from '../../../domain/errors.ts'
import { answerSlowly } from './files.ts'

test('blanks come while work lasts, and then its answer, or the refusal in it', async () => {
  await using app = fastify()
  const [good, bad] = [Promise.withResolvers<object>(), Promise.withResolvers<object>()]
  app.get('/good', (_request, reply) => answerSlowly(reply, good.promise, { quietMs: 1 }))
  app.get('/bad', (_request, reply) => answerSlowly(reply, bad.promise, { quietMs: 1 }))
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  for (const [path, end] of [
    ['/good', () => good.resolve({ state: 'stored' })],
    ['/bad', () => bad.reject(new ServiceError('hash_mismatch', 'other bytes'))],
  ] as const) {
    const response = await fetch(`${url}${path}`)
    assert.equal(response.status, 200, 'it has begun before the work is over')
    end()
    const text = await response.text()
    assert.match(text, /^ +\{/)
    const failed = { state: 'failed', error: { type: 'hash_mismatch', message: 'other bytes' } }
    assert.deepEqual(JSON.parse(text), path === '/good' ? { state: 'stored' } : failed)
  }
})

test('work that is over soon is answered as usual', async () => {
  await using app = fastify()
  app.get('/', (_request, reply) => answerSlowly(reply, Promise.resolve({ state: 'stored' })))
  app.get('/bad', (_request, reply) => answerSlowly(reply, Promise.reject(new Error('broke'))))
  assert.equal((await app.inject('/')).body, '{"state":"stored"}')
  assert.equal((await app.inject('/bad')).statusCode, 500)
})
