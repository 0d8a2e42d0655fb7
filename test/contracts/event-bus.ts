/** How every bus behaves. It may lose notices by contract; a bus within one process delivers at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventBus, JobChanged } from '../../src/domain/events/event-bus.ts'

export interface BusOpener {
  open(): EventBus<string>
  /** Resolves once whatever was published has had its chance to arrive. */
  settle(): Promise<void>
}

const CHANGED: JobChanged = { jobId: 'job', accountId: 'account', version: 3 }

export function testEventBus({ open, settle }: BusOpener): void {
  test('each kind of notice reaches the listeners of that kind only, as it was published', async () => {
    const bus = open()
    const seen: unknown[] = []
    bus.onChanged((notice) => seen.push(['changed', notice]))
    bus.onLive((notice) => seen.push(['live', notice]))
    bus.onWork((pool) => seen.push(['work', pool]))
    const live = { jobId: 'job', accountId: 'account', event: 'preview' }
    bus.publishChanged(CHANGED)
    bus.publishLive(live)
    bus.publishWork()
    bus.publishWork('demo')
    await settle()
    assert.deepEqual(seen, [
      ['changed', CHANGED],
      ['live', live],
      ['work', undefined],
      ['work', 'demo'],
    ])
  })

  test('every listener hears every notice, in the order of publishing', async () => {
    const bus = open()
    const heard: string[] = []
    bus.onChanged(({ version }) => heard.push(`a${version}`))
    bus.onChanged(({ version }) => heard.push(`b${version}`))
    bus.publishChanged({ ...CHANGED, version: 1 })
    bus.publishChanged({ ...CHANGED, version: 2 })
    await settle()
    assert.deepEqual(
      heard.filter((text) => text.startsWith('a')),
      ['a1', 'a2'],
    )
    assert.deepEqual(
      heard.filter((text) => text.startsWith('b')),
      ['b1', 'b2'],
    )
  })

  test('a listener that throws disturbs neither the other listeners nor the publisher', async () => {
    const bus = open()
    let heard = 0
    bus.onWork(() => {
      throw new Error('a bad listener')
    })
    bus.onWork(() => {
      heard += 1
    })
    assert.doesNotThrow(() => bus.publishWork())
    await settle()
    assert.equal(heard, 1)
  })

  test('a listener that unsubscribed hears nothing more; twice is harmless and ends no other subscription', async () => {
    const bus = open()
    let heard = 0
    const listener = () => {
      heard += 1
    }
    const stop = bus.onChanged(listener)
    bus.onChanged(listener)
    stop()
    stop()
    bus.publishChanged(CHANGED)
    await settle()
    assert.equal(heard, 1)
  })

  test('a listener may unsubscribe while it is called', async () => {
    const bus = open()
    const heard: string[] = []
    const stop = bus.onWork(() => {
      heard.push('once')
      stop()
    })
    bus.onWork(() => heard.push('always'))
    bus.publishWork()
    bus.publishWork()
    await settle()
    assert.deepEqual(heard, ['once', 'always', 'always'])
  })
}
