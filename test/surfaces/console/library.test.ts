/** What jobs made and what people work with: the gallery, archives, small pictures, node classes, uploads, forms. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import sharp from 'sharp'
import { startTestApp } from '../../support/app/start-app.ts'
import { startShared } from '../../support/app/start-shared.ts'
import { call } from '../../support/clients/call.ts'
import { createConsoleClient } from '../../support/clients/console-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const OUTPUTS = '/outputs'
const FORM = '/forms/{name}'
const VIEW = '/views/{name}'
const save = (text: string) => ({ class_type: 'FakeSave', inputs: { text } })

test('the gallery shows outputs of all jobs, the newest first, by type, in pages', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const ids: string[] = []
  for (const text of ['a', 'b', 'c']) {
    ids.push(await client.submit({ '1': save(text), '2': save(`${text}2`) }, { metadata: { name: text } }))
    await client.untilStatus(ids.at(-1) ?? '', 'succeeded')
  }
  const all = (await client.ask('GET', OUTPUTS)).json
  assert.deepEqual([all.outputs.length, all.next_cursor], [6, null])
  assert.deepEqual([all.outputs[0].job_id, all.outputs[0].job_title], [ids[2], 'c'])
  assert.equal((await call(app.url, all.outputs[0].url)).status, 200)
  const { type } = all.outputs[0]
  assert.equal((await client.ask('GET', OUTPUTS, `${OUTPUTS}?type=${type}&node=1`)).json.outputs.length, 3)
  assert.equal((await client.ask('GET', OUTPUTS, `${OUTPUTS}?type=latent`)).json.outputs.length, 0)
  assert.equal((await client.ask('GET', OUTPUTS, `${OUTPUTS}?type=nothing`)).status, 400)
  const seen: string[] = []
  let cursor = ''
  do {
    const page = (await client.ask('GET', OUTPUTS, `${OUTPUTS}?limit=2${cursor}`)).json
    seen.push(...page.outputs.map(({ asset_id }: { asset_id: string }) => asset_id))
    cursor = page.next_cursor === null ? '' : `&cursor=${page.next_cursor}`
  } while (cursor !== '')
  assert.deepEqual(
    seen,
    all.outputs.map(({ asset_id }: { asset_id: string }) => asset_id),
  )
  const zip = await call(app.url, `/console/v1/jobs/${ids[0]}/outputs.zip`)
  assert.deepEqual(
    [zip.status, zip.headers['content-type'], zip.bytes.subarray(0, 2).toString()],
    [200, 'application/zip', 'PK'],
  )
  assert.match(zip.headers['content-disposition'] ?? '', /^attachment/)
  const several = await call(app.url, `/console/v1/outputs.zip?jobs=${ids[1]},${ids[0]}`)
  assert.equal(several.headers['content-type'], 'application/zip')
  const text = several.bytes.toString('latin1')
  for (const [index, id] of [ids[1], ids[0]].entries()) assert.ok(text.includes(`${index + 1}-${id.slice(0, 8)}/`), id)
  assert.equal((await client.ask('GET', '/outputs.zip', '/outputs.zip?jobs=none')).status, 400)
  assert.equal((await client.ask('GET', '/outputs.zip', `/outputs.zip?jobs=${crypto.randomUUID()}`)).status, 404)
  assert.deepEqual((await client.ask('GET', '/engines')).json, {
    ...{ ready: 1, busy: 0, starting: 0, away: 0, running: 0 },
    slots: (await client.ask('GET', '/engines')).json.slots,
  })
})

test('what still runs on an engine that takes no more is in use: there are never fewer slots than jobs that run', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine }, settings: { workers: '2' } })
  const client = createConsoleClient(app.url)
  const id = await client.submit({ '2': { class_type: 'FakeGate', inputs: {} } })
  await engine.untilRuns(1)
  const [{ id: name }] = (await call(app.url, '/admin/v1/engines')).json.engines
  assert.equal((await call(app.url, `/admin/v1/engines/${name}/cordon`, { method: 'POST' })).status, 200)
  const { running, slots } = (await client.ask('GET', '/engines')).json
  assert.deepEqual([running, slots], [1, 1])
  engine.openGate()
  await client.untilStatus(id, 'succeeded')
})

test('a small picture is a webp of the asked size, kept for ever; what is no picture has none', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const png = await sharp({ create: { width: 800, height: 400, channels: 3, background: '#c33' } })
    .png()
    .toBuffer()
  const form = new FormData()
  form.append('content_type', 'image/png')
  form.append('file_path', 'red.png')
  form.append('file', new Blob([png], { type: 'image/png' }), 'red.png')
  const uploaded = (await (await fetch(`${app.url}/api/v2/assets`, { method: 'POST', body: form })).json()) as {
    id: string
  }
  const path = `/console/v1/thumbnails/${uploaded.id}?w=128`
  const small = await call(app.url, path)
  assert.deepEqual([small.status, small.headers['content-type']], [200, 'image/webp'])
  const { width, height } = await sharp(small.bytes).metadata()
  assert.deepEqual([width, height], [128, 64])
  assert.match(small.headers['cache-control'] ?? '', /immutable/)
  const again = await call(app.url, path, { headers: { 'if-none-match': small.headers.etag ?? '' } })
  assert.equal(again.status, 304)
  assert.equal((await call(app.url, `/console/v1/thumbnails/${uploaded.id}?w=9`)).status, 400)
  const listed = (await client.ask('GET', '/assets')).json.assets
  assert.deepEqual([listed.length, listed[0].asset_id, listed[0].size_bytes], [1, uploaded.id, png.byteLength])
  form.set('file_path', 'later.png')
  await fetch(`${app.url}/api/v2/assets`, { method: 'POST', body: form })
  const first = (await client.ask('GET', '/assets', '/assets?limit=1')).json
  const second = (await client.ask('GET', '/assets', `/assets?limit=1&cursor=${first.next_cursor}`)).json
  assert.deepEqual([first.assets[0].name, second.assets[0].name, second.next_cursor], ['later.png', 'red.png', null])
  assert.equal((await client.ask('GET', '/assets', '/assets?cursor=x')).status, 400)
  const job = await client.submit({ '1': { class_type: 'FakeValue', inputs: { value: 'text', key: 'text' } } })
  await client.untilStatus(job, 'succeeded')
  const [text] = (await client.ask('GET', OUTPUTS)).json.outputs
  if (text !== undefined) assert.equal((await call(app.url, `/console/v1/thumbnails/${text.asset_id}`)).status, 404)
})

test('node classes come once, and not again to whoever has them', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const first = await client.ask('GET', '/nodes')
  assert.equal(first.json.classes.FakeSampler.display_name, 'FakeSampler')
  assert.deepEqual(first.json.classes.FakeSampler.input.optional.steps[0], 'INT')
  const again = await call(app.url, '/console/v1/nodes', { headers: { 'if-none-match': first.headers.etag ?? '' } })
  assert.equal(again.status, 304)
})

test('forms are saved with every digit, listed, replaced and removed', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const text = '{"seed":18446744073709551615,"a":[1.50]}'
  assert.equal((await client.ask('PUT', FORM, '/forms/My%20poster', text)).status, 204)
  assert.equal((await client.ask('GET', FORM, '/forms/My%20poster')).text, text)
  const { forms } = (await client.ask('GET', '/forms')).json
  assert.deepEqual([forms.length, forms[0].name], [1, 'My poster'])
  assert.equal((await client.ask('PUT', FORM, '/forms/My%20poster', '{}')).status, 204)
  assert.equal((await client.ask('GET', FORM, '/forms/My%20poster')).text, '{}')
  assert.equal((await client.ask('DELETE', FORM, '/forms/My%20poster')).status, 204)
  assert.equal((await client.ask('DELETE', FORM, '/forms/My%20poster')).status, 404)
  for (const name of ['..%2Fx', '%2e%2e', 'a..b', '.x', 'x'.repeat(81)])
    assert.ok((await client.ask('PUT', FORM, `/forms/${name}`, '{}')).status >= 400, name)
  assert.ok((await client.ask('PUT', FORM, '/forms/x', '[]')).status >= 400)
})

test('filters are saved under a name, listed, replaced and removed, a bounded number of them', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const put = (name: string, query: unknown) => client.ask('PUT', VIEW, `/views/${encodeURIComponent(name)}`, { query })
  assert.equal((await put('of Anna', 'status=failed&meta.user=anna')).status, 204)
  assert.equal((await put('of Anna', 'meta.user=anna')).status, 204)
  assert.deepEqual((await client.ask('GET', '/views')).json.views, [{ name: 'of Anna', query: 'meta.user=anna' }])
  for (const [name, query] of [
    ['x', 5],
    ['x', 'q'.repeat(2001)],
    ['../x', 'q=1'],
    ['', 'q=1'],
  ] as const)
    assert.ok((await put(name, query)).status >= 400, name)
  for (let each = 1; each < 50; each += 1) assert.equal((await put(`view ${each}`, 'q=1')).status, 204)
  assert.equal((await put('one too many', 'q=1')).status, 422)
  assert.equal((await put('of Anna', 'q=2')).status, 204)
  assert.equal((await client.ask('DELETE', VIEW, '/views/of%20Anna')).status, 204)
  assert.equal((await client.ask('DELETE', VIEW, '/views/of%20Anna')).status, 404)
})

test('a word of a search is completed by what the jobs of the account have', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const fails = { '1': { class_type: 'FakeFail', inputs: {} } }
  await client.untilStatus(await client.submit(fails, { metadata: { scene: '4321', studio: 'north' } }), 'failed')
  await client.untilStatus(
    await client.submit({ '1': save('x') }, { metadata: { scene: '43', note: 'a b' } }),
    'succeeded',
  )
  const suggest = async (text: string) =>
    (await client.ask('GET', '/suggestions', `/suggestions?text=${encodeURIComponent(text)}`)).json.suggestions
  assert.deepEqual(await suggest('s'), ['status=', 'since=', 'scene=', 'studio='])
  assert.deepEqual(await suggest('scene='), ['scene=43', 'scene=4321'])
  assert.deepEqual(await suggest('scene=432'), ['scene=4321'])
  assert.deepEqual(await suggest('note='), [])
  assert.deepEqual(await suggest('status=ca'), ['status=canceling', 'status=canceled'])
  assert.deepEqual(await suggest('since='), ['since=1h', 'since=24h', 'since=7d', 'since=today'])
  assert.deepEqual(await suggest('class=fakef'), ['class=FakeFail'])
  assert.deepEqual(await suggest('pool=d'), ['pool=default'])
  assert.equal((await suggest('code=')).length, 1)
  assert.deepEqual(await suggest('nowhere'), [])
  assert.deepEqual(await suggest('@='), [])
  assert.equal((await client.ask('GET', '/suggestions', `/suggestions?text=${'x'.repeat(201)}`)).status, 422)
})

test('nothing of another account is shown', async () => {
  await using shared = await startShared()
  const [ann, bob] = [await shared.account('ann'), await shared.account('bob')]
  const client = createConsoleClient(shared.url, ann.key)
  const id = await client.submit({ '1': save('x') })
  await client.untilStatus(id, 'succeeded')
  await client.ask('PUT', FORM, '/forms/mine', '{}')
  await client.ask('PUT', VIEW, '/views/mine', { query: 'q=1' })
  await client.submit({ '1': save('y') }, { metadata: { secret: 'theirs' } })
  const [{ asset_id: asset }] = (await client.ask('GET', OUTPUTS)).json.outputs
  const other = createConsoleClient(shared.url, bob.key)
  assert.deepEqual((await other.ask('GET', OUTPUTS)).json.outputs, [])
  assert.deepEqual((await other.ask('GET', '/forms')).json.forms, [])
  assert.equal((await other.ask('GET', FORM, '/forms/mine')).status, 404)
  assert.deepEqual((await other.ask('GET', '/views')).json.views, [])
  assert.equal((await other.ask('DELETE', VIEW, '/views/mine')).status, 404)
  for (const text of ['secr', 'secret=', 'class='])
    assert.deepEqual((await other.ask('GET', '/suggestions', `/suggestions?text=${text}`)).json.suggestions, [])
  assert.equal((await other.ask('GET', '/thumbnails/{asset}', `/thumbnails/${asset}`)).status, 404)
  assert.equal((await other.ask('GET', '/jobs/{id}/outputs.zip', `/jobs/${id}/outputs.zip`)).status, 404)
})
