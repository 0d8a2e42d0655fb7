import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../lib/log.ts'
import { createFixedClock } from '../../../../test/support/fixed-clock.ts'
import { createProviderHealth, type ProviderHealth, toVerdict } from './provider-health.ts'

const NAME = 'acme/painter'

function openShared() {
  const clock = createFixedClock()
  let value: string | null = null
  const store = {
    readMeta: async () => value,
    changeMeta: async (_key: string, change: (text: string | null) => string) => {
      value = change(value)
      return value
    },
  }
  const open = () => createProviderHealth({ store, clock, log: silentLog })
  return { clock, open }
}

const fail = (health: ProviderHealth, times: number) => {
  for (let done = 0; done < times; done++) health.note(NAME, 'failed', 1)
}

test('five failures in a row pause a provider for half a minute, then one call tries and decides', async () => {
  const { clock, open } = openShared()
  const health = open()
  fail(health, 4)
  assert.equal(await health.enter(NAME), 0)
  fail(health, 1)
  assert.equal(await health.enter(NAME), 30_000)
  clock.advance(30_000)
  assert.equal(await health.enter(NAME), 0, 'the one that tries')
  assert.equal(await health.enter(NAME), 30_000, 'the others wait for what it finds')
  health.note(NAME, 'worked', 1)
  assert.equal(await health.enter(NAME), 0)
})

test('more than half of at least ten calls in a minute pause it, however they are mixed', async () => {
  const { open } = openShared()
  const health = open()
  for (let pair = 0; pair < 5; pair++) {
    health.note(NAME, 'worked', 1)
    fail(health, 1)
  }
  assert.equal(await health.enter(NAME), 0, 'half is not more than half')
  fail(health, 1)
  assert.ok((await health.enter(NAME)) > 0)
})

test('what one process has paused another leaves out, and of both only one call tries', async () => {
  const { clock, open } = openShared()
  const [one, other] = [open(), open()]
  fail(one, 5)
  await other.refresh()
  assert.equal(other.pausedMs(NAME), 30_000)
  clock.advance(30_000)
  const waits = [await one.enter(NAME), await other.enter(NAME)]
  assert.deepEqual(waits, [0, 30_000])
})

test('what says nothing about a provider pauses nobody', () => {
  const about = { message: '', upstreamStatus: 401, generation: 'none' as const }
  const refused = (refusal: object) => ({ outcome: 'refused', refusal: { ...about, ...refusal } }) as never
  assert.equal(toVerdict(refused({ reason: 'failed' }), false), 'failed')
  assert.equal(toVerdict(refused({ reason: 'failed' }), true), null, 'a wrong key of an account')
  assert.equal(toVerdict(refused({ reason: 'policy' }), false), 'worked')
  assert.equal(toVerdict(refused({ reason: 'unavailable', upstreamStatus: null }), false), null)
})
