import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readChildEnvironment } from './child-environment.ts'

test('a started process gets the environment without our settings and secrets', () => {
  const environment = { PATH: '/bin', CUDA_VISIBLE_DEVICES: '1', ATELIER_TOKEN: 'secret', ATELIER_PORT: '1' }
  assert.deepEqual(readChildEnvironment(environment), { PATH: '/bin', CUDA_VISIBLE_DEVICES: '1' })
})
