/**
 * Workflows of one account that use too many resources. Each ends with its own error; meanwhile and afterwards other accounts
 * get answers, and their jobs succeed.
 */
import assert from 'node:assert/strict'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../support/app/start-shared.ts'

type Nodes = Record<string, { class_type: string; inputs: Record<string, unknown> }>

const MIB = 2 ** 20
const show = (id: string) => ({ class_type: 'PreviewAny', inputs: { source: [id, 0] } })
const HELLO: Nodes = { 1: { class_type: 'PrimitiveString', inputs: { value: 'hello' } }, 2: show('1') }

async function submit(tenant: Tenant, workflow: Nodes, extraData?: object): Promise<string> {
  const body = JSON.stringify({ workflow, ...(extraData && { extra_data: extraData }) })
  const answer = await tenant.call('/api/v2/jobs', { method: 'POST', body })
  assert.equal(answer.status, 201, answer.text)
  return answer.json.id
}

/** The event stream of a job ends with the job. */
async function ended(tenant: Tenant, id: string) {
  await tenant.call(`/api/v2/jobs/${id}/events`)
  return (await tenant.call(`/api/v2/jobs/${id}`)).json
}

async function upload(tenant: Tenant, name: string, bytes: Uint8Array<ArrayBuffer>) {
  const form = new FormData()
  form.set('content_type', 'application/octet-stream')
  form.set('file_path', name)
  form.set('file', new Blob([bytes]), name)
  const sent = new Response(form)
  const headers = { 'content-type': sent.headers.get('content-type') ?? '' }
  return tenant.call('/api/v2/assets', { method: 'POST', body: new Uint8Array(await sent.arrayBuffer()), headers })
}

let app: SharedApp
let folder: string
let neighbour: Tenant

before(async () => {
  // Programs that tell what they were given.
  folder = await mkdtemp(join(tmpdir(), 'atelier-hostile-'))
  const program = `#!/bin/sh\nenv > "${folder}/seen"\nexit 1\n`
  for (const name of ['ffmpeg', 'ffprobe']) {
    await writeFile(join(folder, name), program)
    await chmod(join(folder, name), 0o755)
  }
  const environment = {
    ...process.env,
    PATH: `${folder}:${process.env['PATH']}`,
    ATELIER_ADMIN_TOKEN: 'a secret of the environment',
    CLOUD_PASSWORD: 'another one',
  }
  app = await startShared(
    {
      workers: '2',
      engineThreads: '1',
      engineMemory: '64MiB',
      nodeTimeout: '8s',
      // Not what ends the jobs of these tests, however long they wait for the only thread.
      maxRunTime: '1h',
    },
    { overrides: { engine: undefined, environment }, patch: { jobs: { cancelGraceMs: 1000 } } },
  )
  neighbour = await app.account('neighbour')
})

after(async () => {
  await app[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** Another client is served, now. */
async function isServed(): Promise<void> {
  assert.equal((await neighbour.call('/healthz')).status, 200)
  assert.equal((await neighbour.call('/api/v2/jobs')).status, 200)
}

async function neighbourSucceeds(): Promise<void> {
  await isServed()
  const job = await ended(neighbour, await submit(neighbour, HELLO))
  assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
}

/** Runs it as somebody else; gives back how it failed. */
async function fails(account: string, workflow: Nodes): Promise<{ code: string; message: string }> {
  const tenant = await app.account(account)
  const id = await submit(tenant, workflow)
  await neighbourSucceeds()
  const job = await ended(tenant, id)
  assert.equal(job.status, 'failed')
  await neighbourSucceeds()
  return job.error
}

test('a text that doubles, shown again and again, ends its own job', async () => {
  const workflow: Nodes = { n0: { class_type: 'PrimitiveString', inputs: { value: 'x'.repeat(256) } } }
  const join_ = (a: string) => ({
    class_type: 'StringConcatenate',
    inputs: { string_a: [a, 0], string_b: [a, 0], delimiter: '' },
  })
  for (let index = 1; index <= 20; index++) workflow[`n${index}`] = join_(`n${index - 1}`)
  for (let index = 0; index < 24; index++) {
    workflow[`c${index}`] = join_('n20')
    workflow[`p${index}`] = show(`c${index}`)
  }
  const { code, message } = await fails('doubling', workflow)
  assert.equal(code, 'node_execution_error')
  assert.match(message, /characters long; at most 16777216 are allowed/)
})

test('lists of lists of lists end their own job', async () => {
  const workflow: Nodes = { n0: { class_type: 'PrimitiveInt', inputs: { value: 1 } } }
  for (let index = 1; index <= 9; index++) {
    const ten = Array.from({ length: 10 }, (_, input) => [`inputs.input${input}`, [`n${index - 1}`, 0]])
    workflow[`n${index}`] = { class_type: 'CreateList', inputs: Object.fromEntries(ten) }
  }
  workflow.out = show('n9')
  const { message } = await fails('lists', workflow)
  assert.match(message, /the list would have 1000000 elements; at most 100000 are allowed/)
})

test('a list of tiles that nobody can hold is refused before it is cut, and its memory is counted', async () => {
  const workflow: Nodes = {
    1: { class_type: 'EmptyImage', inputs: { width: 1024, height: 1024, batch_size: 1, color: 7 } },
    2: {
      class_type: 'SplitImageToTileList',
      inputs: { image: ['1', 0], tile_width: 64, tile_height: 64, overlap: 63 },
    },
    3: { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'tile' } },
  }
  const { message } = await fails('tiles', workflow)
  assert.match(message, /a job may use 32 MiB of memory: this node asked for 175 MiB/)
  const { engines } = (await app.admin('GET', '/engines')).json
  assert.ok(engines[0].memory_bytes > 0, 'what the engine occupies is shown')
})

test('patterns without end hold the workers for a bounded time, and a job of a third account still runs', async () => {
  const pattern = { string: `${'a'.repeat(40)}!`, regex_pattern: '(a+)+$' }
  const flags = { case_insensitive: false, multiline: false, dotall: false }
  const workflow: Nodes = { 1: { class_type: 'RegexMatch', inputs: { ...pattern, ...flags } }, 2: show('1') }
  const greedy = await Promise.all([app.account('greedy-one'), app.account('greedy-two')])
  const jobs = await Promise.all(greedy.flatMap((tenant) => [1, 2].map(() => submit(tenant, workflow))))
  await neighbourSucceeds()
  for (const [index, id] of jobs.entries()) {
    const { status, error } = await ended(greedy[Math.floor(index / 2)], id)
    assert.equal(status, 'failed')
    // Whichever comes first: on a crowded machine 8 s may pass before the thread has had 3 s of processor time.
    assert.match(error.message, /RegexMatch (used more than 3 s of processor time|did not finish within 8 s)/)
  }
  await neighbourSucceeds()
})

test('an operator cancels a job that waits for an answer that never comes', async () => {
  const tenant = await app.account('silent')
  const workflow: Nodes = {
    1: { class_type: 'RunModel', inputs: { model: 'sandbox/silent', input: '{}' } },
    2: show('1'),
  }
  const id = await submit(tenant, workflow, { api_key_comfy_org: tenant.key })
  while ((await tenant.call(`/api/v2/jobs/${id}`)).json.status === 'queued') await neighbourSucceeds()
  const canceled = await app.admin('POST', `/jobs/${id}/cancel`)
  assert.equal(canceled.status, 200, canceled.text)
  assert.deepEqual([canceled.json.id, canceled.json.account_id], [id, 'silent'])
  assert.equal((await ended(tenant, id)).status, 'canceled')
  const [line] = (await app.admin('GET', `/audit?subject=${id}`)).json.records
  assert.deepEqual([line.action, line.subject, line.details.account_id], ['job.cancel', id, 'silent'])
  assert.equal((await app.admin('POST', '/jobs/11111111-1111-4111-8111-111111111111/cancel')).status, 404)
  await neighbourSucceeds()
})

test('a job that takes longer than its account may ends with a timeout', async () => {
  const tenant = await app.account('slow', { runSeconds: 1 })
  const workflow: Nodes = {
    1: { class_type: 'RunModel', inputs: { model: 'sandbox/silent', input: '{}' } },
    2: show('1'),
  }
  const job = await ended(tenant, await submit(tenant, workflow, { api_key_comfy_org: tenant.key }))
  assert.deepEqual([job.status, job.error.code], ['failed', 'timeout'])
  await neighbourSucceeds()
})

/** The start of a PNG of this size: whoever goes by more than the header finds it damaged. */
function pngHead(side: number, bitDepth: number): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(33)
  header.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13])
  header.write('IHDR', 12)
  header.writeUInt32BE(side, 16)
  header.writeUInt32BE(side, 20)
  header.set([bitDepth, 2, 0, 0, 0], 24)
  const rest = Buffer.from('000000004944415478da000000000000000049454e44ae426082', 'hex')
  return new Uint8Array(Buffer.concat([header, rest]))
}

test('a picture that needs more memory than there is is refused before it is decoded', async () => {
  const tenant = await app.account('large-picture')
  assert.equal((await upload(tenant, 'large.png', pngHead(16_384, 16))).status, 201)
  const workflow: Nodes = {
    1: { class_type: 'LoadImage', inputs: { image: 'large.png' } },
    2: show('1'),
  }
  const job = await ended(tenant, await submit(tenant, workflow))
  assert.equal(job.status, 'failed')
  assert.match(job.error.message, /a job may use 32 MiB of memory: this node asked for 8192 MiB/)
  await neighbourSucceeds()
})

test('programs that a node starts see nothing of our environment but where to find things', async () => {
  const tenant = await app.account('listener')
  assert.equal((await upload(tenant, 'sound.mp3', new Uint8Array([0xff, 0xfb, 0x90, 0x00]))).status, 201)
  const workflow: Nodes = { 1: { class_type: 'LoadAudio', inputs: { audio: 'sound.mp3' } }, 2: show('1') }
  assert.equal((await ended(tenant, await submit(tenant, workflow))).status, 'failed')
  const seen = await readFile(join(folder, 'seen'), 'utf8')
  assert.match(seen, /^PATH=/m)
  assert.doesNotMatch(seen, /ATELIER|secret|CLOUD_PASSWORD/)
})

test('an account keeps no more than it may, by uploads, outputs and models', async () => {
  const tenant = await app.account('hoarder', { storageBytes: MIB })
  assert.equal((await upload(tenant, 'half.bin', new Uint8Array(MIB / 2).fill(1))).status, 201)
  const refused = await upload(tenant, 'more.bin', new Uint8Array(MIB).fill(2))
  assert.equal(refused.status, 413)
  assert.equal(refused.json.error.code, 'payload_too_large')
  assert.equal(refused.json.error.details.reason, 'storage_quota')
  assert.match(refused.json.error.message, /may keep 1048576 bytes/)

  const large: Nodes = { 1: { class_type: 'PrimitiveString', inputs: { value: 'y'.repeat(MIB) } }, 2: show('1') }
  const job = await ended(tenant, await submit(tenant, large))
  assert.deepEqual([job.status, job.error.code], ['failed', 'storage_quota'])

  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ size_bytes: 2 * MIB })
  const result = await tenant.call('/v2/models/sandbox/large', { method: 'POST', headers, body })
  assert.equal(result.status, 413, result.text)
  const small = JSON.stringify({ size_bytes: 400_000 })
  assert.equal((await tenant.call('/v2/models/sandbox/large', { method: 'POST', headers, body: small })).status, 200)
  // What was delivered lies on the disk until it is collected.
  const second = await tenant.call('/v2/models/sandbox/large', { method: 'POST', headers, body: small })
  assert.equal(second.status, 413)
  await neighbourSucceeds()
})

test('without sandbox models there are none', async () => {
  await using plain = await startShared({ sandboxModels: 'off' })
  const tenant = await plain.account('acme')
  const list = await tenant.call('/v2/models?limit=1000')
  assert.equal(list.status, 200, list.text)
  assert.doesNotMatch(list.text, /"sandbox\//)
  const headers = { 'content-type': 'application/json' }
  const call = await tenant.call('/v2/models/sandbox/echo', { method: 'POST', headers, body: '{"value":1}' })
  assert.equal(call.status, 404)
})
