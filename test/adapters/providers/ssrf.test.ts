import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BlockedAddressError, isPublicAddress, matchesHost, type Network } from '../../../lib/outbound/network.ts'
import { openSafeFetcher, type SafeFetchOptions } from '../../../lib/outbound/safe-fetch.ts'
import { startHttpFake } from '../../support/providers/http-fake.ts'
import { createLoopbackNetwork } from '../../support/providers/loopback-network.ts'

const LIMITS: SafeFetchOptions = {
  signal: new AbortController().signal,
  headTimeMs: 600_000,
  bodyTimeMs: 600_000,
  maxBytes: 1_000_000,
  allowedHosts: null,
}

/** The real rule for addresses, with names that lead where the test says. */
function strictNetwork(names: Readonly<Record<string, string>>): Network {
  return { ...createLoopbackNetwork(names), mayConnect: isPublicAddress }
}

async function refusedBy(network: Network, url: string, options: Partial<SafeFetchOptions> = {}): Promise<void> {
  await using fetcher = openSafeFetcher(network)
  await assert.rejects(fetcher.fetch(url, { ...LIMITS, ...options }), BlockedAddressError, url)
}

const ADDRESSES = [
  'http://127.0.0.1:PORT/',
  'http://localhost:PORT/',
  'http://2130706433:PORT/',
  'http://0x7f.1:PORT/',
  'http://0177.0.0.1:PORT/',
  'http://127.1:PORT/',
  'http://0.0.0.0:PORT/',
  'http://10.0.0.1/',
  'http://172.16.3.4/',
  'http://192.168.0.1/',
  'http://169.254.169.254/latest/meta-data/',
  'http://100.64.0.1/',
  'http://224.0.0.1/',
  'http://[::1]:PORT/',
  'http://[::]:PORT/',
  'http://[::ffff:127.0.0.1]:PORT/',
  'http://[::ffff:7f00:1]:PORT/',
  'http://[64:ff9b::7f00:1]:PORT/',
  'http://[2002:7f00:1::]:PORT/',
  'http://[fe80::1]:PORT/',
  'http://[fd00::1]:PORT/',
]

test('an address of our own network is refused however it is written, and nothing is sent there', async () => {
  let asked = 0
  await using inside = await startHttpFake((_request, response) => {
    asked++
    response.end('secret')
  })
  for (const address of ADDRESSES) await refusedBy(strictNetwork({}), address.replace('PORT', String(inside.port)))
  assert.equal(asked, 0)
})

test('a name that leads to an address of our own network is refused', async () => {
  for (const address of [
    '127.0.0.1',
    '10.1.2.3',
    '169.254.169.254',
    '::1',
    '::ffff:10.0.0.1',
    'fd00::1',
    '64:ff9b::1',
  ]) {
    await refusedBy(strictNetwork({ 'innocent.example': address }), 'http://innocent.example/')
  }
})

test('a name is resolved once per connection and the connection goes to what was checked', async () => {
  let asked = 0
  await using inside = await startHttpFake((_request, response) => {
    asked++
    response.end('secret')
  })
  let lookups = 0
  const network: Network = {
    allowsPlainHttp: true,
    // Two addresses of the loopback stand for the outside and for ours.
    mayConnect: (address) => address === '127.0.0.2',
    // The outside when it is checked, ours when it is asked again: the attack that a check before the connection misses.
    resolve: async () => [{ address: lookups++ === 0 ? '127.0.0.2' : '127.0.0.1', family: 4 }],
  }
  await using fetcher = openSafeFetcher(network)
  const url = `http://rebind.example:${inside.port}/`
  await assert.rejects(fetcher.fetch(url, LIMITS), /cannot be reached/)
  assert.equal(lookups, 1)
  await assert.rejects(fetcher.fetch(url, LIMITS), BlockedAddressError)
  assert.equal(asked, 0)
})

test('of several addresses only the allowed ones are used', async () => {
  await using outside = await startHttpFake((_request, response) => void response.end('fine'))
  const network: Network = {
    allowsPlainHttp: true,
    mayConnect: (address) => address === '127.0.0.1',
    resolve: async () => [
      { address: '10.0.0.1', family: 4 },
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ],
  }
  await using fetcher = openSafeFetcher(network)
  const answer = await fetcher.fetch(`http://many.example:${outside.port}/`, LIMITS)
  assert.equal(String(answer.body), 'fine')
})

test('only https is spoken where plain http is not allowed, and no other scheme ever', async () => {
  const network = { ...createLoopbackNetwork(), allowsPlainHttp: false }
  await refusedBy(network, 'http://cdn.example/a.png')
  for (const url of [
    'file:///etc/passwd',
    'ftp://cdn.example/',
    'gopher://cdn.example/',
    'data:text/plain,x',
    'nonsense',
  ]) {
    await refusedBy(createLoopbackNetwork(), url)
  }
})

test('a user name in the address is refused', () =>
  refusedBy(createLoopbackNetwork(), 'http://user:word@cdn.example/a.png'))

test('a redirect is judged like a first address: scheme, host and resolved address', async () => {
  let inside = 0
  await using fake = await startHttpFake((request, response) => {
    if (request.headers.host?.startsWith('open.example')) {
      response.writeHead(302, { location: request.url?.slice(1) })
      return void response.end()
    }
    inside++
    response.end('secret')
  })
  const network: Network = {
    allowsPlainHttp: true,
    mayConnect: (address) => address === '127.0.0.1',
    resolve: async (name) => [{ address: name === 'open.example' ? '127.0.0.1' : '10.0.0.1', family: 4 }],
  }
  const targets = ['http://private.example/', 'http://10.0.0.9/', 'http://[::1]/', 'file:///etc/passwd']
  for (const target of targets) await refusedBy(network, `http://open.example:${fake.port}/${target}`)
  // Off the list, though public.
  await refusedBy(createLoopbackNetwork(), `http://open.example:${fake.port}/http://other.example:${fake.port}/`, {
    allowedHosts: ['open.example'],
  })
  assert.equal(inside, 0)
})

test('redirects are followed a few times and then refused', async () => {
  let hops = 0
  await using fake = await startHttpFake((request, response) => {
    const left = Number(request.url?.slice(1))
    hops++
    if (left === 0) return void response.end('arrived')
    response.writeHead(307, { location: `/${left - 1}` })
    response.end()
  })
  await using fetcher = openSafeFetcher(createLoopbackNetwork())
  assert.equal(String((await fetcher.fetch(`${fake.url}/3`, LIMITS)).body), 'arrived')
  hops = 0
  await assert.rejects(fetcher.fetch(`${fake.url}/9`, LIMITS), /redirects/)
  assert.equal(hops, 4)
})

test('what is sent along is decided for each hop: a key stays with its host', async () => {
  const seen: [string | undefined, string | undefined][] = []
  await using fake = await startHttpFake((request, response) => {
    seen.push([request.headers.host?.split(':')[0], request.headers['x-key'] as string | undefined])
    if (request.headers.host?.startsWith('api.')) {
      response.writeHead(302, { location: `http://cdn.example:${fake.port}/` })
    }
    response.end()
  })
  await using fetcher = openSafeFetcher(createLoopbackNetwork())
  const headersFor = (url: URL): Record<string, string> => (url.hostname === 'api.example' ? { 'x-key': 'k' } : {})
  await fetcher.fetch(`http://api.example:${fake.port}/`, { ...LIMITS, headersFor })
  assert.deepEqual(seen, [
    ['api.example', 'k'],
    ['cdn.example', undefined],
  ])
})

test('a listed domain admits itself and what lies below it, and no look-alike', () => {
  assert.equal(matchesHost('gateway.bfl.ai', ['.bfl.ai']), true)
  assert.equal(matchesHost('bfl.ai', ['.bfl.ai']), true)
  assert.equal(matchesHost('GATEWAY.BFL.AI.', ['.bfl.ai']), true)
  assert.equal(matchesHost('evilbfl.ai', ['.bfl.ai']), false)
  assert.equal(matchesHost('bfl.ai.evil.example', ['.bfl.ai']), false)
  assert.equal(matchesHost('x.api.bfl.ai', ['api.bfl.ai']), false)
})

test('the message of a refusal names the host and nothing else of the address', async () => {
  await using fetcher = openSafeFetcher(strictNetwork({}))
  await assert.rejects(fetcher.fetch('http://10.0.0.1/path?token=geheim', LIMITS), (error: Error) => {
    assert.match(error.message, /10\.0\.0\.1/)
    assert.doesNotMatch(error.message, /geheim|path/)
    return true
  })
})
