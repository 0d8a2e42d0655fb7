import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { createWireBus } from '../../../src/adapters/bus/wire-bus.ts'
import { testEventBus, testSharedBus } from '../../contracts/event-bus.ts'
import { createLoopback, type Loopback } from '../../support/loopback-medium.ts'

let medium: Loopback = createLoopback()
const settle = () => medium.settle()
const join = () => createWireBus({ medium: medium.join(), log: silentLog })

testEventBus({
  open() {
    medium = createLoopback()
    return join()
  },
  settle,
})

testSharedBus({
  async openPair() {
    medium = createLoopback()
    return [join(), join()]
  },
  settle,
  carriesBytes: true,
})

test('an end that was cut off hears of the gap, and of nothing that was said meanwhile', async () => {
  const loopback = createLoopback()
  const end = loopback.join()
  const [one, other] = [
    createWireBus({ medium: loopback.join(), log: silentLog }),
    createWireBus({ medium: end, log: silentLog }),
  ]
  const heard: string[] = []
  other.onGap(() => heard.push('gap'))
  other.onWork((pool) => heard.push(String(pool)))
  end.cut()
  one.publishWork('lost')
  await loopback.settle()
  end.mend()
  one.publishWork('told')
  await loopback.settle()
  assert.deepEqual(heard, ['gap', 'told'])
})

test('a line that is not understood is passed over', async () => {
  const loopback = createLoopback()
  const raw = loopback.join()
  const bus = createWireBus({ medium: loopback.join(), log: silentLog })
  const heard: unknown[] = []
  bus.onWork((pool) => heard.push(pool))
  const anything = { kind: 'work', pool: undefined } as const
  raw.send({ line: 'z of a later version', bytes: null }, anything)
  raw.send({ line: 'w demo', bytes: null }, anything)
  await loopback.settle()
  assert.deepEqual(heard, ['demo'])
})
