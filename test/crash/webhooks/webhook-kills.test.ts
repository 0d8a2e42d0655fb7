import { describe, test } from 'node:test'
import { killAndCheckWebhooks } from './webhook-kills.ts'

// What runs when the service is killed is taken up again when its leases have lapsed, so these tests mostly wait: side by side.
describe('a kill between an event and its delivery loses nothing and keeps the order of each job', {
  concurrency: true,
}, () => {
  test('on SQLite', () => killAndCheckWebhooks({ store: 'sqlite', jobs: 28, lifeMs: 1500, kills: 2 }))
  test('on Postgres', () =>
    killAndCheckWebhooks({ store: 'postgres', jobs: 8, lifeMs: 500, kills: 1, sparesJobs: true }))
})
