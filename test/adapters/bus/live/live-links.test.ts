/** Links over real sockets when the way breaks, the reader is slow or the other side is gone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LiveLinks } from '../../../../src/adapters/bus/live/live-links.ts'
import type { JobMove } from '../../../../src/domain/events/event-bus.ts'
import type { LiveEvent } from '../../../../src/domain/events/live-event.ts'
import { openFaultyWire } from '../../../support/bus/faulty-wire.ts'
import { LinkNetwork } from '../../../support/bus/link-network.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const NODE = { nodeId: '1', classType: 'C', displayNodeId: '1', parentNodeId: null }
const TIMING = { pingEveryMs: 20, silentMs: 2_000, retryFirstMs: 5, retryMaxMs: 20 }
const TOPIC = 'a ada'

function tell(links: LiveLinks, event: LiveEvent, jobId = 'job'): void {
  links.publish({ kind: 'live', notice: { jobId, accountId: 'ada', event } })
}

function text(links: LiveLinks, words: string): void {
  tell(links, { type: 'node_text', ...NODE, text: words })
}

function move(links: LiveLinks, jobId: string, version: number, made: JobMove): void {
  links.publish({ kind: 'changed', notice: { jobId, accountId: 'ada', version, move: made } })
}

function hear(links: LiveLinks) {
  const heard: string[] = []
  const lost = { count: 0 }
  links.connect({
    onTold({ notice }) {
      if (!('event' in notice)) heard.push(`version ${notice.version}`)
      else if (notice.event.type === 'node_text') heard.push(notice.event.text)
      else if (notice.event.type === 'preview') heard.push(`${notice.event.bytes.byteLength} bytes`)
      else heard.push(notice.event.type)
    },
    onLost() {
      lost.count++
    },
  })
  return { heard, lost }
}

/** A source, and a reader that reaches it over a wire that can break. */
async function openPair(bounds = {}) {
  const network = new LinkNetwork()
  let port = 0
  const wire = await openFaultyWire(() => port)
  const source = await network.join('source', {
    timing: TIMING,
    bounds,
    through(own) {
      port = own
      return wire.port
    },
  })
  const reader = await network.join('reader', { timing: TIMING })
  return {
    ...{ network, wire, source, reader },
    ...hear(reader.links),
    async [Symbol.asyncDispose]() {
      await reader[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
      await wire[Symbol.asyncDispose]()
    },
  }
}

test('nobody watches: nobody is dialled and nothing is sent; a link that is no longer needed is kept for others', async () => {
  await using pair = await openPair()
  const { source, reader, wire, heard } = pair
  text(source.links, 'unheard')
  assert.deepEqual([wire.opened, source.links.stats().served], [0, 0])
  reader.links.watch('j other')
  await waitUntil(() => reader.links.hears('source', ['j other']))
  text(source.links, 'of another job')
  reader.links.watch('j job')
  await waitUntil(() => heard.length === 2)
  reader.links.unwatch('j job')
  await waitUntil(() => !reader.links.hears('source', ['j job']))
  assert.deepEqual([heard, wire.opened], [['unheard', 'of another job'], 1])
})

test('what a running job has told outlasts thousands of submits, and of jobs that end', async () => {
  await using pair = await openPair()
  const { source, reader, heard } = pair
  move(source.links, 'job', 1, 'taken')
  text(source.links, 'first')
  for (let index = 0; index < 3000; index++) move(source.links, `submitted-${index}`, 1, 'queued')
  for (let index = 0; index < 3000; index++) {
    move(source.links, `ended-${index}`, 2, 'taken')
    tell(source.links, { type: 'succeeded' }, `ended-${index}`)
  }
  text(source.links, 'last')
  reader.links.watch('j job')
  await waitUntil(() => heard.includes('last'))
  assert.deepEqual(heard, ['version 1', 'first', 'last'])
})

test('a way that is cut is opened again, and nothing that was told meanwhile is missing or comes twice', async () => {
  await using pair = await openPair()
  const { source, reader, wire, heard, lost } = pair
  reader.links.watch(TOPIC)
  text(source.links, '1')
  await waitUntil(() => heard.length === 1)
  wire.refuse(true)
  wire.cut()
  await waitUntil(() => lost.count === 1)
  assert.equal(reader.links.stats().broken, 1)
  for (const words of ['2', '3']) text(source.links, words)
  wire.refuse(false)
  await waitUntil(() => heard.length === 3)
  text(source.links, '4')
  await waitUntil(() => heard.length === 4)
  assert.deepEqual(heard, ['1', '2', '3', '4'])
  assert.deepEqual([reader.links.stats().open, reader.links.stats().broken], [1, 0])
})

test('a way that has gone silent is noticed by both sides, and replaced', async () => {
  await using pair = await openPair()
  const { source, reader, wire, heard, lost } = pair
  reader.links.watch(TOPIC)
  text(source.links, '1')
  await waitUntil(() => heard.length === 1)
  wire.silence()
  text(source.links, '2')
  await waitUntil(() => heard.length === 2)
  assert.deepEqual([heard, lost.count], [['1', '2'], 1])
  await waitUntil(
    () => source.links.stats().served === 1,
    () => JSON.stringify(source.links.stats()),
  )
})

test('a process that is gone is not dialled for ever, and its successor is found', async () => {
  await using pair = await openPair()
  const { network, reader, source, heard } = pair
  reader.links.watch(TOPIC)
  await waitUntil(() => reader.links.hears('source', [TOPIC]))
  await source[Symbol.asyncDispose]()
  await waitUntil(() => reader.links.stats().open === 0)
  await using next = await network.join('next', { timing: TIMING })
  // A notice of a process that is not known yet: it runs a job of the account that is watched.
  reader.links.noteHolder('job', 'next', TOPIC)
  text(next.links, 'of the successor')
  await waitUntil(() => heard.includes('of the successor'))
  assert.equal(reader.links.stats().broken, 0)
})

test('a reader that reads nothing loses previews and then its link; it comes back for what it lacks', async () => {
  await using pair = await openPair({ windowBytes: 2_000_000, maxWaitingBytes: 2_000_000, previewEveryMs: 0 })
  const { source, reader, wire, heard } = pair
  reader.links.watch(TOPIC)
  text(source.links, 'first')
  await waitUntil(() => heard.length === 1)
  wire.stopReading()
  const bytes = new Uint8Array(500_000)
  for (let index = 0; index < 60; index++)
    tell(source.links, { type: 'preview', ...NODE, contentType: 'image/png', bytes }, `job-${index % 6}`)
  await waitUntil(() => source.links.stats().previewsDropped > 0)
  for (let index = 0; index < 60; index++) text(source.links, 'x'.repeat(60_000))
  await waitUntil(() => source.links.stats().readersGivenUp > 0)
  text(source.links, 'last')
  wire.cut()
  wire.read()
  await waitUntil(() => heard.includes('last'))
})

test('a picture of ten megabytes arrives whole over a way that is cut in the middle', async () => {
  await using pair = await openPair()
  const { source, reader, wire, heard } = pair
  reader.links.watch(TOPIC)
  text(source.links, 'before')
  await waitUntil(() => heard.length === 1)
  wire.stopReading()
  const bytes = new Uint8Array(10_000_000)
  tell(source.links, { type: 'preview', ...NODE, contentType: 'image/png', bytes, isResult: true })
  text(source.links, 'after')
  wire.cut()
  wire.read()
  await waitUntil(() => heard.includes('after'))
  assert.deepEqual(heard, ['before', '10000000 bytes', 'after'])
})
