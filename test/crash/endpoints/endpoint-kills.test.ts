import { describe, test } from 'node:test'
import { killAndCheckEndpoints } from './endpoint-kills.ts'

describe('calls during publishes, rollbacks and kills each run the version that they were answered with', {
  concurrency: true,
}, () => {
  test('on SQLite', () => killAndCheckEndpoints({ store: 'sqlite', calls: 60, moves: 8, kills: 2 }))
})
