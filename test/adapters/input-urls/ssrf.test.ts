/** Which addresses of callers are fetched: an own network is never reached by one, however it is written or led to. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isPublicAddress, type Network } from '../../../lib/outbound/network.ts'
import { startTlsFake, trustTlsFakes } from '../../support/network/tls-fake.ts'
import { startHttpFake } from '../../support/providers/http-fake.ts'
import { openFetchRig, pngHead } from './input-rig.ts'

let trust: Disposable
before(() => {
  trust = trustTlsFakes()
})
after(() => trust[Symbol.dispose]())

const PNG = pngHead(8, 8)

/** Every way to write an address that is not of the public internet. */
const INNER_HOSTS: Readonly<Record<string, readonly string[]>> = {
  'IPv4 in its usual form': [
    '127.0.0.1',
    '10.0.0.1',
    '172.16.3.4',
    '192.168.0.1',
    '0.0.0.0',
    '100.64.0.1',
    '224.0.0.1',
    '255.255.255.255',
  ],
  'IPv4 as one number': ['2130706433', '0x7f000001', '017700000001', '3232235521'],
  'IPv4 in octal, hex and short forms': [
    '0177.0.0.1',
    '0x7f.0.0.1',
    '127.1',
    '127.0.1',
    '0x7f.1',
    '0300.0250.0.1',
    '１２７.0.0.1',
    '127。0。0。1',
  ],
  'IPv6 loopback and unspecified': ['[::1]', '[0:0:0:0:0:0:0:1]', '[::]'],
  'IPv4 mapped into IPv6': [
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::ffff:a9fe:a9fe]',
    '[::127.0.0.1]',
    '[::ffff:0:127.0.0.1]',
  ],
  NAT64: ['[64:ff9b::7f00:1]', '[64:ff9b::169.254.169.254]', '[64:ff9b:1::1]'],
  '6to4 and Teredo': ['[2002:7f00:1::]', '[2002:a9fe:a9fe::]', '[2001:0:4136:e378:8000:63bf:3fff:fdd2]'],
  'link-local and unique local': ['[fe80::1]', '[febf::1]', '[fd00::1]', '[fc00::1]', '[fec0::1]', '[ff02::1]'],
  'metadata of clouds': [
    '169.254.169.254',
    '168.63.129.16',
    '100.100.100.200',
    '[fd00:ec2::254]',
    '192.0.0.192',
    '2852039166',
  ],
  'names of this machine': ['localhost', 'localhost.', 'LOCALHOST', 'a.localhost', 'files.example.'],
}

const MALFORMED = [
  'https://[fe80::1%25eth0]/',
  'https://[fe80::1%eth0]/',
  'https://user@files.example/a.png',
  'https://user:word@files.example/a.png',
  'https://:word@files.example/a.png',
  'https://files.example:8443/a.png',
  'https://files.example:22/',
  'http://files.example/a.png',
  'HTTP://files.example/a.png',
  'ftp://files.example/a.png',
  'file:///etc/passwd',
  'gopher://files.example/',
  's3://bucket/a.png',
  'ws://files.example/',
  'https://',
  'https:///',
  'https://files.example/a b.png',
  'https://files.example/\nHost: inside',
  ' https://files.example/',
  `https://files.example/${'a'.repeat(9000)}`,
]

test('an address of our own network is refused however it is written', async (t) => {
  await using rig = openFetchRig()
  for (const [what, hosts] of Object.entries(INNER_HOSTS)) {
    await t.test(what, async () => {
      for (const host of hosts) {
        const outcome = await rig.take(`https://${host}/a.png`)
        assert.match(outcome, /^fetch_forbidden: /, host)
        if (/[a-z]/i.test(host[0])) assert.doesNotMatch(outcome, /127/, 'what a name was resolved to is not told')
      }
    })
  }
  assert.equal(rig.ticker.count(), 0, 'no clock runs on')
})

test('schemes, ports, user names and malformed addresses are refused before anything is looked up', async () => {
  let lookups = 0
  const resolve = async () => {
    lookups++
    return []
  }
  await using rig = openFetchRig({ network: { resolve } })
  for (const url of MALFORMED) assert.match(await rig.take(url), /^fetch_forbidden: /, url)
  assert.equal(lookups, 0)
})

test('a name that leads inside and a name that leads nowhere are answered alike', async () => {
  const answers: Record<string, () => Promise<never[] | { address: string; family: number }[]>> = {
    'inside.example': async () => [{ address: '10.0.0.7', family: 4 }],
    'nowhere.example': () => Promise.reject(new Error('ENOTFOUND nowhere.example')),
    'empty.example': async () => [],
    'mapped.example': async () => [{ address: '::ffff:10.0.0.7', family: 6 }],
  }
  await using rig = openFetchRig({ network: { resolve: (name) => answers[name]() } })
  const told = new Set<string>()
  for (const name of Object.keys(answers)) told.add((await rig.take(`https://${name}/`)).replace(name, 'NAME'))
  assert.deepEqual([...told], ['fetch_forbidden: the address at NAME is refused: its name leads to no public address'])
})

/** Two addresses of the loopback stand for the outside and for ours. */
const OUTSIDE = '127.0.0.1'
const INSIDE = '127.0.0.2'
const outsideOnly: Partial<Network> = {
  mayConnect: (address) => address === OUTSIDE || isPublicAddress(address),
  resolve: async () => [{ address: OUTSIDE, family: 4 }],
}

test('a redirect to any of them is refused as well, and the file behind a good redirect is taken', async () => {
  await using server = await startTlsFake((request, response) => {
    const target = decodeURIComponent(request.url?.slice(1) ?? '')
    if (target === '') return void response.end(PNG)
    response.writeHead(302, { location: target }).end()
  })
  await using rig = openFetchRig({ network: outsideOnly, ports: [server.port] })
  const from = (target: string) => rig.take(`https://a.files.example:${server.port}/${encodeURIComponent(target)}`)
  const targets = [
    ...Object.values(INNER_HOSTS)
      .flat()
      .filter((host) => !/^(127|２|2130|0177|0x7f|017700|１|files|localhost|LOCAL|a\.local)/.test(host))
      .map((host) => `https://${host}/`),
    `https://127.0.0.2:${server.port}/`,
    `https://[::1]:${server.port}/`,
    `http://a.files.example:${server.port}/`,
    `//10.0.0.1/`,
    'https://user@b.files.example/',
    'https://b.files.example:8443/',
    'file:///etc/passwd',
    'data:image/png;base64,AAAA',
  ]
  for (const target of targets) assert.match(await from(target), /^fetch_forbidden: /, target)
  assert.equal(await from(`https://b.files.example:${server.port}/`), 'taken')
  assert.equal(await from('/'), 'taken')
})

test('redirects end after three, and never lead from https to http, not even to a listed host', async () => {
  let asked = 0
  await using plain = await startHttpFake((_request, response) => {
    asked++
    response.end(PNG)
  })
  await using server = await startTlsFake((request, response) => {
    const left = Number(request.url?.slice(1))
    const location = left > 0 ? `/${left - 1}` : `http://127.0.0.1:${plain.port}/`
    if (left === 100) return void response.end(PNG)
    response.writeHead(307, { location: left === 50 ? '/100' : location }).end()
  })
  await using rig = openFetchRig({
    policy: { origins: [`http://127.0.0.1:${plain.port}`] },
    network: outsideOnly,
    ports: [server.port],
  })
  const base = `https://files.example:${server.port}`
  assert.match(await rig.take(`${base}/9`), /more than 3 redirects/)
  assert.match(await rig.take(`${base}/0`), /^fetch_forbidden: .*from https to http/)
  assert.equal(asked, 0)
  assert.equal(await rig.take(`${base}/50`), 'taken')
  assert.equal(await rig.take(`http://127.0.0.1:${plain.port}/`), 'taken', 'asked for itself it is fetched')
})

test('a name is looked up once, and the connection goes to what was checked', async () => {
  let asked = 0
  await using server = await startTlsFake((_request, response) => {
    asked++
    response.end(PNG)
  })
  let lookups = 0
  const resolve = async () => [{ address: lookups++ === 0 ? INSIDE : OUTSIDE, family: 4 }]
  const rebinding = { mayConnect: (address: string) => address === INSIDE, resolve }
  await using rig = openFetchRig({ network: rebinding, ports: [server.port] })
  // Allowed when it was looked up, and nobody listens there; the second answer would lead to the server.
  assert.match(await rig.take(`https://files.example:${server.port}/`), /^fetch_failed: .*cannot be reached/)
  assert.equal(lookups, 1)
  assert.match(await rig.take(`https://files.example:${server.port}/`), /^fetch_forbidden: /)
  assert.equal(asked, 0)
})

test('of a name with a public and a private address only the public one is used', async () => {
  await using server = await startTlsFake((_request, response) => void response.end(PNG))
  const addresses = ['10.0.0.1', '169.254.169.254', '::1', OUTSIDE].map((address) => ({
    address,
    family: address.includes(':') ? 6 : 4,
  }))
  const seen: string[] = []
  const mayConnect = (address: string) => {
    seen.push(address)
    return address === OUTSIDE
  }
  await using rig = openFetchRig({
    network: { mayConnect, resolve: async () => addresses },
    ports: [server.port],
  })
  assert.equal(await rig.take(`https://files.example:${server.port}/`), 'taken')
  assert.deepEqual(seen, ['10.0.0.1', '169.254.169.254', '::1', OUTSIDE])
})

test('the certificate of a server must be its own', async () => {
  await using server = await startTlsFake((_request, response) => void response.end(PNG))
  await using rig = openFetchRig({ network: outsideOnly, ports: [server.port] })
  assert.match(await rig.take(`https://stranger.example:${server.port}/`), /^fetch_failed: /)
})

test('this service itself is refused by its names, its addresses and its ports', async () => {
  await using server = await startTlsFake((_request, response) => void response.end(PNG))
  const own = `https://files.example:${server.port}`
  await using named = openFetchRig({ network: outsideOnly, ports: [server.port], ownHosts: ['.files.example'] })
  for (const host of ['files.example', 'a.files.example', 'FILES.example.'])
    assert.match(await named.take(`https://${host}:${server.port}/`), /^fetch_forbidden: .*itself/)
  await using here = openFetchRig({ network: outsideOnly, ports: [server.port], ownPorts: [server.port] })
  assert.match(await here.take(`${own}/`), /^fetch_forbidden: /)
  await using listed = openFetchRig({ policy: { origins: [own] }, ownPorts: [server.port] })
  assert.match(await listed.take(`${own}/`), /^fetch_forbidden: /, 'a list does not open the service to itself')
})

test('where hosts are listed, others are refused, also as redirects', async () => {
  await using server = await startTlsFake((request, response) => {
    if (request.url === '/') return void response.end(PNG)
    response.writeHead(302, { location: `https://files.example:${server.port}/` }).end()
  })
  const policy = { isPublic: false, hosts: ['.a.files.example', 'b.files.example'] }
  await using rig = openFetchRig({ policy, network: outsideOnly, ports: [server.port] })
  const take = (host: string, path = '/') => rig.take(`https://${host}:${server.port}${path}`)
  assert.equal(await take('b.files.example'), 'taken')
  assert.equal(await take('a.files.example'), 'taken')
  for (const host of ['files.example', 'c.b.files.example', 'ba.files.example'])
    assert.match(await take(host), /^fetch_forbidden: .*not on the list/)
  assert.match(await take('b.files.example', '/away'), /^fetch_forbidden: .*not on the list/)
  await using none = openFetchRig({ policy: { isPublic: false }, network: outsideOnly, ports: [server.port] })
  assert.match(await none.take(`https://files.example:${server.port}/`), /^fetch_forbidden: /)
})

test('a listed origin may be inside and plain, and still not where clouds serve credentials', async () => {
  await using plain = await startHttpFake((_request, response) => void response.end(PNG))
  const origin = `http://minio.example:${plain.port}`
  const leadingTo = (address: string) =>
    openFetchRig({
      policy: { isPublic: false, origins: [origin] },
      network: { resolve: async () => [{ address, family: address.includes(':') ? 6 : 4 }] },
    })
  await using rig = leadingTo('127.0.0.1')
  assert.equal(await rig.take(`${origin}/a.png`), 'taken')
  assert.match(await rig.take(`http://minio.example:${plain.port + 1}/a.png`), /^fetch_forbidden: /)
  assert.match(await rig.take(`https://minio.example:${plain.port}/a.png`), /^fetch_forbidden: /)
  const never = [
    ...['169.254.169.254', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::1'],
    ...['fe80::1', 'fd00:ec2::254', '100.100.100.200', '168.63.129.16', '0.0.0.0', '::'],
  ]
  for (const address of never) {
    await using other = leadingTo(address)
    assert.match(await other.take(`${origin}/b.png`), /^fetch_forbidden: /, address)
  }
})

test('the headers of a host go to that host alone', async () => {
  const seen: [string | undefined, string | undefined][] = []
  await using server = await startTlsFake((request, response) => {
    seen.push([request.headers.host?.split(':')[0], request.headers.authorization])
    assert.equal(request.headers['accept-encoding'], 'identity')
    if (request.url === '/') return void response.end(PNG)
    response.writeHead(302, { location: `https://b.files.example:${server.port}/` }).end()
  })
  const headers = { 'a.files.example': { authorization: 'Bearer secret' } }
  await using rig = openFetchRig({ network: outsideOnly, ports: [server.port], headers })
  assert.equal(await rig.take(`https://a.files.example:${server.port}/away`), 'taken')
  assert.match(await rig.take(`https://c.a.files.example.evil.example:${server.port}/`), /^fetch_failed: /)
  assert.deepEqual(seen, [
    ['a.files.example', 'Bearer secret'],
    ['b.files.example', undefined],
  ])
})
