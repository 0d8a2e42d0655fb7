/** Files of the v1 API: uploads under flat names, masks, views in every form, files of the user. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import sharp from 'sharp'
import { WebSocket } from 'ws'
import { startTestApp, type TestApp } from '../../../../test/support/app/start-app.ts'
import { startShared } from '../../../../test/support/app/start-shared.ts'
import { CheckedClient } from '../../../../test/support/clients/checked-client.ts'
import { LegacyClient } from '../../../../test/support/clients/legacy-client.ts'
import { saveGraph } from '../../../../test/support/clients/legacy-graphs.ts'
import { createFakeEngine } from '../../../../test/support/engines/fake-engine.ts'
import { RECORDINGS } from '../../../../test/support/recordings/replay-exchange.ts'
import type { Engine } from '../../../domain/engine/engine-port.ts'

const input = (name: string) => readFileSync(`${RECORDINGS}inputs/${name}`)

let app: TestApp
let client: LegacyClient
before(async () => {
  app = await startTestApp()
  client = new LegacyClient(app.url)
})
after(() => app[Symbol.asyncDispose]())

function loadGraph(image: string) {
  return {
    '1': { class_type: 'LoadImage', inputs: { image } },
    '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
  }
}

/** Reports a file at once and gives its bytes only when it is told to. */
function createSlowEngine(): { engine: Engine; storeIt: () => void } {
  const stored = Promise.withResolvers<void>()
  const inner = createFakeEngine()
  const ref = { nodeId: '1', classType: 'FakeSave', displayNodeId: '1', parentNodeId: null }
  async function* read() {
    await stored.promise
    yield Buffer.from('late')
  }
  const file = { kind: 'file', filename: 'slow.png', subfolder: '', folder: 'output', contentType: null, read } as const
  return {
    storeIt: stored.resolve,
    engine: {
      catalog: () => inner.catalog(),
      async *run() {
        yield { type: 'started', nodesTotal: 1 }
        yield { type: 'node_report', ...ref, report: { images: [file] }, cached: false }
        await stored.promise
        yield { type: 'succeeded' }
      },
      [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
    },
  }
}

async function pixels(bytes: Uint8Array): Promise<Buffer> {
  return sharp(bytes).ensureAlpha().raw().toBuffer()
}

describe('an upload', () => {
  test('keeps its name while it is free, gives same bytes the same name and others the next', async () => {
    const names: string[] = []
    for (const file of ['test.png', 'test.png', 'test65.png', 'test66.png', 'test65.png']) {
      names.push((await client.upload('photo.png', input(file))).json.name)
    }
    assert.deepEqual(names, ['photo.png', 'photo.png', 'photo (1).png', 'photo (2).png', 'photo (1).png'])
    assert.equal((await client.upload('photo.png', input('test66.png'), { overwrite: 'true' })).json.name, 'photo.png')
    assert.ok((await client.get('/view?filename=photo.png&type=input')).bytes.equals(input('test66.png')))
  })

  test('of many different files under one name at once gives each a name of its own', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => client.upload('same.bin', Buffer.from(`bytes ${index}`))),
    )
    assert.equal(new Set(answers.map(({ json }) => json.name)).size, 20)
    for (const [index, { json }] of answers.entries()) {
      const view = await client.get(`/view?${new URLSearchParams({ filename: json.name, type: 'input' })}`)
      assert.equal(view.text, `bytes ${index}`)
    }
  })

  test('may be named in a graph by every spelling that the answer allows', async () => {
    const answer = await client.upload('sub.png', input('a.png'), { subfolder: 'clip/space', type: 'input' })
    assert.deepEqual(answer.json, { name: 'sub.png', subfolder: 'clip/space', type: 'input' })
    await client.upload('tempered.png', input('a.png'), { type: 'temp' })
    const spellings = [
      'sub.png',
      'clip/space/sub.png',
      'sub.png [input]',
      'clip/space/sub.png [input]',
      'tempered.png [temp]',
    ]
    for (const name of spellings) {
      const id = await client.accepted(loadGraph(name))
      assert.equal((await client.untilHistory(id)).status.status_str, 'success', name)
    }
    assert.equal((await client.prompt(loadGraph('tempered.png'))).status, 400, 'a preview is no input')
    assert.ok((await client.get('/object_info/LoadImage')).json.LoadImage.input.required.image[0].includes('sub.png'))
  })

  test('of the clipspace of the editor may be named so in graphs of the Jobs API, too', async () => {
    const answer = await client.upload('mask-1.png', input('a.png'), { subfolder: 'clipspace', type: 'input' })
    assert.equal(answer.status, 200)
    const jobs = new CheckedClient(app.url)
    for (const image of ['clipspace/mask-1.png', 'clipspace/mask-1.png [input]']) {
      const job = await jobs.run(loadGraph(image))
      assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
    }
    for (const image of ['clipspace/nothing.png', 'other/mask-1.png', 'clipspace/../mask-1.png'])
      assert.equal((await jobs.submit({ workflow: loadGraph(image) })).status, 422, image)
  })

  test('takes the file before or after the fields, and names beyond ASCII', async () => {
    const form = new FormData()
    form.append('overwrite', 'false')
    form.append('type', 'input')
    form.append('image', new Blob([input('a.png')]), 'grüße 日本.png')
    const answer = await client.call('/api/upload/image', { method: 'POST', body: form })
    assert.equal(answer.json.name, 'grüße 日本.png')
    const view = await client.get(`/view?${new URLSearchParams({ filename: 'grüße 日本.png', type: 'input' })}`)
    assert.ok(view.bytes.equals(input('a.png')))
    assert.match(view.headers.get('content-disposition') ?? '', /filename\*=UTF-8''gr%C3%BC/)
  })

  test('that makes no sense is refused with a body', async () => {
    const wrong: [name: string, value: string][] = [
      ['subfolder', '../x'],
      ['subfolder', '/etc'],
      ['type', 'models'],
    ]
    for (const [name, value] of wrong) {
      const answer = await client.upload('x.png', input('a.png'), { [name]: value })
      assert.deepEqual([answer.status, typeof answer.json.error], [400, 'string'])
    }
    for (const name of ['../x.png', '..']) assert.equal((await client.upload(name, input('a.png'))).status, 400, name)
    const bare = await client.call('/upload/image', {
      method: 'POST',
      body: 'x',
      headers: { 'content-type': 'image/png' },
    })
    assert.equal(bare.status, 400)
  })
})

describe('a mask', () => {
  async function mask(fields: Record<string, string>, file = 'test.png') {
    const form = new FormData()
    form.append('image', new Blob([input(file)]), 'masked.png')
    for (const [name, value] of Object.entries(fields)) form.append(name, value)
    return client.call('/upload/mask', { method: 'POST', body: form })
  }
  const ref = (filename: string) => JSON.stringify({ filename, subfolder: '', type: 'input' })

  test('puts its alpha onto the colours of the original and keeps its texts', async () => {
    const colours = await sharp({ create: { width: 64, height: 48, channels: 3, background: '#204060' } })
      .png()
      .withMetadata()
      .toBuffer()
    const texted = Buffer.concat([colours.subarray(0, 33), textChunk('prompt', '{}'), colours.subarray(33)])
    await client.upload('original.png', texted)
    for (const name of ['original_ref', 'originalRef']) {
      const answer = await mask({ type: 'input', overwrite: 'true', [name]: ref('original.png') })
      assert.deepEqual(answer.json, { name: 'masked.png', subfolder: '', type: 'input' })
      const made = (await client.get('/view?filename=masked.png&type=input')).bytes
      assert.ok(made.includes('tEXtprompt\0{}'))
      const [result, alpha] = [await pixels(made), await pixels(input('test.png'))]
      for (let at = 0; at < result.length; at += 4) {
        assert.deepEqual([...result.subarray(at, at + 4)], [0x20, 0x40, 0x60, alpha[at + 3]])
      }
    }
  })

  test('without an original, or of another size, is refused', async () => {
    await client.upload('sized.png', input('test.png'))
    assert.equal((await mask({})).status, 400)
    assert.equal((await mask({ original_ref: 'no json' })).status, 400)
    assert.equal((await mask({ original_ref: ref('nope.png') })).status, 400)
    assert.equal((await mask({ original_ref: ref('sized.png') }, 'test65.png')).status, 400)
  })
})

function textChunk(key: string, text: string): Buffer {
  const body = Buffer.from(`tEXt${key}\0${text}`, 'latin1')
  const head = Buffer.alloc(4)
  head.writeUInt32BE(body.length - 4)
  // No reader of this test checks the checksum of a text chunk.
  return Buffer.concat([head, body, Buffer.alloc(4)])
}

describe('a view', () => {
  before(() => client.upload('view.png', input('test.png')))

  test('is bytes under the bare path and an address without credentials under /api', async () => {
    const direct = await client.get('/view?filename=view.png&type=input')
    assert.deepEqual([direct.status, direct.headers.get('content-type')], [200, 'image/png'])
    const moved = await client.get('/api/view?filename=view.png&type=input')
    assert.deepEqual([moved.status, moved.headers.get('cache-control')], [302, 'no-store'])
    const location = moved.headers.get('location') ?? ''
    assert.ok(location.startsWith(app.url))
    const content = await fetch(location)
    assert.ok(Buffer.from(await content.arrayBuffer()).equals(input('test.png')))
    assert.match(content.headers.get('cache-control') ?? '', /^private, max-age=[1-9]\d{2,3}, immutable$/)
    // A browser that shows the picture again must not load it again.
    const again = await client.get('/api/view?filename=view.png&type=input')
    assert.equal(again.headers.get('location'), location)
  })

  test('re-encodes and takes apart', async () => {
    const source = await pixels(input('test.png'))
    const rgb = await client.get('/api/view?filename=view.png&type=input&channel=rgb')
    assert.deepEqual([rgb.status, (await sharp(rgb.bytes).metadata()).channels], [200, 3])
    for (const channel of ['a', 'alpha']) {
      const alpha = await pixels((await client.get(`/view?filename=view.png&type=input&channel=${channel}`)).bytes)
      for (let at = 0; at < alpha.length; at += 4)
        assert.deepEqual([...alpha.subarray(at, at + 4)], [0, 0, 0, source[at + 3]])
    }
    for (const [query, format] of [
      ['preview=webp;50', 'webp'],
      ['preview=jpeg', 'jpeg'],
      ['preview=jpeg&channel=rgba', 'webp'],
    ]) {
      const { bytes, headers } = await client.get(`/view?filename=view.png&type=input&${query}`)
      assert.deepEqual(
        [(await sharp(bytes).metadata()).format, headers.get('content-type')],
        [format, `image/${format}`],
      )
      assert.equal(headers.has('etag'), false)
    }
    const small = await sharp((await client.get('/view?filename=view.png&type=input&res=64')).bytes).metadata()
    assert.equal(small.format, 'jpeg')
    await client.upload('no-picture.txt', Buffer.from('text'))
    assert.equal((await client.get('/view?filename=no-picture.txt&type=input&preview=webp')).status, 400)
  })

  test('of something a browser would run is a download', async () => {
    await client.upload('page.html', Buffer.from('<script>1</script>'))
    await client.upload('drawing.svg', Buffer.from('<svg/>'))
    const page = await client.get('/view?filename=page.html&type=input')
    assert.deepEqual(
      [page.headers.get('content-type'), page.headers.get('content-disposition')],
      ['application/octet-stream', 'attachment; filename="page.html"'],
    )
    const image = await client.call('/view?filename=drawing.svg&type=input', { headers: { 'sec-fetch-dest': 'image' } })
    assert.equal(image.headers.get('content-type'), 'image/svg+xml')
  })

  test('waits for a file that a run has just announced', async () => {
    const { engine, storeIt } = createSlowEngine()
    await using slow = await startTestApp({ overrides: { engine } })
    const there = new LegacyClient(slow.url)
    const socket = new WebSocket(`${slow.url.replace('http', 'ws')}/ws`)
    const told = Promise.withResolvers<void>()
    socket.on('message', (data: Buffer) => {
      if (data.toString('latin1').includes('"executed"')) told.resolve()
    })
    await new Promise((resolve) => socket.once('open', resolve))
    await there.accepted({ '1': { class_type: 'FakeSave', inputs: {} } })
    await told.promise
    const view = there.get('/view?filename=slow.png')
    assert.equal((await there.get('/view?filename=unknown.png')).status, 404, 'nobody waits for what nobody announced')
    storeIt()
    assert.deepEqual([(await view).status, (await view).text], [200, 'late'])
    socket.terminate()
  })

  test('of outputs tells two of one name in two folders apart, and ignores a folder that it does not know', async () => {
    for (const [color, prefix] of [
      [0xff0000, 'a/twin'],
      [0x00ff00, 'b/twin'],
    ] as const) {
      await client.untilHistory(await client.accepted(saveGraph(color, prefix)))
    }
    const color = async (subfolder: string) => [
      ...(await pixels((await client.get(`/view?filename=twin_00001_.png&subfolder=${subfolder}`)).bytes)).subarray(
        0,
        3,
      ),
    ]
    assert.deepEqual(await color('a'), [0, 255, 255])
    assert.deepEqual(await color('b'), [255, 0, 255])
    assert.deepEqual(await color('elsewhere'), [255, 0, 255], 'the newest of the name')
  })
})

describe('files of the user', () => {
  test('are kept, listed, moved and removed, and survive a restart', async () => {
    const put = (path: string, body: string, query = '') =>
      client.call(`/userdata/${encodeURIComponent(path)}${query}`, { method: 'POST', body })
    assert.equal((await put('workflows/deep/a.json', '{"x":1}')).text, '"workflows/deep/a.json"')
    assert.equal((await put('workflows/b.json', '{}', '?full_info=true')).json.size, 2)
    assert.equal((await put('workflows/b.json', '{}', '?overwrite=false')).status, 409)
    assert.deepEqual((await client.get('/userdata?dir=workflows&recurse=&split=')).json, ['b.json'])
    assert.deepEqual((await client.get('/userdata?dir=workflows/&recurse=true')).json, ['b.json', 'deep/a.json'])
    assert.equal((await client.get('/userdata?dir=../x')).status, 403)
    assert.equal((await put('../x', '')).status, 403)
    await client.post('/settings', { 'Comfy.A': 1 })
    await client.post('/settings/Comfy.B', '"x"')
    app = await app.restart()
    client = new LegacyClient(app.url)
    assert.deepEqual((await client.get('/settings')).json, { 'Comfy.A': 1, 'Comfy.B': 'x' })
    assert.equal((await client.get('/userdata/workflows%2Fdeep%2Fa.json')).text, '{"x":1}')
    assert.equal((await client.call('/userdata/workflows%2Fb.json/move/c.json', { method: 'POST' })).text, '"c.json"')
    assert.equal((await client.call('/userdata/c.json', { method: 'DELETE' })).status, 204)
    assert.equal((await client.call('/userdata/c.json', { method: 'DELETE' })).status, 404)
  })
})

describe('saved workflows', () => {
  const save = (name: string, workflow: string, more: object = {}) =>
    client.post('/api/workflows', `{"workflow_json":${workflow},${JSON.stringify({ name, ...more }).slice(1)}`)

  test('are the files that the editor shows, with an id each and every digit of their numbers', async () => {
    const seed = '{"1":{"inputs":{"seed":18446744073709551615}}}'
    const made = await save('portraits/Anna', seed, { description: 'in oil' })
    assert.equal(made.status, 201, made.text)
    assert.match(made.json.id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.equal(made.json.name, 'portraits/Anna')
    assert.equal((await client.get('/userdata/workflows%2Fportraits%2FAnna.json')).text, seed)
    app = await app.restart()
    client = new LegacyClient(app.url)
    assert.deepEqual((await client.get('/api/workflows?name=ANNA')).json.data, [made.json])
    const content = await client.get(`/api/workflows/${made.json.id}/content`)
    assert.ok(content.text.endsWith(`"workflow_json":${seed}}`), content.text)
    await client.call('/userdata/workflows%2FBerta.json', { method: 'POST', body: '{"nodes":[]}' })
    await client.call('/userdata/workflows%2F.index.json', { method: 'POST', body: '{}' })
    const names = async (query: string) =>
      (await client.get(`/api/workflows?${query}`)).json.data.map((each: { name: string }) => each.name)
    assert.ok((await names('sort=name&order=asc&limit=100')).includes('Berta'))
    assert.ok(!(await names('limit=100')).some((name: string) => name.includes('.index')))
    assert.deepEqual(await names('name=r&limit=1&offset=1&sort=name&order=asc'), ['portraits/Anna'])
  })

  test('never replace each other: a name that is taken gets a number, also when several are saved at once', async () => {
    const made = await Promise.all(['{"a":1}', '{"a":2}', '{"a":3}'].map((workflow) => save('same', workflow)))
    assert.deepEqual(made.map(({ json }) => json.name).sort(), ['same', 'same (2)', 'same (3)'])
    assert.equal(new Set(made.map(({ json }) => json.id)).size, 3)
  })

  test('are removed with their description; a later one of the name has none of it', async () => {
    const { id } = (await save('gone', '{}', { description: 'the first' })).json
    assert.equal((await client.call(`/api/workflows/${id}`, { method: 'DELETE' })).status, 204)
    assert.equal((await client.call(`/api/workflows/${id}`, { method: 'DELETE' })).status, 404)
    assert.equal((await client.get(`/api/workflows/${id}/content`)).status, 404)
    assert.equal((await save('gone', '{}')).json.description, null)
  })

  test('are refused with what is wrong', async () => {
    const wrong = [
      await save('', '{}'),
      await save('../out', '{}'),
      await save('x'.repeat(600), '{}'),
      await save('x', '[]'),
      await save('x', '{}', { description: 7 }),
      await save('x', '{}', { description: 'd'.repeat(4001) }),
      ...(await Promise.all(
        ['limit=0', 'limit=101', 'limit=x', 'offset=-1', 'sort=size', 'order=up'].map((query) =>
          client.get(`/api/workflows?${query}`),
        ),
      )),
    ]
    for (const { status, text } of wrong) assert.equal(status, 400, text)
    assert.equal((await save('large', JSON.stringify({ a: 'x'.repeat(9 * 1024 * 1024) }))).status, 413)
  })
})

describe('the standing of an account', () => {
  test('is told without a balance where nothing is metered', async () => {
    assert.equal((await client.get('/api/billing/status')).json.has_funds, true)
    assert.deepEqual((await client.get('/api/billing/balance')).json, { currency: 'usd' })
    assert.deepEqual((await client.get('/api/billing/plans')).json, { current_plan_slug: null, plans: [] })
    assert.equal((await client.get('/api/workspaces/current')).json.type, 'personal')
  })

  test('has the tier, the credit in cents and the number of jobs at a time where an operator set them', async () => {
    await using shared = await startShared()
    const { call } = await shared.account('paying', { creditFloorMicros: 0, concurrentJobs: 3 })
    const empty = (await call('/api/billing/status')).json
    assert.deepEqual([empty.has_funds, empty.is_active], [false, true])
    const inactive = await shared.account('lapsed', { subscriptionActive: false })
    assert.equal((await inactive.call('/api/billing/status')).json.is_active, false)
    await shared.admin('POST', '/accounts/paying/grants', { micros: 12_345_678, memo: 'paid' })
    assert.equal((await call('/api/billing/status')).json.has_funds, true)
    assert.equal((await call('/api/billing/balance')).json.effective_balance_micros, 1234)
    assert.equal((await call('/api/billing/plans')).json.current_plan_slug, empty.plan_slug)
    assert.equal((await call('/api/workspaces/current')).json.id, 'paying')
    assert.equal((await call('/api/features')).json.max_concurrent_jobs, 3)
  })
})
