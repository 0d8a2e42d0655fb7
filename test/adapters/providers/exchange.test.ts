import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { test } from 'node:test'
import { Agent } from 'undici'
import { ExchangeError, type ExchangeLimits, type ExchangeRequest, exchange } from '../../../lib/outbound/exchange.ts'
import { startHttpFake } from '../../support/http-fake.ts'

const LIMITS: ExchangeLimits = {
  signal: new AbortController().signal,
  headTimeMs: 10_000,
  bodyTimeMs: 10_000,
  maxBytes: 1_000_000,
}

async function send(url: string, limits: Partial<ExchangeLimits> = {}, request: Partial<ExchangeRequest> = {}) {
  const agent = new Agent()
  try {
    return await exchange(
      agent,
      { origin: url, path: '/', method: 'GET', headers: {}, ...request },
      { ...LIMITS, ...limits },
    )
  } finally {
    if (limits.mayStream === undefined) await agent.destroy()
  }
}

function isFault(fault: string, more: object = {}) {
  return (error: unknown) => {
    assert.ok(error instanceof ExchangeError)
    const { wasSent, status } = error
    assert.deepEqual({ fault: error.fault, wasSent, status }, { fault, wasSent: true, status: 200, ...more })
    return true
  }
}

test('an answer that announces ten gibibytes is cut before its first byte', async () => {
  await using fake = await startHttpFake((_request, response) => {
    response.writeHead(200, { 'content-length': String(10 * 2 ** 30) })
    response.flushHeaders()
  })
  await assert.rejects(send(fake.url), isFault('too_large'))
})

test('an endless answer is cut at its limit, and the sender is let go of', async () => {
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

test('an answer that drips is cut when its time is over', async () => {
  await using fake = await startHttpFake((_request, response) => {
    const timer = setInterval(() => response.write('.'), 5)
    response.on('close', () => clearInterval(timer))
  })
  await assert.rejects(send(fake.url, { bodyTimeMs: 60 }), isFault('timeout'))
})

test('a server that never answers is given up', async () => {
  await using fake = await startHttpFake(() => {})
  await assert.rejects(send(fake.url, { headTimeMs: 50 }), isFault('timeout', { status: null }))
})

test('an end from outside stops the exchange at once', async () => {
  await using fake = await startHttpFake(() => {})
  const ending = new AbortController()
  const sending = send(fake.url, { signal: ending.signal })
  setImmediate(() => ending.abort())
  await assert.rejects(sending, (error) => error instanceof ExchangeError && error.fault === 'aborted')
  await assert.rejects(send(fake.url, { signal: ending.signal }), isFault('aborted', { wasSent: false, status: null }))
})

test('whether a request had begun to leave is known: a refused connection has sent nothing, a broken one may have', async () => {
  const gone = await startHttpFake(() => {})
  await gone[Symbol.asyncDispose]()
  await assert.rejects(send(gone.url), isFault('unreachable', { wasSent: false, status: null }))
  await using fake = await startHttpFake((request) => void request.socket.destroy())
  await assert.rejects(send(fake.url, {}, { method: 'POST', body: 'x' }), isFault('broken', { status: null }))
})

test('a large answer is handed on as it comes: the sender waits for the reader', async () => {
  let written = 0
  await using fake = await startHttpFake((_request, response) => {
    const chunk = Buffer.alloc(65_536)
    const more = () => {
      while (written < 50_000_000 && !response.destroyed && response.write(chunk)) written += chunk.length
    }
    response.on('drain', more)
    more()
  })
  const agent = new Agent()
  const limits = { ...LIMITS, maxBytes: 2 ** 30, mayStream: () => true }
  const { body } = await exchange(agent, { origin: fake.url, path: '/', method: 'GET', headers: {} }, limits)
  const stream = body as Readable
  for (let read = 0; read < 1_000_000; )
    read += ((await stream.iterator({ destroyOnReturn: false }).next()).value as Buffer).length
  // Buffers of the sockets may run ahead of the reader, the whole answer may not.
  assert.ok(written < 40_000_000, `${written}`)
  stream.destroy()
  await once(stream, 'close')
  await agent.destroy()
})

test('a stream that breaks off ends in an error, never as if it were whole', async () => {
  await using fake = await startHttpFake((_request, response) => {
    response.writeHead(200, { 'content-length': '1000' })
    response.write('half')
    setImmediate(() => response.destroy())
  })
  const agent = new Agent()
  const limits = { ...LIMITS, mayStream: () => true }
  const { body } = await exchange(agent, { origin: fake.url, path: '/', method: 'GET', headers: {} }, limits)
  await assert.rejects(async () => {
    for await (const _chunk of body as Readable);
  }, ExchangeError)
  await agent.destroy()
})
