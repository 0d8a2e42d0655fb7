import { test } from 'node:test'
import { killAndCheckWebhooks } from './webhook-kills.ts'

test('a kill between an event and its delivery loses nothing and keeps the order of each job', () =>
  killAndCheckWebhooks({ jobs: 28, lifeMs: 1500, kills: 2 }))
