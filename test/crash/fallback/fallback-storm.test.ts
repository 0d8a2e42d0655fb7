import { describe, test } from 'node:test'
import { storm } from './storm.ts'

describe('calls over three providers with every fault are made once, charged once, and told truly', () => {
  test('on SQLite, killed once', async () => void (await storm({ store: 'sqlite', calls: 80, kills: 1, seed: 7 })))
  test('in two processes on Postgres, killed once', async () =>
    void (await storm({ store: 'postgres', calls: 80, kills: 1, seed: 8 })))
  test('with one provider away from the start', async () =>
    void (await storm({ store: 'sqlite', calls: 60, kills: 0, seed: 9, isOneDown: true })))
})
