/** Providers whose answers point into our own network, never end, or lie about their size: the whole service against them. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { isPublicAddress, type Network } from '../../../lib/outbound/network.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { RouterClient, refusedWith } from '../../support/clients/router-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { bflFake } from '../../support/providers/fake-providers/bfl.ts'
import { elevenlabsFake, openaiFake } from '../../support/providers/fake-providers/direct.ts'
import {
  type FakeCard,
  type FakeProvider,
  startFakeProvider,
} from '../../support/providers/fake-providers/fake-card.ts'
import { type HttpFake, startHttpFake } from '../../support/providers/http-fake.ts'

/** The one address of this machine that stands for the public internet; everything else of it is inside. */
const OUTSIDE = '127.0.0.3'
const TEN_GIB = String(10 * 2 ** 30)

/** Tasks whose poll address, or whose finished picture, is what the prompt says: `poll <url>` or `asset <url>`. */
const evilBfl: FakeCard = {
  ...bflFake,
  routes: [
    [
      'POST',
      /.*/,
      ({ request }) => {
        const prompt = String(request.json?.['prompt'])
        const id = Buffer.from(prompt).toString('base64url')
        return { json: prompt.startsWith('poll ') ? { id, polling_url: prompt.slice(5) } : { id } }
      },
    ],
    [
      'GET',
      /^\/get_result$/,
      ({ request }) => {
        const prompt = Buffer.from(request.query.get('id') ?? '', 'base64url').toString()
        return { json: { status: 'Ready', result: { sample: prompt.replace(/^asset /, '') } } }
      },
    ],
  ],
}

const stack = new AsyncDisposableStack()
const names = new Map<string, string[]>()
let client: RouterClient
let settings: Record<string, string> = {}
const patch = { router: { maxResultBytes: 2 ** 20 } }
let bfl: FakeProvider
let openai: HttpFake
let sound: HttpFake
let inside: HttpFake
let outsidePort = 0
let askedInside = 0
let answerDirect: Parameters<typeof startHttpFake>[0] = () => {}
const seenOutside: (string | undefined)[] = []

const network: Network = {
  allowsPlainHttp: true,
  mayConnect: (address) => address === OUTSIDE || isPublicAddress(address),
  // The first address of a name, then the next: what a rebinding server does.
  resolve: async (name) => {
    const answers = names.get(name) ?? ['203.0.113.1']
    const address = answers.length > 1 ? (answers.shift() as string) : answers[0]
    return [{ address, family: address.includes(':') ? 6 : 4 }]
  },
}

before(async () => {
  bfl = stack.use(await startFakeProvider(evilBfl))
  openai = stack.use(await startHttpFake((request, response) => answerDirect(request, response)))
  sound = stack.use(await startHttpFake((request, response) => answerDirect(request, response)))
  inside = stack.use(
    await startHttpFake((_request, response) => {
      askedInside++
      response.end('{"status":"Ready","result":{"sample":"https://x.example/secret"}}')
    }),
  )
  const outside = createServer((request, response) => {
    seenOutside.push(request.headers['x-key'] as string | undefined)
    response.writeHead(302, { location: decodeURIComponent(request.url?.slice(1) ?? '') }).end()
  })
  await new Promise<void>((resolve) => outside.listen(0, OUTSIDE, resolve))
  outsidePort = (outside.address() as AddressInfo).port
  stack.defer(() => {
    outside.closeAllConnections()
    return new Promise((resolve) => outside.close(() => resolve()))
  })
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'providers.json')
  const providers = {
    bfl: { key: bflFake.key, base_url: bfl.baseUrl },
    openai: { key: openaiFake.key, base_url: openai.url },
    elevenlabs: { key: elevenlabsFake.key, base_url: sound.url },
  }
  await writeFile(file, JSON.stringify(providers))
  settings = { providers: file, workers: '0' }
  const app = stack.use(
    await startTestApp({ settings, patch, overrides: { engine: createFakeEngine(), models: { network } } }),
  )
  client = new RouterClient(app.url)
})
after(() => stack.disposeAsync())
beforeEach(() => {
  askedInside = 0
  seenOutside.length = 0
  names.clear()
})

/** Every way to write an address of our own network, with the port at which something would answer. */
function insideAddresses(): string[] {
  const { port } = inside
  const hosts = ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '0177.0.0.1', '0.0.0.0', '[::1]', '[::]']
  const wrapped = ['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]']
  const others = ['10.0.0.1', '172.16.3.4', '192.168.0.1', '169.254.169.254', '100.64.0.1', '[fe80::1]', '[fd00::1]']
  return [...hosts, ...wrapped, ...others].map((host) => `http://${host}:${port}/v1/get_result?id=1`)
}
const INSIDE_RECORDS = ['127.0.0.1', '10.1.2.3', '169.254.169.254', '::1', '::ffff:127.0.0.1', 'fd00::1', 'fe80::1']

/** The call succeeds with the provider's own address in it, and nobody inside was asked. */
async function assetIsLeft(url: string): Promise<void> {
  const { status, json } = await client.run('bfl/flux-2-pro', { prompt: `asset ${url}` })
  assert.deepEqual([status, json.result.sample, askedInside], [200, url, 0], url)
}

/** Nothing is polled there: the task is lost, and the caller is told without a word of what lies inside. */
async function pollIsRefused(url: string): Promise<void> {
  const answer = refusedWith(await client.run('bfl/flux-2-pro', { prompt: `poll ${url}` }), 502, 'provider_error')
  assert.equal(answer.headers['x-service-upstream-status'], undefined, url)
  assert.doesNotMatch(answer.text, /secret|fake-bfl-key|get_result/, url)
  assert.equal(askedInside, 0, url)
}

describe('an address in an answer that leads into our own network is not followed', () => {
  test('written out', async () => {
    await Promise.all(insideAddresses().flatMap((url) => [assetIsLeft(url), pollIsRefused(url)]))
  })

  test('behind a name', async () => {
    const checks = INSIDE_RECORDS.flatMap((record, index) => {
      const host = `gateway-${index}.bfl.ai`
      names.set(host, [record])
      const url = `http://${host}:${inside.port}/v1/get_result?id=1`
      return [assetIsLeft(url), pollIsRefused(url)]
    })
    await Promise.all(checks)
  })

  test('behind a redirect, which sees no key when a picture is fetched', async () => {
    names.set('gateway.bfl.ai', [OUTSIDE])
    names.set('inner.bfl.ai', ['127.0.0.1'])
    const targets = [`http://127.0.0.1:${inside.port}/`, `http://inner.bfl.ai:${inside.port}/`, 'file:///etc/passwd']
    const urls = targets.map((target) => `http://gateway.bfl.ai:${outsidePort}/${encodeURIComponent(target)}`)
    await Promise.all(urls.map(assetIsLeft))
    assert.deepEqual(seenOutside, [undefined, undefined, undefined])
    await Promise.all(urls.map(pollIsRefused))
  })

  test('behind a name that changes its mind between two looks', async () => {
    const target = encodeURIComponent(`http://again.bfl.ai:${inside.port}/`)
    const url = (host: string) => `http://${host}:${outsidePort}/${target}`
    names.set('again.bfl.ai', ['127.0.0.1'])
    names.set('asset.bfl.ai', [OUTSIDE, '127.0.0.1'])
    names.set('poll.bfl.ai', [OUTSIDE, '127.0.0.1'])
    await Promise.all([assetIsLeft(url('asset.bfl.ai')), pollIsRefused(url('poll.bfl.ai'))])
    // The connection that was checked is gone; the next one would lead inside.
    await Promise.all([
      assetIsLeft(`http://asset.bfl.ai:${inside.port}/x`),
      pollIsRefused(`http://poll.bfl.ai:${inside.port}/x`),
    ])
  })

  test('and no scheme but http and https is known', async () => {
    const urls = [
      'file:///etc/passwd',
      'ftp://gateway.bfl.ai/x',
      'gopher://gateway.bfl.ai/',
      'http://u:p@gateway.bfl.ai/',
    ]
    await Promise.all(urls.flatMap((url) => [assetIsLeft(url), pollIsRefused(url)]))
  })
})

describe('an answer is cut at its limits', () => {
  const draw = () => client.run('openai/gpt-image-1', { prompt: 'x' })
  const speak = () => client.run('elevenlabs/eleven_v3', { inputs: [{ text: 'Hello', voice_id: 'v1' }] })

  test('a document that announces ten gibibytes, before its first byte', async () => {
    answerDirect = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': TEN_GIB }).flushHeaders()
    }
    refusedWith(await draw(), 502, 'provider_error')
  })

  test('bytes that announce ten gibibytes, and bytes that never end', async () => {
    for (const length of [{ 'content-length': TEN_GIB }, {}] as Record<string, string>[]) {
      const gone = Promise.withResolvers<void>()
      let written = 0
      answerDirect = (_request, response) => {
        response.writeHead(200, { 'content-type': 'audio/mpeg', ...length })
        response.on('close', gone.resolve)
        const chunk = Buffer.alloc(65_536, 1)
        const more = () => {
          while (!response.destroyed && response.write(chunk)) written += chunk.length
        }
        response.on('drain', more)
        more()
      }
      refusedWith(await speak(), 502, 'provider_error')
      await gone.promise
      assert.ok(written < 30_000_000, `${written}`)
    }
  })

  test('one that ends before the size it announced is no result, and neither is the rest of one that goes on after it', async () => {
    answerDirect = (_request, response) => {
      response.writeHead(200, { 'content-type': 'audio/mpeg', 'content-length': '1000' })
      response.write(Buffer.alloc(10, 1), () => response.destroy())
    }
    refusedWith(await speak(), 502, 'provider_error')
    answerDirect = (request) => {
      const head = 'HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 4\r\n\r\n'
      request.socket.end(`${head}ID3!and a gibibyte of something else`)
    }
    const answer = await speak()
    if (answer.status === 200) assert.equal(answer.text, 'ID3!')
    else refusedWith(answer, 502, 'provider_error')
  })

  test('one that drips: the caller waits until the deadline, and the provider is let go of soon after', async () => {
    const overrides = { engine: createFakeEngine(), models: { network } }
    await using hasty = await startTestApp({ settings: { ...settings, routerDeadline: '5s' }, patch, overrides })
    const caller = new RouterClient(hasty.url)
    const gone = Promise.withResolvers<void>()
    answerDirect = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const timer = setInterval(() => response.write(' '), 5)
      response.on('close', () => {
        clearInterval(timer)
        gone.resolve()
      })
    }
    const late = await caller.run('openai/gpt-image-1', { prompt: 'x' }, { key: 'k' })
    refusedWith(late, 504, 'deadline_exceeded')
    assert.equal(late.headers['retry-after'], undefined)
    await gone.promise
  })
})
