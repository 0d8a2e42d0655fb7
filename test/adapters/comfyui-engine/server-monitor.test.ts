/** When what a server can run is read, and who may rely on the answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { DEFAULT_BOUNDS } from '../../../src/adapters/engines/comfyui/comfy-bounds.ts'
import { ServerMonitor } from '../../../src/adapters/engines/comfyui/health/server-monitor.ts'
import { LONG_MS } from '../../support/engines/comfy-test-bounds.ts'

/** A server whose answers to `/object_info` are given by hand. */
function openMonitored() {
  const asked: PromiseWithResolvers<string>[] = []
  let tellAsked = () => {}
  const monitor = new ServerMonitor({
    api: {
      systemStats: async () => null,
      features: async () => null,
      queueRemaining: async () => 0,
      objectInfo() {
        const answer = Promise.withResolvers<string>()
        asked.push(answer)
        tellAsked()
        return answer.promise
      },
    },
    bounds: { ...DEFAULT_BOUNDS, catalogMinMs: 0, catalogEveryMs: LONG_MS, probeEveryMs: LONG_MS, probeMaxMs: 5 },
    clock: systemClock,
    log: silentLog,
    isOurs: true,
    isBusy: () => false,
    onConnected: async () => {},
    onAnswer: async () => false,
    readWeights: async () => null,
    onChange: () => {},
  })
  return {
    monitor,
    /** The answer to the question with this number, from 0, once it is asked. */
    async question(number: number): Promise<PromiseWithResolvers<string>> {
      while (asked.length <= number) await new Promise<void>((resolve) => (tellAsked = resolve))
      return asked[number]
    },
    [Symbol.asyncDispose]: () => monitor.close(),
  }
}

const withClass = (name: string) => JSON.stringify({ [name]: { input: {}, output: [], output_name: [] } })

test('classes that are wanted anew while an answer is on its way are asked for again, and the wait ends with that answer', async () => {
  await using server = openMonitored()
  const first = await server.question(0)
  let isRead = false
  const reread = server.monitor.reread().then(() => {
    isRead = true
  })
  first.resolve(withClass('Old'))
  const second = await server.question(1)
  assert.deepEqual(server.monitor.state().catalog.classTypes(), ['Old'])
  assert.equal(isRead, false)
  second.resolve(withClass('New'))
  await reread
  assert.deepEqual(server.monitor.state().catalog.classTypes(), ['New'])
})

test('a question that failed is put again, and whoever waited for it is not kept waiting', async () => {
  await using server = openMonitored()
  const first = await server.question(0)
  first.resolve(withClass('Old'))
  const reread = server.monitor.reread()
  const second = await server.question(1)
  second.reject(new Error('cut off'))
  await reread
  assert.deepEqual(server.monitor.state().catalog.classTypes(), ['Old'])
  const third = await server.question(2)
  third.resolve(withClass('New'))
})

test('nobody waits for a server that is no longer asked', async () => {
  const server = openMonitored()
  await server.question(0)
  const reread = server.monitor.reread()
  const closed = server.monitor.close()
  await reread
  ;(await server.question(0)).reject(new Error('closed'))
  await closed
})
