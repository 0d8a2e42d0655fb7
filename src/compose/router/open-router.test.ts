import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { createLoopback } from '../../../test/support/bus/loopback-medium.ts'
import { createWireBus } from '../../adapters/bus/wire-bus.ts'
import type { ReloadOutcome } from './open-models.ts'
import { shareReloads } from './open-router.ts'

test('a reload in one process is one reload in each; a catalogue with a fault is told to nobody', async () => {
  const medium = createLoopback()
  const reloads: string[] = []
  let outcome: ReloadOutcome = { outcome: 'reloaded', models: 1 }
  const open = (name: string) => {
    const end = medium.join()
    const bus = createWireBus({ medium: end, links: end.links, log: silentLog })
    const reload = async () => {
      reloads.push(name)
      return outcome
    }
    return shareReloads({ reload }, { bus, clock: systemClock, log: silentLog })
  }
  using one = open('one')
  using _other = open('other')
  assert.deepEqual(await one.reload(), outcome)
  await medium.settle()
  assert.deepEqual(reloads, ['one', 'other'])
  outcome = { outcome: 'refused', problems: [{ file: 'a.json', problem: 'is no JSON' }] }
  await one.reload()
  await medium.settle()
  assert.deepEqual(reloads, ['one', 'other', 'one'])
})
