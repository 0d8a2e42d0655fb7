/** How every bus between processes behaves, beside what holds for all (event-bus.ts). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventBus, JobLive } from '../../../src/domain/events/event-bus.ts'
import type { LiveEvent } from '../../../src/domain/events/live-event.ts'
import { MAX_EVENT_TEXT_LENGTH } from '../../../src/domain/events/live-event-wire.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { CHANGED, hearAll, live, NODE, publishAll, textOf } from './bus-notices.ts'

export interface SharedBusOpener {
  /** Two processes' ends of one medium. */
  openPair(): Promise<readonly [EventBus<LiveEvent>, EventBus<LiveEvent>]>
  /** Resolves once whatever was published has had its chance to arrive, live notices apart. */
  settle(): Promise<void>
}

/** Of one job and of what everybody must know the order is kept; live notices come by a way of their own. */
function byWay(notices: readonly unknown[]): readonly (readonly unknown[])[] {
  const isAboutJob = (notice: unknown) => ['changed', 'live'].includes((notice as [string])[0])
  return [notices.filter(isAboutJob), notices.filter((notice) => !isAboutJob(notice))]
}

/**
 * Two processes with a bus between them. What is lost is not asked about here: nothing gets lost while all is well. Live notices
 * may need a link first, so the tests wait for the last of them.
 */
export function testSharedBus({ openPair, settle }: SharedBusOpener): void {
  test('what one process publishes reaches the other, each once and in order', async () => {
    const [one, other] = await openPair()
    const [own, foreign] = [hearAll(one), hearAll(other)]
    const published = publishAll(one)
    assert.deepEqual(own, published, 'at home at once')
    await waitUntil(() => foreign.length >= published.length)
    await settle()
    assert.deepEqual(own, published, 'and only once')
    assert.deepEqual(byWay(foreign).map(sorted), byWay(published).map(sorted))
  })

  test('what is about a watched job comes in the order in which it was told, moves included', async () => {
    const [one, other] = await openPair()
    const seen: string[] = []
    other.onLive({ accountId: 'account' }, (notice) => seen.push(textOf(notice)))
    other.onChanged(({ version, move }) => seen.push(`${move ?? 'version'} ${version}`))
    one.publishLive(live('first'))
    await waitUntil(() => seen.includes('first'))
    const told = ['first']
    for (let step = 0; step < 50; step++) {
      one.publishChanged({ ...CHANGED, version: step, ...(step % 10 === 0 && { move: 'returned' as const }) })
      one.publishLive(live(`after ${step}`))
      told.push(`${step % 10 === 0 ? 'returned' : 'version'} ${step}`, `after ${step}`)
    }
    await waitUntil(() => seen.includes('after 49'))
    await settle()
    // The medium may say a version once more, and sooner: it only means that there is something to look at. A move is heard once.
    const isMoveOrLive = (text: string) => !text.startsWith('version')
    assert.deepEqual(seen.filter(isMoveOrLive), told.filter(isMoveOrLive))
    for (const [at, text] of told.entries()) {
      const next = told.slice(at + 1).find(isMoveOrLive)
      const isInTime = seen.indexOf(text) !== -1 && (next === undefined || seen.indexOf(text) < seen.indexOf(next))
      assert.ok(isInTime, `${text} comes before ${next}: ${seen}`)
    }
  })

  test('a notice of another process says so, one of this process does not', async () => {
    const [one, other] = await openPair()
    const heard: unknown[] = []
    one.onChanged(({ isRemote }) => heard.push(['one', isRemote]))
    other.onChanged(({ isRemote }) => heard.push(['other', isRemote]))
    one.publishChanged(CHANGED)
    await settle()
    assert.deepEqual(heard, [
      ['one', undefined],
      ['other', true],
    ])
  })

  test('that a job is a little further is told to those who watch it, and to nobody else', async () => {
    const [one, other] = await openPair()
    const heard: string[] = []
    other.onChanged(({ jobId, version }) => heard.push(`${jobId} ${version}`))
    other.onLive({ jobId: 'job' }, (notice) => heard.push(textOf(notice)))
    one.publishChanged({ ...CHANGED, jobId: 'unwatched', isDetail: true })
    one.publishChanged({ ...CHANGED, isDetail: true })
    one.publishLive(live('then'))
    await waitUntil(() => heard.includes('then'))
    await settle()
    assert.deepEqual(heard, ['job 3', 'then'])
  })

  test('live notices reach listeners of their topic in the other process, but are published here only once', async () => {
    const [one, other] = await openPair()
    const heard: string[] = []
    other.onLive('published_here', (notice) => heard.push(`here ${textOf(notice)}`))
    other.onLive({ accountId: 'ada' }, (notice) => heard.push(`ada ${textOf(notice)}`))
    other.onLive({ jobId: 'one' }, (notice) => heard.push(`one ${textOf(notice)}`))
    one.publishLive(live('x', 'one', 'ada'))
    one.publishLive(live('y', 'two', 'bob'))
    one.publishLive(live('z', 'three', 'ada'))
    await waitUntil(() => heard.includes('ada z'))
    await waitUntil(() => heard.includes('one x'))
    assert.deepEqual(heard.toSorted(), ['ada x', 'ada z', 'one x'])
  })

  test('whoever comes late is shown how far a run is, and told that this is no news', async () => {
    const [one, other] = await openPair()
    const seen = (heard: string[]) => (notice: JobLive<LiveEvent>) =>
      void heard.push(`${notice.isPast === true ? 'past' : 'news'} ${textOf(notice)}`)
    const [early, late, later]: string[][] = [[], [], []]
    one.publishLive({ ...live(''), event: { type: 'started', nodesTotal: 2 } })
    one.publishLive(live('x'))
    // The age of a notice is told without its time on the way, so what is younger than that time counts as news: it must be older.
    await new Promise((resolve) => setTimeout(resolve, 2000))
    other.onLive({ jobId: 'job' }, seen(early))
    await waitUntil(() => early.length === 2)
    other.onLive({ accountId: 'account' }, seen(late))
    one.publishLive(live('y'))
    await waitUntil(() => late.length === 3)
    const stop = other.onLive({ jobId: 'job' }, seen(later))
    assert.deepEqual(later, ['past started', 'past x', 'past y'])
    stop()
    assert.deepEqual(
      [early, late],
      [
        ['past started', 'past x', 'news y'],
        ['past started', 'past x', 'news y'],
      ],
    )
  })

  test('whoever comes back is shown everything again, what happened meanwhile included', async () => {
    const [one, other] = await openPair()
    const [before, after]: string[][] = [[], []]
    const stop = other.onLive({ jobId: 'job' }, (notice) => before.push(textOf(notice)))
    one.publishLive(live('1'))
    await waitUntil(() => before.length === 1)
    stop()
    one.publishLive(live('2'))
    other.onLive({ accountId: 'account' }, (notice) => after.push(textOf(notice)))
    one.publishLive(live('3'))
    await waitUntil(() => after.length === 3)
    assert.deepEqual([before, after], [['1'], ['1', '2', '3']])
  })

  test('a picture arrives with its bytes, between what was told before and after it, however large', async () => {
    const [one, other] = await openPair()
    const heard: LiveEvent[] = []
    other.onLive({ jobId: 'job' }, ({ event }) => heard.push(event))
    for (const size of [256, 10 * 1024 * 1024]) {
      const bytes = Uint8Array.from({ length: size }, (_, at) => at % 251)
      const picture: LiveEvent = { type: 'preview', ...NODE, contentType: 'image/png', bytes, isResult: true }
      heard.length = 0
      for (const event of [live('before').event, picture, live('after').event])
        one.publishLive({ jobId: 'job', accountId: 'account', event })
      await waitUntil(() => heard.some((event) => event.type === 'node_text' && event.text === 'after'))
      assert.deepEqual(
        heard.map(({ type }) => type),
        ['node_text', 'preview', 'node_text'],
      )
      assert.ok(heard[1].type === 'preview' && Buffer.from(bytes).equals(heard[1].bytes))
    }
  })

  test('a listener that throws in one process disturbs neither process', async () => {
    const [one, other] = await openPair()
    const heard: string[] = []
    other.onWork(() => {
      throw new Error('a bad listener')
    })
    other.onWork((pool) => heard.push(`other ${pool}`))
    one.onWork((pool) => heard.push(`one ${pool}`))
    one.publishWork('a')
    one.publishWork('b')
    await settle()
    assert.deepEqual(heard, ['one a', 'one b', 'other a', 'other b'])
  })

  test('what cannot be told is heard at home and does not hold up what follows', async () => {
    const [one, other] = await openPair()
    const heard: string[] = []
    one.onLive({ jobId: 'job' }, (notice) => heard.push(`one ${textOf(notice).length}`))
    other.onLive({ jobId: 'job' }, (notice) => heard.push(`other ${textOf(notice).length}`))
    one.publishLive(live('x'.repeat(MAX_EVENT_TEXT_LENGTH)))
    one.publishLive(live('short'))
    await waitUntil(() => heard.includes('other 5'))
    assert.deepEqual(heard, [`one ${MAX_EVENT_TEXT_LENGTH}`, 'one 5', 'other 5'])
  })
}

/** A version may be said by both ways; who hears it twice reads no second time. */
function sorted(notices: readonly unknown[]): readonly string[] {
  return [...new Set(notices.map((notice) => JSON.stringify(notice)))].toSorted()
}
