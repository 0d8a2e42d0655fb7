/** A link to the page of an endpoint: whoever has it runs it, within what its owner allows, and learns nothing else. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { parse } from 'yaml'
import { openBlake3 } from '../../../../lib/files/blake3.ts'
import { readChunks, writeChunk } from '../../../../lib/files/png-chunks.ts'
import type { Log } from '../../../../lib/log.ts'
import { startTestApp, type TestApp } from '../../../../test/support/app/start-app.ts'
import { type Answer, type CallOptions, call } from '../../../../test/support/clients/call.ts'
import { CheckedClient } from '../../../../test/support/clients/checked-client.ts'
import { openEvents } from '../../../../test/support/clients/event-reader.ts'
import { CARD_YAML, card, stamp } from '../../../../test/support/endpoints/card.ts'
import { createFixedClock } from '../../../../test/support/fixed-clock.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const START = new Date('2030-01-01T00:00:00.000Z')
const clock = createFixedClock(START)
const logged: string[] = []
const note = (...line: unknown[]) => void logged.push(JSON.stringify(line))
const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log }

describe('a link to the page of an endpoint', () => {
  let service: TestApp
  let client: CheckedClient
  before(async () => {
    service = await startTestApp({
      settings: { workers: '2', logLevel: 'debug' },
      overrides: { clock },
      log,
    })
    client = new CheckedClient(service.url)
    const cardFile = { name: 'card', file: card('Hello'), declaration: parse(CARD_YAML) }
    assert.equal((await api('POST', '', cardFile)).status, 201)
    assert.equal((await api('POST', '', { name: 'stamp', file: stamp() })).status, 201)
  })
  after(() => service[Symbol.asyncDispose]())

  const api = (method: string, path: string, body?: unknown): Promise<Answer> =>
    client.call(`/api/v2/endpoints${path}`, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
  const inDays = (days: number) => new Date(clock.now().getTime() + days * DAY_MS).toISOString()

  async function share(wish: object = {}, name = 'card') {
    const made = await api('POST', `/${name}/shares`, { runs: 100, at_a_time: 100, expires_at: inDays(7), ...wish })
    assert.equal(made.status, 201, made.text)
    const path = new URL(made.json.url).pathname
    return { made: made.json, path, id: made.json.id as string }
  }
  // Visitors have addresses of their own as far as the service can tell; here all come from one.
  const visit = (path: string, options: CallOptions = {}) => call(service.url, path, options)
  const start = (path: string, inputs: object, headers: Record<string, string> = {}) => {
    clock.advance(60_000)
    return visit(`${path}/runs`, { method: 'POST', body: JSON.stringify({ inputs }), headers })
  }
  async function untilEnd(path: string, run: string) {
    const events = openEvents(service.url, `${path}/runs/${run}/events`)
    try {
      const frames = await events.rest()
      return frames.filter(({ event }) => event === 'run').at(-1)?.data
    } finally {
      events[Symbol.dispose]()
    }
  }

  test('runs it without an account, and gives the picture without the workflow that is in it', async () => {
    const { made, path } = await share()
    assert.match(made.url, /\/share\/[A-Za-z0-9_-]{43}$/)
    assert.equal(made.embed, null)
    const about = await visit(`${path}/endpoint`)
    assert.deepEqual(
      [about.status, about.json.title, about.json.inputs.map((input: { name: string }) => input.name)],
      [200, 'A card', ['headline', 'width', 'align', 'outline']],
    )
    const began = await start(path, { headline: 'Good morning' })
    assert.equal(began.status, 201, began.text)
    const ended = await untilEnd(path, began.json.run)
    assert.equal(ended.status, 'succeeded')
    assert.deepEqual(ended.inputs, { headline: 'Good morning', width: 64, align: 'center', outline: false })
    assert.deepEqual((await visit(`${path}/runs/${began.json.run}`)).json, ended)
    const [output] = ended.outputs
    const file = await visit(output.url)
    assert.deepEqual([file.status, file.headers['content-type']], [200, 'image/png'])
    const kinds = readChunks(file.bytes).map(({ type }) => type)
    assert.ok(kinds.includes('IDAT') && kinds.includes('IEND'))
    assert.ok(!kinds.some((kind) => ['tEXt', 'zTXt', 'iTXt', 'eXIf'].includes(kind)), kinds.join())
    assert.ok(!file.bytes.includes('class_type') && !file.bytes.includes('EmptyImage'))
    for (const chunk of readChunks(file.bytes)) assert.deepEqual(Buffer.from(chunk.whole), writeChunk(chunk))
    const part = await visit(output.url, { headers: { range: 'bytes=8-40' } })
    assert.deepEqual([part.status, part.bytes], [206, file.bytes.subarray(8, 41)])
    // The owner gets the file as it was made.
    const owned = await api('GET', '/card/runs')
    const [run] = owned.json.runs
    assert.deepEqual(run.endpoint, { name: 'card', version: 1, share: made.id })
    const own = await visit(new URL(run.outputs[0].url).pathname + new URL(run.outputs[0].url).search)
    assert.ok(own.bytes.includes('class_type'))
  })

  test('says nothing of the graph, of nodes, of the account and of other runs', async () => {
    const { path } = await share()
    const other = await share()
    const began = await start(path, { headline: 'Mine' })
    const ended = await untilEnd(path, began.json.run)
    const all = JSON.stringify([(await visit(`${path}/endpoint`)).json, began.json, ended])
    const { json: job } = await api('GET', '/card/runs?limit=1')
    const hidden = [job.runs[0].id, job.runs[0].outputs[0].id, job.runs[0].outputs[0].hash, 'TextOverlay', 'node']
    for (const word of hidden) assert.ok(!all.includes(word), word)
    for (const wrong of [`${other.path}/runs/${began.json.run}`, `${path}/runs/${job.runs[0].id}`, `${path}/runs/x`])
      assert.equal((await visit(wrong)).status, 404, wrong)
    const changed = `${began.json.run.slice(0, -2)}${began.json.run.endsWith('AA') ? 'BB' : 'AA'}`
    assert.equal((await visit(`${path}/runs/${changed}`)).status, 404)
    // A link is no credential of anything else, and no credential is one of a link.
    const token = path.split('/').at(-1)
    assert.equal((await visit(`/share/${token}/../../api/v2/jobs`)).status, 404)
  })

  test('tells every wrong input at once, and keeps what the account has from its visitors', async () => {
    const { path } = await share({}, 'stamp')
    await client.call('/api/v2/assets?file_path=secret.png', { method: 'POST', body: 'x' }).catch(() => null)
    for (const image of ['secret.png', `blake3:${'0'.repeat(64)}`, { __type: 'core/ASSET', info: { id: 'x' } }]) {
      const refused = await start(path, { image })
      assert.deepEqual(
        [refused.status, refused.json.error.code, refused.json.error.details.inputs[0].reason],
        [422, 'invalid_input', 'not_a_file'],
      )
    }
    const png = (await untilPicture()).toString('base64')
    const began = await start(path, { image: `data:image/png;base64,${png}` })
    assert.equal(began.status, 201, began.text)
    const ended = await untilEnd(path, began.json.run)
    assert.equal(ended.status, 'succeeded', JSON.stringify(ended))
    const given = await visit(ended.inputs.image.url)
    assert.deepEqual([given.status, given.headers['content-type']], [200, 'image/png'])
    const wrong = await start((await share()).path, { headlin: 'x', width: 4096 })
    assert.deepEqual(
      wrong.json.error.details.inputs.map(({ name, reason }: Record<string, string>) => `${name}: ${reason}`),
      ['headlin: unknown', 'headline: missing', 'width: too_large'],
    )
  })

  async function untilPicture(): Promise<Buffer> {
    const { path } = await share()
    const began = await start(path, { headline: 'picture' })
    const ended = await untilEnd(path, began.json.run)
    return (await visit(ended.outputs[0].url)).bytes
  }

  test('takes exactly as many runs as its owner allows, in its life and in a day', async () => {
    clock.set(new Date('2030-03-01T00:00:00.000Z'))
    const { path, id } = await share({ runs: 3, runs_per_day: 2 })
    const codes: string[] = []
    for (let count = 0; count < 3; count++) {
      const answer = await start(path, { headline: `run ${count}` })
      codes.push(answer.status === 201 ? 'began' : answer.json.error.code)
      if (answer.status === 201) await untilEnd(path, answer.json.run)
    }
    assert.deepEqual(codes, ['began', 'began', 'run_limit'])
    clock.advance(DAY_MS)
    const last = await start(path, { headline: 'tomorrow' })
    assert.equal(last.status, 201, last.text)
    await untilEnd(path, last.json.run)
    clock.advance(DAY_MS)
    const over = await start(path, { headline: 'too many' })
    assert.deepEqual(
      [over.status, over.json.error.message],
      [429, 'this page has had all the runs that its owner gave it'],
    )
    const { json } = await api('GET', '/card/shares')
    const listed = json.shares.find((each: { id: string }) => each.id === id)
    assert.deepEqual([listed.used.runs, listed.used.running, listed.state], [3, 0, 'active'])
  })

  test('lets one visitor run one at a time and ten in a minute', async () => {
    const { path } = await share()
    const body = JSON.stringify({ inputs: { headline: 'at once' } })
    const many = await Promise.all(Array.from({ length: 8 }, () => visit(`${path}/runs`, { method: 'POST', body })))
    assert.deepEqual(many.map(({ status }) => status).sort(), [201, ...Array.from({ length: 7 }, () => 429)])
    const first = many.find(({ status }) => status === 201)
    await untilEnd(path, first?.json.run)
    let begun = 1
    for (; begun < 12; begun++) {
      const answer = await visit(`${path}/runs`, { method: 'POST', body })
      if (answer.status === 429) break
      await untilEnd(path, answer.json.run)
    }
    assert.equal(begun, 10)
  })

  test('answers the same call again with the same run', async () => {
    const { path } = await share()
    const headers = { 'idempotency-key': 'a key that nobody guesses' }
    const [one, other] = [
      await start(path, { headline: 'once' }, headers),
      await start(path, { headline: 'once' }, headers),
    ]
    assert.deepEqual([one.status, other.status, other.json.run], [201, 201, one.json.run])
    const another = await start(path, { headline: 'twice' }, headers)
    assert.deepEqual([another.status, another.json.error.code], [422, 'idempotency_key_reuse'])
    assert.equal((await start(path, { headline: 'x' }, { 'idempotency-key': 'short' })).status, 400)
  })

  test('leads nowhere once it has expired or was revoked, also for those who watch a run', async () => {
    const expiring = await share({ expires_at: inDays(1) })
    assert.equal((await visit(`${expiring.path}/endpoint`)).status, 200)
    clock.advance(DAY_MS)
    const gone = await visit(`${expiring.path}/endpoint`)
    const { path, id } = await share()
    const unknown = await visit(`/share/${'x'.repeat(43)}/endpoint`)
    assert.deepEqual([gone.status, gone.json], [404, unknown.json])
    const began = await start(path, { headline: 'Hello' })
    await untilEnd(path, began.json.run)
    assert.equal((await api('DELETE', `/card/shares/${id}`)).json.state, 'revoked')
    for (const dead of [path, `${path}/endpoint`, `${path}/runs/${began.json.run}`])
      assert.equal((await visit(dead)).status, 404, dead)
    assert.equal((await start(path, { headline: 'x' })).status, 404)
    assert.equal((await api('DELETE', `/card/shares/${id}`)).status, 200)
    assert.equal((await api('DELETE', `/stamp/shares/${id}`)).status, 404)
  })

  test('is reached by pages of the listed hosts, and by no others', async () => {
    const { made, path } = await share({ referrers: ['blog.example', '*.example.org', 'localhost:5173'] })
    assert.match(made.embed, /^<iframe src="http:[^"]+" title="card" /)
    const page = await visit(path)
    assert.match(
      String(page.headers['content-security-policy']),
      /frame-ancestors blog\.example \*\.example\.org localhost:5173;/,
    )
    assert.deepEqual(
      [page.headers['x-frame-options'], page.headers['referrer-policy'], page.headers['cache-control']],
      [undefined, 'no-referrer', 'no-store'],
    )
    const site = (origin: string) => ({ origin, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' })
    const allowed = ['https://blog.example', 'http://blog.example', 'https://a.example.org', 'http://localhost:5173']
    for (const origin of allowed) {
      const answer = await visit(`${path}/endpoint`, { headers: site(origin) })
      assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [200, origin], origin)
    }
    const refused = [
      'https://evil.example',
      'https://blog.example.evil.example',
      'https://blog.example:8443',
      'null',
      'https://example.org',
    ]
    for (const origin of refused) {
      const answer = await visit(`${path}/endpoint`, { headers: site(origin) })
      assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [403, undefined], origin)
    }
    const asked = (origin: string) =>
      visit(`${path}/runs`, {
        method: 'OPTIONS',
        headers: { ...site(origin), 'access-control-request-method': 'POST' },
      })
    assert.equal((await asked('https://blog.example')).headers['access-control-allow-origin'], 'https://blog.example')
    assert.equal((await asked('https://evil.example')).status, 403)
    // Nothing else of the service opens to them.
    assert.equal((await visit('/api/v2/jobs', { headers: site('https://blog.example') })).status, 403)
    const framed = (referer: string) =>
      visit(path, {
        headers: { referer, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
      })
    assert.equal((await framed('https://blog.example/')).status, 200)
    assert.equal((await framed('https://evil.example/')).status, 403)
    // A form of another page is no page that a person opens.
    const posted = await visit(`${path}/runs`, {
      method: 'POST',
      body: '{"inputs":{"headline":"x"}}',
      headers: { ...site('https://evil.example'), 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    })
    assert.equal(posted.status, 403)
    const opened = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    assert.equal((await visit(path, { headers: opened })).status, 200)
    const closed = await share()
    assert.match(String((await visit(closed.path)).headers['content-security-policy']), /frame-ancestors 'none'/)
  })

  test('refuses bounds that are none, hosts that are none, and more links than there may be', async () => {
    const wrong: [object, RegExp][] = [
      [{ runs: 0 }, /runs/],
      [{ expires_at: inDays(400) }, /expires_at must be within a year/],
      [{ expires_at: inDays(-1) }, /expires_at must be in the future/],
      [{ expires_at: 'soon' }, /expires_at must be a time/],
      [{ referrers: ['https://example.com'] }, /must be hosts such as/],
      [{ referrers: ["example.com; script-src 'unsafe-inline'"] }, /must be hosts such as/],
      [{ spend_usd: 'all' }, /spend_usd/],
      [{ version: 7 }, /no version/],
    ]
    for (const [wish, message] of wrong) {
      const answer = await api('POST', '/card/shares', { runs: 1, expires_at: inDays(1), ...wish })
      assert.ok(answer.status === 422 || answer.status === 404, `${JSON.stringify(wish)} ${answer.status}`)
      assert.match(answer.json.error.message, message)
    }
    assert.equal((await api('POST', '', { name: 'many', file: card('x') })).status, 201)
    const made = await Promise.all(
      Array.from({ length: 105 }, () => api('POST', '/many/shares', { runs: 1, expires_at: inDays(1) })),
    )
    assert.equal(made.filter(({ status }) => status === 201).length, 100)
    const [last] = made.filter(({ status }) => status === 201)
    assert.equal((await api('DELETE', '/many', undefined)).status, 204)
    assert.equal((await visit(`${new URL(last.json.url).pathname}/endpoint`)).status, 404)
    assert.equal((await api('POST', '', { name: 'many', file: card('x') })).status, 201)
    assert.equal((await visit(`${new URL(last.json.url).pathname}/endpoint`)).status, 404)
  })

  test('runs the version that it names', async () => {
    const { path } = await share({ version: 1 })
    await api('POST', '/card/versions', {
      file: card('Hello'),
      declaration: { only: true, inputs: { headline: {} } },
      breaking: true,
    })
    const now = await share()
    const countOf = async (link: string) => (await visit(`${link}/endpoint`)).json.inputs.length
    assert.deepEqual([await countOf(path), await countOf(now.path)], [4, 1])
    await api('PATCH', '/card', { state: 'stopped' })
    const stopped = await start(path, { headline: 'x' })
    assert.deepEqual([stopped.status, stopped.json.error.code], [422, 'endpoint_stopped'])
    await api('PATCH', '/card', { state: 'ready', current_version: 1 })
  })

  test('stays out of the log, and so does the name of a run', async () => {
    const { path } = await share()
    const began = await start(path, { headline: 'quietly' })
    await untilEnd(path, began.json.run)
    await visit(`${path}/nothing/here`)
    assert.ok(logged.some((line) => line.includes('/share/:token/runs')))
    const secrets = [path.split('/').at(-1) ?? '', began.json.run as string]
    assert.deepEqual(
      logged.filter((line) => secrets.some((secret) => line.includes(secret))),
      [],
    )
  })

  test('keeps no file of a call that is refused, so that nobody fills the room of its owner', async () => {
    const closed = { ...stamp(), '9': { class_type: 'NoSuchClassAtAll', inputs: { images: ['1', 0] } } }
    assert.equal((await api('POST', '', { name: 'closed', file: closed })).status, 201)
    const { path } = await share({}, 'closed')
    const blake3 = await openBlake3()
    const isKept = async (bytes: Buffer) => {
      const body = JSON.stringify({ hash: `blake3:${blake3.hash(bytes)}`, file_path: 'kept.png' })
      return (await client.call('/api/v2/assets/from-hash', { method: 'POST', body })).status !== 404
    }
    const png = Buffer.concat([await untilPicture(), Buffer.from('of a visitor')])
    const refused = await start(path, { image: `data:image/png;base64,${png.toString('base64')}` })
    assert.deepEqual([refused.status, refused.json.error.code], [422, 'not_runnable'])
    assert.equal(await isKept(png), false)
    const taken = await start((await share({}, 'stamp')).path, {
      image: `data:image/png;base64,${png.toString('base64')}`,
    })
    assert.equal(taken.status, 201, taken.text)
    assert.equal(await isKept(png), true)
  })

  test('tells of a failure what a visitor may know, and nothing that names the graph', async () => {
    const broken = {
      '7': { class_type: 'ImageFromBatch', inputs: { image: ['8', 0], batch_index: 9, length: 1 } },
      '8': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
      '9': { class_type: 'NoSuchClassAtAll', inputs: { images: ['7', 0] } },
    }
    assert.equal((await api('POST', '', { name: 'broken', file: broken })).status, 201)
    const { path } = await share({}, 'broken')
    const refused = await start(path, {})
    assert.deepEqual([refused.status, refused.json.error.code], [422, 'not_runnable'])
    assert.ok(!refused.text.includes('NoSuchClassAtAll') && !refused.text.includes('"9"'))
  })
})

test('a link leads to the address at which its owner asked for it, below a prefix too', async () => {
  await using service = await startTestApp({ settings: { mountPrefix: '/base', allowedHosts: 'studio.example' } })
  const send = (path: string, body: object) =>
    call(service.url, `/base/api/v2/endpoints${path}`, {
      method: 'POST',
      headers: { host: 'studio.example' },
      body: JSON.stringify(body),
    })
  assert.equal((await send('', { name: 'card', file: card('Hello') })).status, 201)
  const expires = new Date(Date.now() + DAY_MS).toISOString()
  const { json } = await send('/card/shares', { runs: 1, expires_at: expires })
  assert.match(json.url, /^http:\/\/studio\.example\/base\/share\/[\w-]{43}$/)
  const path = new URL(json.url).pathname
  const page = await call(service.url, path, { headers: { host: 'studio.example' } })
  const [, script = ''] = /<script type="module" src="([^"]+)">/.exec(page.text) ?? []
  assert.match(script, /^\/base\/share\/files\/share-[^/]+\.js$/)
  assert.equal((await call(service.url, script)).status, 200)
  assert.equal((await call(service.url, path, { headers: { host: 'evil.example' } })).status, 403)
  const began = await call(service.url, `${path}/runs`, { method: 'POST', body: '{"inputs":{}}' })
  assert.ok(String(began.json.inputs.headline) === 'Hello', began.text)
})
