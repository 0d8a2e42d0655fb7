/**
 * What the owner of a shared endpoint fixed in it: files and deployments that are lent to the runs of others, and never given away.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import sharp from 'sharp'
import { startShared, type Tenant } from '../../support/app/start-shared.ts'
import { call } from '../../support/clients/call.ts'
import { node } from '../../support/clients/checked-client.ts'
import { card } from '../../support/endpoints/card.ts'
import { startHttpFake } from '../../support/providers/http-fake.ts'

const TEXT = node('FakeFile', { text: 'plain ', filename: 'note.txt', content_type: 'text/plain' })

test('the files of such a run are stored without the workflow that the engine writes into them', async () => {
  const overrides = { engine: undefined } as object
  await using app = await startShared({}, { overrides })
  const [owner, friend] = [await app.account('acme'), await app.account('friend')]
  const file = card('Hello')
  const body = JSON.stringify({ name: 'card', file, callers: ['*'] })
  assert.equal((await owner.call('/api/v2/endpoints', { method: 'POST', body })).status, 201)
  const pictureOf = async (tenant: Tenant, name: string) => {
    const { json } = await tenant.call(`/api/v2/endpoints/${name}/runs`, {
      ...{ method: 'POST', headers: { prefer: 'wait=60' }, body: '{"inputs": {"headline": "Hi"}}' },
    })
    assert.equal(json.status, 'succeeded', JSON.stringify(json))
    const [{ id, hash }] = json.outputs
    const { bytes } = await tenant.call(`/api/v2/assets/${id}/content`)
    const { headers } = await tenant.call(`/api/v2/assets/${id}/content`)
    const content =
      headers.location === undefined
        ? bytes
        : (await call(app.url, new URL(headers.location, app.url).pathname + new URL(headers.location, app.url).search))
            .bytes
    return {
      content,
      hash,
      names: Object.keys((await tenant.call(`/api/history/${json.id}`)).json[json.id]?.outputs ?? {}),
    }
  }
  const [own, foreign] = [await pictureOf(owner, 'card'), await pictureOf(friend, 'acme%2Fcard')]
  assert.match(own.content.toString('latin1'), /TextOverlay/)
  assert.doesNotMatch(foreign.content.toString('latin1'), /TextOverlay|class_type/)
  assert.equal(own.content.length, foreign.content.length)
  assert.notEqual(own.hash, foreign.hash)
  assert.deepEqual(foreign.names, own.names)
})

test('a file that its owner fixed is used for callers who do not have it, and by no other way', async () => {
  const overrides = { engine: undefined } as object
  await using app = await startShared({}, { overrides })
  const [owner, friend] = [await app.account('acme'), await app.account('friend')]
  const upload = async (tenant: Tenant, name: string, background: string) => {
    const picture = { create: { width: 24, height: 8, channels: 3, background } } as const
    const form = new FormData()
    form.set('content_type', 'image/png')
    form.set('file_path', name)
    form.set('file', new Blob([await sharp(picture).png().toBuffer()]), name)
    const headers = { authorization: `Bearer ${tenant.key}` }
    const response = await fetch(`${app.url}/api/v2/assets`, { method: 'POST', headers, body: form })
    assert.equal(response.status, 201)
    return (await response.json()) as { readonly id: string; readonly hash: string }
  }
  const logo = await upload(owner, 'logo.png', '#ff0000')
  await upload(owner, 'photo.png', '#ffffff')
  const secret = await upload(owner, 'secret.png', '#00ff00')
  await upload(friend, 'photo.png', '#0000ff')
  const file = {
    '1': node('LoadImage', { image: 'logo.png' }),
    '2': node('LoadImage', { image: { __type: 'core/ASSET', info: { id: logo.id } } }),
    '3': node('LoadImage', { image: 'photo.png' }),
    '4': node('SaveImage', { images: ['1', 0], filename_prefix: 'name' }),
    '5': node('SaveImage', { images: ['2', 0], filename_prefix: 'id' }),
    '6': node('SaveImage', { images: ['3', 0], filename_prefix: 'given' }),
  }
  const declaration = {
    ...{ only: true, inputs: { photo: { from: '3.image' } } },
    outputs: { name: { from: '4' }, id: { from: '5' }, given: { from: '6' } },
  }
  const body = JSON.stringify({ name: 'logo', file, declaration, callers: ['friend'] })
  const published = await owner.call('/api/v2/endpoints', { method: 'POST', body })
  assert.equal(published.status, 201, published.text)
  for (const path of ['', '/versions/1', '/schema', '/openapi.json', '/docs']) {
    const { status, text } = await friend.call(`/api/v2/endpoints/acme%2Flogo${path}`)
    assert.equal(status, 200)
    assert.doesNotMatch(text, /photo\.png|logo\.png/, path)
  }
  const ask = (tenant: Tenant, photo: unknown, path = 'runs') =>
    tenant.call(`/api/v2/endpoints/acme%2Flogo/${path}`, {
      ...{ method: 'POST', headers: { prefer: 'wait=60' } },
      body: JSON.stringify(path === 'runs/batch' ? { items: [{ photo }, { photo }] } : { inputs: { photo } }),
    })
  const colourOf = async (tenant: Tenant, [{ url }]: readonly { readonly url: string }[]) => {
    const { pathname, search } = new URL(url, app.url)
    const first = await tenant.call(pathname + search)
    const to = first.headers.location === undefined ? null : new URL(first.headers.location, app.url)
    const { bytes } = to === null ? first : await call(app.url, to.pathname + to.search)
    return [...(await sharp(bytes).removeAlpha().raw().toBuffer()).subarray(0, 3)]
  }
  const run = await ask(friend, 'photo.png')
  assert.deepEqual([run.status, run.json.status], [200, 'succeeded'], run.text)
  const { results } = run.json
  assert.deepEqual(await colourOf(friend, results.name), [255, 0, 0])
  assert.deepEqual(await colourOf(friend, results.id), [255, 0, 0])
  assert.deepEqual(
    await colourOf(friend, results.given),
    [0, 0, 255],
    'of two files of one name each account has its own',
  )
  assert.equal((await ask(friend, 'photo.png', 'runs/validate')).json.is_accepted, true)
  const batch = await ask(friend, 'photo.png', 'runs/batch')
  assert.equal(batch.status, 201, batch.text)

  // It is lent for this place alone.
  for (const name of [
    'secret.png',
    'logo.png',
    secret.id,
    logo.id,
    logo.hash,
    { __type: 'core/ASSET', info: { hash: logo.hash } },
  ])
    assert.equal((await ask(friend, name)).status, 422, JSON.stringify(name))
  const own = JSON.stringify({ workflow: { '1': file['1'], '4': file['4'] } })
  assert.equal((await friend.call('/api/v2/jobs', { method: 'POST', body: own })).status, 422)
  const listed = await friend.call('/console/v1/assets')
  assert.equal(listed.status, 200)
  assert.ok(!listed.text.includes(logo.id) && !listed.text.includes('logo.png'))
  assert.equal((await friend.call(`/api/v2/assets/${logo.id}`)).status, 404)
  for (const path of [`/api/v2/jobs/${run.json.id}`, `/console/v1/jobs/${run.json.id}`]) {
    const { text } = await friend.call(path)
    for (const part of [logo.id, 'logo.png', logo.hash.slice('blake3:'.length)]) assert.ok(!text.includes(part), path)
  }
  const { inputs } = (await friend.call(`/console/v1/jobs/${run.json.id}`)).json
  assert.deepEqual(
    inputs.map(({ name, url }: { name: string; url: string | null }) => [name, url !== null]),
    [['photo.png', true]],
  )

  assert.equal((await owner.call(`/api/v2/assets/${logo.id}`, { method: 'DELETE' })).status, 204)
  const gone = await ask(friend, 'photo.png')
  assert.deepEqual([gone.status, gone.json.error.code], [422, 'endpoint_stopped'])
  assert.ok(!gone.text.includes('logo'.concat('.png')))
})

test('a deployment of the caller alone, which runs what its account put there, is given no workflow of another account', async () => {
  await using app = await startShared({
    ...{ kind: 'serverless', deploymentsDomain: 'example.test', publicUrl: 'https://api.example.test' },
  })
  const [owner, friend] = [await app.account('acme'), await app.account('friend')]
  for (const [id, accountId] of [
    ['of-friend', 'friend'],
    ['of-all', null],
  ]) {
    const made = await app.admin('POST', '/deployments', { id, account_id: accountId, workers: 1 })
    assert.equal(made.status, 201, made.text)
    await app.untilDeployment(String(id), 'ready')
  }
  for (const [tenant, name] of [
    [owner, 'theirs'],
    [friend, 'mine'],
  ] as const) {
    const declaration = { only: true, inputs: { text: { from: '1.text' } } }
    const callers = tenant === owner ? ['friend'] : []
    const body = JSON.stringify({ name, file: { '1': TEXT }, declaration, callers })
    assert.equal((await tenant.call('/api/v2/endpoints', { method: 'POST', body })).status, 201)
  }
  const poolOf = async (prefix: string, name: string) => {
    const path = `${prefix}/api/v2/endpoints/${encodeURIComponent(name)}/runs`
    const { status, json, text } = await friend.call(path, { method: 'POST', body: '{"inputs": {"text": "a"}}' })
    assert.equal(status, 201, text)
    return (await friend.call(`/console/v1/jobs/${json.id}`)).json.pool
  }
  const pools = async (name: string) =>
    Promise.all(['', '/deployment/of-friend', '/deployment/of-all'].map((prefix) => poolOf(prefix, name)))
  assert.deepEqual(await pools('mine'), ['default', 'of-friend', 'of-all'])
  assert.deepEqual(await pools('acme/theirs'), ['default', 'default', 'of-all'])
})

test('a file that its owner named by an address is fetched for no caller, who would have it then', async () => {
  const create = { width: 8, height: 8, channels: 3, background: '#ff0000' } as const
  const png = await sharp({ create }).png().toBuffer()
  const asked: string[] = []
  await using source = await startHttpFake((request, response) => {
    asked.push(request.url ?? '')
    response.end(png)
  })
  await using app = await startShared(
    { inputUrls: `${source.url},jobs` },
    { overrides: { engine: undefined } as object },
  )
  const [owner, friend] = [await app.account('acme'), await app.account('friend')]
  const address = { url: `${source.url}/private.png` }
  for (const [name, image] of Object.entries({ bare: address, asset: { __type: 'core/ASSET', info: address } })) {
    const file = {
      '1': node('LoadImage', { image }),
      '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'made' }),
    }
    const declaration = { only: true, inputs: { prefix: { from: '2.filename_prefix' } } }
    const body = JSON.stringify({ name, file, declaration, callers: ['friend'] })
    const published = await owner.call('/api/v2/endpoints', { method: 'POST', body })
    assert.equal(published.status, 201, published.text)
    const run = (tenant: Tenant, called: string, path = 'runs') =>
      tenant.call(`/api/v2/endpoints/${called}/${path}`, { method: 'POST', body: '{"inputs": {"prefix": "a"}}' })
    assert.equal((await run(owner, name)).status, 201)
    const before = asked.length
    const refused = await run(friend, `acme%2F${name}`)
    assert.deepEqual([refused.status, refused.json.error.code], [422, 'endpoint_stopped'], refused.text)
    assert.equal((await run(friend, `acme%2F${name}`, 'runs/validate')).json.is_accepted, false)
    assert.equal(asked.length, before)
  }
  assert.deepEqual((await friend.call('/console/v1/assets')).json.assets, [])
})
