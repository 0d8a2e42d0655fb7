import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { createWireBus } from '../../../src/adapters/bus/wire-bus.ts'
import { testEventBus } from '../../contracts/bus/event-bus.ts'
import { testSharedBus } from '../../contracts/bus/shared-bus.ts'
import { createLoopback, type Loopback } from '../../support/bus/loopback-medium.ts'

const loopbacks: Loopback[] = []
after(() => Promise.all(loopbacks.map((each) => each[Symbol.asyncDispose]())))

function openLoopback(): Loopback {
  const loopback = createLoopback()
  loopbacks.push(loopback)
  return loopback
}

function openBus(end: ReturnType<Loopback['join']>) {
  return createWireBus({ medium: end, links: end.links, log: silentLog })
}

testEventBus({ open: () => openBus(openLoopback().join()), settle: async () => {} })

testSharedBus({
  async openPair() {
    const loopback = openLoopback()
    return [openBus(loopback.join()), openBus(loopback.join())]
  },
  settle: async () => loopbacks.at(-1)?.settle(),
})

test('an end that was cut off hears of the gap, and of nothing that was said meanwhile', async () => {
  const loopback = openLoopback()
  const end = loopback.join()
  const [one, other] = [openBus(loopback.join()), openBus(end)]
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
  const loopback = openLoopback()
  const raw = loopback.join()
  const bus = openBus(loopback.join())
  const heard: unknown[] = []
  bus.onWork((pool) => heard.push(pool))
  const anything = { kind: 'work', pool: undefined } as const
  raw.send({ line: 'z of a later version', bytes: null }, anything)
  raw.send({ line: 'w demo', bytes: null }, anything)
  await loopback.settle()
  assert.deepEqual(heard, ['demo'])
})
