/** The asset library of the v1 API: listed, described, tagged, added to, fetched into, and removed from. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import sharp from 'sharp'
import { WebSocket } from 'ws'
import { startFleetApp } from '../../../../test/support/app/fleet-app.ts'
import { startTestApp, type TestApp } from '../../../../test/support/app/start-app.ts'
import { isOnPostgres } from '../../../../test/support/app/test-store.ts'
import { type Json, LegacyClient } from '../../../../test/support/clients/legacy-client.ts'
import { isText, openSocket } from '../../../../test/support/clients/test-socket.ts'
import { createFakeEngine } from '../../../../test/support/engines/fake-engine.ts'

const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const BLAKE3 = /^blake3:[0-9a-f]{64}$/

function add(client: LegacyClient, bytes: string | Buffer, fields: Readonly<Record<string, string>>, name = 'a.png') {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) form.append(field, value)
  form.append('file', new Blob([new Uint8Array(Buffer.from(bytes))]), name)
  return client.call('/api/assets', { method: 'POST', body: form })
}

function send(client: LegacyClient, method: string, path: string, body: object) {
  return client.call(path, { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
}

async function listNames(client: LegacyClient, query = ''): Promise<string[]> {
  const { status, json, text } = await client.get(`/api/assets?${query}&limit=500`)
  assert.equal(status, 200, text)
  return json.assets.map(({ name }: Json) => name)
}

/** A file that begins and ends as loaders want it. */
function weights(metadata: object = {}): Buffer {
  const header = Buffer.from(JSON.stringify({ __metadata__: metadata }))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, header])
}

describe('the library', () => {
  let app: TestApp
  let client: LegacyClient
  before(async () => {
    app = await startTestApp({ overrides: { engine: createFakeEngine() } })
    client = new LegacyClient(app.url)
  })
  after(() => app[Symbol.asyncDispose]())

  test('a new file is as its tags say: in a folder that nodes load from, or in none', async () => {
    const input = await add(client, 'in', { tags: '["input","mine"]', user_metadata: '{"seed":18446744073709551615}' })
    assert.equal(input.status, 201, input.text)
    const { id, hash, asset_hash, tags, loader_path, name, size, created_new, mime_type } = input.json
    assert.deepEqual([tags, loader_path, name, size, created_new], [['input', 'mine'], 'a.png', 'a.png', 2, true])
    assert.equal(mime_type, 'image/png')
    assert.match(hash, BLAKE3)
    assert.equal(asset_hash, hash)
    assert.match(input.text, /"user_metadata":\{"seed":18446744073709551615\}/)
    const again = await add(client, 'in', { tags: 'input,mine' })
    assert.deepEqual([again.status, again.json.id, again.json.created_new], [200, id, false])
    assert.equal((await client.get('/view?filename=a.png&type=input')).text, 'in')

    const preview = await add(client, 'pre', { tags: '["preview"]', name: 'what it looks like.png' })
    assert.deepEqual([preview.json.tags, preview.json.loader_path], [['preview'], undefined])
    assert.equal(preview.json.name, 'what it looks like.png')
    assert.ok(!JSON.stringify((await client.get('/internal/files/input')).json).includes('looks like'))

    const temp = await add(client, 'tmp', { tags: 'temp' }, 'b.png')
    assert.equal(temp.json.loader_path, 'b.png [temp]')
  })

  test('a file may be given its id beforehand: what is sent again under it is not kept', async () => {
    const id = crypto.randomUUID()
    const first = await add(client, 'with an id', { id, tags: 'input' }, 'id.png')
    assert.deepEqual([first.status, first.json.id], [201, id])
    const again = await add(client, 'other bytes', { id, tags: 'input' }, 'other.png')
    assert.deepEqual([again.status, again.json.id, again.json.name], [200, id, 'id.png'])
    assert.equal((await client.get('/view?filename=other.png&type=input')).status, 404)
    const form = new FormData()
    form.append('file', new Blob(['x']), 'x.png')
    form.append('id', crypto.randomUUID())
    const late = await client.call('/api/assets', { method: 'POST', body: form })
    assert.deepEqual([late.status, late.json.message], [400, 'id must come before the file'])
  })

  test('outputs of jobs are in it with their job, and an output that is deleted is only shown no more', async () => {
    const jobId = await client.accepted({ '1': { class_type: 'FakeSave', inputs: { text: 'made', count: 2 } } })
    await client.untilHistory(jobId)
    const { json } = await client.get('/api/assets?tags_any=output&sort=created_at')
    assert.deepEqual([json.total, json.assets.length, json.has_more], [2, 2, false])
    const [asset] = json.assets
    assert.deepEqual([asset.job_id, asset.prompt_id, asset.tags], [jobId, jobId, ['output']])
    assert.equal(asset.loader_path, `${asset.name} [output]`)
    const content = await client.get(`/api/assets/${asset.id}/content`)
    assert.equal(content.status, 302)
    assert.equal((await client.call(`/api/assets/${asset.id}`, { method: 'DELETE' })).status, 204)
    assert.equal((await client.get('/api/assets?tags_any=output')).json.total, 1)
    for (const path of [`/api/assets/${asset.id}`, `/api/assets/${asset.id}/content`])
      assert.equal((await client.get(path)).status, 404)
    assert.equal((await client.get(`/api/jobs/${jobId}`)).json.outputs_count, 2)
  })

  test('what its owner says of a file is kept, and the Jobs API shows the file as it was made', async () => {
    const { json: made } = await add(client, 'described', { tags: 'input' }, 'plain.png')
    const preview = (await add(client, 'thumb', { tags: 'preview' }, 't.png')).json.id
    const changed = await send(client, 'PUT', `/api/assets/${made.id}`, {
      ...{ name: 'A better name', mime_type: 'image/webp', preview_id: preview, tags: ['kept'] },
      user_metadata: { base_model: ['sdxl'], note: 'x' },
    })
    const { json } = await client.get(`/api/assets/${made.id}`)
    assert.deepEqual(changed.json, json)
    assert.deepEqual([json.name, json.mime_type, json.tags], ['A better name', 'image/webp', ['input', 'kept']])
    assert.equal(json.preview_url, `${app.url}/api/assets/${preview}/content`)
    assert.notEqual(json.updated_at, undefined)
    const { json: asset } = await client.get(`/api/v2/assets/${made.id}`)
    assert.equal(asset.content_type, 'image/png')
    const cleared = await send(client, 'PUT', `/api/assets/${made.id}`, { preview_id: null })
    assert.equal(cleared.json.preview_id, undefined)
    const nothing = await send(client, 'PUT', `/api/assets/${made.id}`, { other: 1 })
    assert.equal(nothing.status, 400)
    assert.equal((await send(client, 'PUT', `/api/assets/${UNKNOWN}`, { name: 'x' })).status, 404)
  })

  test('tags are added and taken away; those that say where a file is kept stay', async () => {
    const { json: made } = await add(client, 'tagged', { tags: 'input,a' }, 'tagged.png')
    const at = `/api/assets/${made.id}/tags`
    const added = await send(client, 'POST', at, { tags: ['a', 'b', 'c'] })
    assert.deepEqual(added.json, {
      ...{ total_tags: ['input', 'a', 'b', 'c'], added: ['b', 'c'], already_present: ['a'] },
    })
    const removed = await send(client, 'DELETE', at, { tags: ['b', 'z'] })
    assert.deepEqual(removed.json, { total_tags: ['input', 'a', 'c'], removed: ['b'], not_present: ['z'] })
    for (const [method, tag] of [
      ['DELETE', 'input'],
      ['POST', 'models'],
      ['POST', 'model_type:vae'],
    ] as const)
      assert.equal((await send(client, method, at, { tags: [tag] })).status, 400, `${method} ${tag}`)
    assert.equal((await send(client, 'POST', at, { tags: [] })).status, 400)
  })

  test('changes that are made at once are all there', async () => {
    const { json: made } = await add(client, 'busy', { tags: 'input' }, 'busy.png')
    const tags = Array.from({ length: 6 }, (_, index) => `t${index}`)
    const answers = await Promise.all(
      tags.map((tag) => send(client, 'POST', `/api/assets/${made.id}/tags`, { tags: [tag] })),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      tags.map(() => 200),
    )
    assert.deepEqual((await client.get(`/api/assets/${made.id}`)).json.tags.toSorted(), ['input', ...tags])
  })

  test('a removed upload is gone', async () => {
    const { json: made } = await add(client, 'gone', { tags: 'input' }, 'gone.png')
    assert.equal((await client.call(`/api/assets/${made.id}`, { method: 'DELETE' })).status, 204)
    assert.equal((await client.get(`/api/assets/${made.id}`)).status, 404)
    assert.equal((await client.call(`/api/assets/${made.id}`, { method: 'DELETE' })).status, 404)
  })

  test('bytes that are there are found by their hash, and become another file of it', async () => {
    const { hash } = (await add(client, 'known bytes', { tags: 'input' }, 'known.png')).json
    const unknown = `blake3:${'5'.repeat(64)}`
    const head = (text: string) => client.call(`/api/assets/hash/${text}`, { method: 'HEAD' })
    assert.deepEqual(
      [(await head(hash)).status, (await head(unknown)).status, (await head('md5:5')).status],
      [200, 404, 400],
    )
    const made = await send(client, 'POST', '/api/assets/from-hash', { hash, tags: ['input'], name: 'second.png' })
    assert.deepEqual([made.status, made.json.name, made.json.hash], [201, 'second.png', hash])
    assert.equal((await client.get('/view?filename=second.png&type=input')).text, 'known bytes')
    const bare = await send(client, 'POST', '/api/assets/from-hash', { hash: hash.slice(7), tags: ['input'] })
    assert.deepEqual([bare.status, bare.json.name, bare.json.created_new], [200, 'second.png', false])
    for (const wanted of [unknown, `sha256:${'5'.repeat(64)}`])
      assert.equal((await send(client, 'POST', '/api/assets/from-hash', { hash: wanted, tags: ['x'] })).status, 404)
    for (const body of [{ hash }, { hash, tags: [] }, { hash: 'photo.png', tags: ['x'] }])
      assert.equal((await send(client, 'POST', '/api/assets/from-hash', body)).status, 400)
  })

  test('pictures that the mask editor saved together are found by the name of any of them', async () => {
    for (const layer of ['mask', 'painted', 'painted-masked'])
      await client.upload(`clipspace-${layer}-17.png`, Buffer.from(layer), { subfolder: 'clipspace' })
    const layers = {
      ...{ mask: 'clipspace-mask-17.png', paint: null, painted: 'clipspace-painted-17.png' },
      painted_masked: 'clipspace-painted-masked-17.png',
    }
    for (const name of ['clipspace-painted-17.png', 'clipspace/clipspace-mask-17.png [input]'])
      assert.deepEqual((await client.get(`/api/files/mask-layers?filename=${encodeURIComponent(name)}`)).json, layers)
    for (const name of ['clipspace-mask-18.png', 'photo.png'])
      assert.equal((await client.get(`/api/files/mask-layers?filename=${name}`)).status, 404)
  })

  test('there is no subgraph that could be named', async () => {
    assert.deepEqual((await client.get('/api/global_subgraphs')).json, {})
    assert.equal((await client.get('/global_subgraphs/x')).status, 404)
  })
})

describe('lists of the library', () => {
  let app: TestApp
  let client: LegacyClient
  before(async () => {
    app = await startTestApp({ overrides: { engine: createFakeEngine() } })
    client = new LegacyClient(app.url)
    const files = [
      ['a.png', 'input,red', { size: 'big', of: ['x', 'y'] }],
      ['B.png', 'input,red,blue', { size: 'small' }],
      ['c.txt', 'temp,blue', {}],
      ['d', 'loose', {}],
    ] as const
    for (const [name, tags, metadata] of files)
      assert.equal((await add(client, name, { tags, user_metadata: JSON.stringify(metadata) }, name)).status, 201)
  })
  after(() => app[Symbol.asyncDispose]())

  test('are by tags that all, one or none of must be there', async () => {
    assert.deepEqual(await listNames(client, 'include_tags=red,blue'), ['B.png'])
    assert.deepEqual(await listNames(client, 'include_tags=red&include_tags=blue'), ['B.png'])
    assert.deepEqual(await listNames(client, 'tags_any=temp,loose&order=asc'), ['c.txt', 'd'])
    assert.deepEqual(await listNames(client, 'include_tags=input&exclude_tags=blue'), ['a.png'])
    assert.deepEqual(await listNames(client, 'tags_none=input,temp'), ['d'])
    assert.deepEqual(await listNames(client, 'include_tags=models'), [])
  })

  test('are by name, by metadata, and by what a node names', async () => {
    assert.deepEqual(await listNames(client, 'name_contains=b.P'), ['B.png'])
    const by = (filter: object) => listNames(client, `metadata_filter=${encodeURIComponent(JSON.stringify(filter))}`)
    assert.deepEqual(await by({ size: 'big' }), ['a.png'])
    assert.deepEqual((await by({ size: ['big', 'small'] })).toSorted(), ['B.png', 'a.png'])
    assert.deepEqual(await by({ of: 'y' }), ['a.png'])
    assert.deepEqual((await by({ size: null })).toSorted(), ['c.txt', 'd'])
    assert.deepEqual(await listNames(client, 'hash=a.png'), ['a.png'])
    assert.deepEqual(await listNames(client, 'hash=c.txt%20[temp]'), ['c.txt'])
    const { hash } = (await client.get('/api/assets?name_contains=B')).json.assets[0]
    assert.deepEqual(await listNames(client, `hash=${hash}`), ['B.png'])
    assert.deepEqual(await listNames(client, `hash=${hash.slice(7)}.png`), ['B.png'])
    assert.deepEqual(await listNames(client, 'hash=nothing.png'), [])
  })

  test('are sorted, and cut into pages that lack and repeat nothing', async () => {
    assert.deepEqual(await listNames(client, 'sort=name&order=asc'), ['B.png', 'a.png', 'c.txt', 'd'])
    assert.equal((await listNames(client, 'sort=size&order=asc'))[0], 'd')
    assert.deepEqual(await listNames(client, 'sort=name&order=asc&offset=2&limit=1'), ['c.txt'])
    const seen: string[] = []
    for (let after = ''; ; ) {
      const { json } = await client.get(`/api/assets?limit=1&sort=name&order=desc&after=${after}`)
      assert.equal(json.total, 4)
      seen.push(...json.assets.map(({ name }: Json) => name))
      assert.equal(json.has_more, json.next_cursor !== undefined)
      if (!json.has_more) break
      after = json.next_cursor
      const other = await client.get(`/api/assets?limit=1&sort=size&after=${after}`)
      assert.equal(other.status, 400, 'a cursor belongs to its list')
    }
    assert.deepEqual(seen, ['d', 'c.txt', 'a.png', 'B.png'])
  })

  test('of tags have their counts', async () => {
    const { json } = await client.get('/api/tags')
    assert.deepEqual(json, {
      tags: [
        ...['blue', 'input', 'red'].map((name) => ({ name, count: 2 })),
        ...['loose', 'temp'].map((name) => ({ name, count: 1 })),
      ],
      ...{ total: 5, has_more: false },
    })
    const { json: page } = await client.get('/api/tags?order=name_asc&prefix=L&limit=1')
    assert.deepEqual(page, { tags: [{ name: 'loose', count: 1 }], total: 1, has_more: false })
    const { json: refined } = await client.get('/api/assets/tags/refine?include_tags=input')
    assert.deepEqual(refined, { tag_counts: { input: 2, red: 2, blue: 1 } })
  })

  test('refuse what they cannot read, and say what', async () => {
    for (const query of [
      'limit=0',
      'limit=501',
      'sort=other',
      'order=up',
      'offset=-1',
      'metadata_filter=[]',
      'after=x',
    ])
      assert.equal((await client.get(`/api/assets?${query}`)).status, 400, query)
  })
})

describe('models in the library', () => {
  test('those that engines have are beside those of the account, cannot be changed, and have no bytes here', async () => {
    await using app = await startFleetApp({ servers: [{ checkpoints: ['sdxl/base.safetensors'] }] })
    const client = new LegacyClient(app.url)
    const { json } = await client.get('/api/assets?include_tags=models&exclude_tags=missing&include_public=false')
    const model = json.assets.find(({ name }: Json) => name === 'base.safetensors')
    assert.deepEqual(model.tags, ['models', 'checkpoints', 'model_type:checkpoints'])
    assert.deepEqual([model.loader_path, model.is_immutable], ['sdxl/base.safetensors', true])
    assert.deepEqual((await client.get(`/api/assets/${model.id}`)).json, model)
    assert.equal((await send(client, 'PUT', `/api/assets/${model.id}`, { name: 'mine' })).status, 403)
    assert.equal((await client.call(`/api/assets/${model.id}`, { method: 'DELETE' })).status, 403)
    assert.equal((await client.get(`/api/assets/${model.id}/content`)).status, 404)
    const socket = await openSocket(new WebSocket(`${app.url.replace('http', 'ws')}/ws?clientId=c`))
    assert.equal((await client.post('/api/assets/seed', { roots: ['models'] })).status, 200)
    await socket.until((frame) => isText(frame, 'assets.seed.completed'))
    assert.ok(socket.frames.some((frame) => isText(frame, 'assets.seed.fast_complete')))
    await socket.close()
  })

  const placing =
    'are uploaded into their folder, and have the picture that their owner chose or their file brings along'
  // A folder of one machine is refused with Postgres.
  if (!isOnPostgres)
    test(placing, async () => {
      const modelsDir = await mkdtemp(path.join(tmpdir(), 'atelier-models-'))
      await mkdir(path.join(modelsDir, 'loras'), { recursive: true })
      try {
        await using app = await startTestApp({ settings: { modelsDir }, overrides: { engine: createFakeEngine() } })
        const client = new LegacyClient(app.url)
        const draw = (background: string) =>
          sharp({ create: { width: 8, height: 8, channels: 3, background } })
            .png()
            .toBuffer()
        const thumbnail = `data:image/png;base64,${(await draw('#00ff00')).toString('base64')}`
        const bytes = weights({ 'modelspec.thumbnail': thumbnail })
        const made = await add(client, bytes, { tags: '["models","loras","styles"]' }, 'style.safetensors')
        assert.equal(made.status, 201, made.text)
        assert.deepEqual(made.json.tags, ['models', 'loras', 'model_type:loras', 'styles'])
        assert.equal(made.json.loader_path, 'style.safetensors')
        assert.deepEqual(await readFile(path.join(modelsDir, 'loras/style.safetensors')), bytes)
        const at = '/experiment/models/preview/loras/0'
        const colorOf = async (name: string) => {
          const { status, bytes: picture, headers } = await client.get(`${at}/${name}`)
          if (status !== 200) return status
          assert.equal(headers.get('content-type'), 'image/webp')
          const { data } = await sharp(picture).raw().toBuffer({ resolveWithObject: true })
          return data[1] > data[2] ? 'green' : 'blue'
        }
        for (const name of ['style.webp', 'style.safetensors', 'style.safetensors.webp', 'style'])
          assert.equal(await colorOf(name), 'green', name)
        assert.equal(await colorOf('other.webp'), 404)
        const preview = await add(client, await draw('#0000ff'), { tags: '["preview"]' }, 'p.png')
        await send(client, 'PUT', `/api/assets/${made.json.id}`, { preview_id: preview.json.id })
        assert.equal(await colorOf('style.webp'), 'blue')
        for (const [tags, name] of [
          ['["models","loras"]', 'style.ckpt'],
          ['["models"]', 'x.safetensors'],
          ['["models","model_type:nothing"]', 'x.safetensors'],
        ] as const)
          assert.equal((await add(client, bytes, { tags }, name)).status, 400, `${tags} ${name}`)
      } finally {
        await rm(modelsDir, { recursive: true, force: true })
      }
    })
})
