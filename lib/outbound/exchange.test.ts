import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { test } from 'node:test'
import { startHttpFake } from '../../test/support/providers/http-fake.ts'
import { ExchangeError, type ExchangeRequest, openOutboundClient, type PhaseLimits, sendOnce } from './exchange.ts'

const LIMITS: PhaseLimits = {
  signal: new AbortController().signal,
  headTimeMs: 10_000,
  bodyTimeMs: 10_000,
  maxBytes: 1_000_000,
}

async function send(url: string, limits: Partial<PhaseLimits> = {}, request: Partial<ExchangeRequest> = {}) {
  await using client = openOutboundClient({ connectionsPerHost: 1 })
  const whole = { origin: url, path: '/', method: 'GET' as const, headers: {}, ...request }
  return await client.send(whole, { ...LIMITS, ...limits })
}

function isFault(fault: string, more: object = {}) {
  return (error: unknown) => {
    assert.ok(error instanceof ExchangeError)
    const { wasSent, status } = error
    assert.deepEqual({ fault: error.fault, wasSent, status }, { fault, wasSent: true, status: 200, ...more })
    return true
  }
}

test('an answer that announces ten gibibytes is aborted before its first byte', async () => {
  await using fake = await startHttpFake((_request, response) => {
    response.writeHead(200, { 'content-length': String(10 * 2 ** 30) })
    response.flushHeaders()
  })
  await assert.rejects(send(fake.url), isFault('too_large'))
})

test('an endless answer is aborted at its limit, and the connection is closed', async () => {
  let written = 0
  const closed = Promise.withResolvers<void>()
  await using fake = await startHttpFake((_request, response) => {
    const chunk = Buffer.alloc(65_536)
    const more = () => {
      while (!response.destroyed && response.write(chunk)) written += chunk.length
    }
    response.on('drain', more).on('close', closed.resolve)
    more()
  })
  await assert.rejects(send(fake.url), isFault('too_large'))
  await closed.promise
  // What the limit lets in, and what lay in the buffers of both ends.
  assert.ok(written < 20_000_000, `${written}`)
})

test('an answer that arrives too slowly is aborted at its time limit', async () => {
  await using fake = await startHttpFake((_request, response) => {
    const timer = setInterval(() => response.write('.'), 5)
    response.on('close', () => clearInterval(timer))
  })
  await assert.rejects(send(fake.url, { bodyTimeMs: 60 }), isFault('timeout'))
})

test('a server that never answers ends in a timeout', async () => {
  await using fake = await startHttpFake(() => {})
  // Whether anything was sent by then depends on how busy the machine is.
  const isTimeout = (error: unknown) => error instanceof ExchangeError && error.fault === 'timeout'
  await assert.rejects(send(fake.url, { headTimeMs: 50 }), isTimeout)
})

test('an abort signal stops the exchange at once', async () => {
  await using fake = await startHttpFake(() => {})
  const ending = new AbortController()
  const sending = send(fake.url, { signal: ending.signal })
  setImmediate(() => ending.abort())
  await assert.rejects(sending, (error) => error instanceof ExchangeError && error.fault === 'aborted')
  await assert.rejects(send(fake.url, { signal: ending.signal }), isFault('aborted', { wasSent: false, status: null }))
})

test('an error tells whether anything was sent: nothing over a refused connection, perhaps something over a broken one', async () => {
  const gone = await startHttpFake(() => {})
  await gone[Symbol.asyncDispose]()
  await assert.rejects(send(gone.url), isFault('unreachable', { wasSent: false, status: null }))
  await using fake = await startHttpFake((request) => void request.socket.destroy())
  await assert.rejects(send(fake.url, {}, { method: 'POST', body: 'x' }), isFault('broken', { status: null }))
})

test('a large answer is streamed as it arrives: the sender waits for the reader', async () => {
  let written = 0
  await using fake = await startHttpFake((_request, response) => {
    const chunk = Buffer.alloc(65_536)
    const more = () => {
      while (written < 50_000_000 && !response.destroyed && response.write(chunk)) written += chunk.length
    }
    response.on('drain', more)
    more()
  })
  await using client = openOutboundClient({ connectionsPerHost: 1 })
  const limits = { ...LIMITS, maxBytes: 2 ** 30, mayStream: () => true }
  const { body } = await client.send({ origin: fake.url, path: '/', method: 'GET', headers: {} }, limits)
  const stream = body as Readable
  for (let read = 0; read < 1_000_000; )
    read += ((await stream.iterator({ destroyOnReturn: false }).next()).value as Buffer).length
  // Buffers of the sockets may run ahead of the reader, the whole answer may not.
  assert.ok(written < 40_000_000, `${written}`)
  stream.destroy()
  await once(stream, 'close')
})

test('a stream that breaks off ends in an error, never like a complete one', async () => {
  await using fake = await startHttpFake((_request, response) => {
    response.writeHead(200, { 'content-length': '1000' })
    response.write('half')
    setImmediate(() => response.destroy())
  })
  await using client = openOutboundClient({ connectionsPerHost: 1 })
  const limits = { ...LIMITS, mayStream: () => true }
  const { body } = await client.send({ origin: fake.url, path: '/', method: 'GET', headers: {} }, limits)
  await assert.rejects(async () => {
    for await (const _chunk of body as Readable);
  }, ExchangeError)
})

test('a bound for the whole exchange counts from its start, through head and body', async () => {
  await using fake = await startHttpFake((_request, response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('.'), 5)
    response.on('close', () => clearInterval(timer))
  })
  await using client = openOutboundClient({ connectionsPerHost: 1 })
  const request = { origin: fake.url, path: '/', method: 'GET', headers: {} } as const
  await assert.rejects(client.send(request, { totalTimeMs: 3_000, maxBytes: 1_000_000 }), isFault('timeout'))
})

test('silence before the head and within the body ends a stream that has no other bound', async () => {
  let isHeadSent = false
  await using fake = await startHttpFake((_request, response) => {
    if (isHeadSent) response.write('half')
  })
  await using client = openOutboundClient({ connectionsPerHost: 1 })
  const request = { origin: fake.url, path: '/', method: 'GET', headers: {} } as const
  const limits = { silentHeadMs: 50, silentBodyMs: 50, maxBytes: Number.POSITIVE_INFINITY, mayStream: () => true }
  await assert.rejects(client.send(request, limits), isFault('timeout', { status: null }))
  isHeadSent = true
  const { body } = await client.send(request, { ...limits, silentHeadMs: 10_000 })
  await assert.rejects(async () => {
    for await (const _chunk of body as Readable);
  }, isFault('timeout'))
})

test('a call that is sent once follows no redirect, and may leave the body of its answer unread', async () => {
  let asked = 0
  await using fake = await startHttpFake((request, response) => {
    asked++
    if (request.url === '/moved') response.writeHead(302, { location: '/' }).end('moved')
    else response.writeHead(200).write('endless')
  })
  const limits = { totalTimeMs: 10_000, maxBytes: 100 }
  const get = { method: 'GET', headers: {} } as const
  const moved = await sendOnce({ ...get, url: `${fake.url}/moved`, wantsBody: true }, limits)
  assert.deepEqual([moved.status, moved.body.toString(), asked], [302, 'moved', 1])
  const endless = await sendOnce({ ...get, url: fake.url, wantsBody: false }, limits)
  assert.deepEqual([endless.status, endless.body.length], [200, 0])
  const withName = fake.url.replace('//', '//name:word@')
  await assert.rejects(sendOnce({ ...get, url: withName, wantsBody: true }, limits), /user name/)
})
