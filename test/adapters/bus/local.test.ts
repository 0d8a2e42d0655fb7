import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { createLocalBus } from '../../../src/adapters/bus/local.ts'
import type { LiveEvent } from '../../../src/domain/events/live-event.ts'
import { testEventBus } from '../../contracts/bus/event-bus.ts'

// Delivery is part of publishing, so there is nothing to wait for.
testEventBus({ open: () => createLocalBus<LiveEvent>({ log: silentLog }), settle: async () => {} })

test('a listener that throws is logged with its topic, and the others hear the notice', () => {
  const faults: unknown[][] = []
  const log = { ...silentLog, error: (...line: unknown[]) => faults.push(line) }
  const bus = createLocalBus<LiveEvent>({ log })
  const fault = new Error('a bad listener')
  const heard: number[] = []
  bus.onChanged(({ version }) => heard.push(version))
  bus.onChanged(() => {
    throw fault
  })
  bus.onChanged(({ version }) => heard.push(version))
  bus.publishChanged({ jobId: 'job', accountId: 'account', version: 3 })
  assert.deepEqual(heard, [3, 3])
  assert.deepEqual(faults, [[{ err: fault, topic: 'changed' }, 'a listener of the bus failed']])
})
