/** How every bus behaves. It may lose notices by contract; a bus within one process delivers at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventBus, JobLive } from '../../../src/domain/events/event-bus.ts'
import type { LiveEvent } from '../../../src/domain/events/live-event.ts'
import { CHANGED, hearAll, live, publishAll, textOf } from './bus-notices.ts'

export interface BusOpener {
  open(): EventBus<LiveEvent> | Promise<EventBus<LiveEvent>>
  /** Resolves once whatever was published has had its chance to arrive. */
  settle(): Promise<void>
}

export function testEventBus({ open, settle }: BusOpener): void {
  test('each kind of notice reaches the listeners of that kind only, as it was published', async () => {
    const bus = await open()
    const seen = hearAll(bus)
    const published = publishAll(bus)
    await settle()
    assert.deepEqual(seen, published)
  })

  test('a live notice reaches those who listen to its job, to its account or to this process, and nobody else', async () => {
    const bus = await open()
    const heard: string[] = []
    const note = (name: string) => (notice: JobLive<LiveEvent>) => void heard.push(`${name} ${textOf(notice)}`)
    bus.onLive({ jobId: 'one' }, note('job one'))
    bus.onLive({ accountId: 'ada' }, note('ada'))
    bus.onLive({ accountId: 'one' }, note('account one'))
    bus.onLive('published_here', note('here'))
    bus.publishLive(live('x', 'one', 'ada'))
    bus.publishLive(live('y', 'two', 'ada'))
    bus.publishLive(live('z', 'ada', 'bob'))
    await settle()
    assert.deepEqual(heard.toSorted(), ['ada x', 'ada y', 'here x', 'here y', 'here z', 'job one x'])
  })

  test('a live topic that nobody listens to any more can be listened to again', async () => {
    const bus = await open()
    const heard: string[] = []
    const stop = bus.onLive({ jobId: 'job' }, (notice) => heard.push(`first ${textOf(notice)}`))
    bus.publishLive(live('1'))
    await settle()
    stop()
    bus.onLive({ jobId: 'job' }, (notice) => heard.push(`second ${textOf(notice)}`))
    stop()
    bus.publishLive(live('2'))
    await settle()
    assert.deepEqual(heard, ['first 1', 'second 2'])
  })

  test('nobody waits for a slow listener, and one that fails later disturbs nobody', async () => {
    const bus = await open()
    const heard: number[] = []
    bus.onChanged(() => new Promise(() => {}))
    bus.onChanged(async () => {
      throw new Error('a bad listener')
    })
    bus.onChanged(({ version }) => heard.push(version))
    bus.publishChanged({ ...CHANGED, version: 1 })
    bus.publishChanged({ ...CHANGED, version: 2 })
    await settle()
    assert.deepEqual(heard, [1, 2])
  })

  test('every listener hears every notice, in the order of publishing', async () => {
    const bus = await open()
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
    const bus = await open()
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
    const bus = await open()
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
    const bus = await open()
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
