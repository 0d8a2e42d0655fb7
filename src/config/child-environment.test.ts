import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readChildEnvironment, readThreadEnvironment } from './child-environment.ts'

const ENVIRONMENT = {
  PATH: '/bin',
  LC_ALL: 'C',
  CUDA_VISIBLE_DEVICES: '1',
  HF_HOME: '/weights',
  HF_TOKEN: 'secret',
  ATELIER_TOKEN: 'secret',
  ATELIER_PORT: '1',
  AWS_SECRET_ACCESS_KEY: 'secret',
  DATABASE_URL: 'secret',
}

test('a launched engine gets what it needs for its card and its weights, and no secret', () => {
  assert.deepEqual(readChildEnvironment(ENVIRONMENT), {
    PATH: '/bin',
    LC_ALL: 'C',
    CUDA_VISIBLE_DEVICES: '1',
    HF_HOME: '/weights',
  })
})

test('threads of the engine and the programs they start get only the variables for finding programs and libraries', () => {
  assert.deepEqual(readThreadEnvironment({ ...ENVIRONMENT, NODE_COMPILE_CACHE: '/cache' }), {
    PATH: '/bin',
    LC_ALL: 'C',
    NODE_COMPILE_CACHE: '/cache',
  })
})
