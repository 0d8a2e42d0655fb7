/** A workflow as an endpoint, through the whole service and on the built-in engine. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import type { Answer } from '../../support/clients/call.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'

const titled = (title: string, classType: string, inputs: object) => ({ ...node(classType, inputs), _meta: { title } })

function card(text: string, more: object = {}) {
  return {
    '1': node('EmptyImage', { width: 64, height: 32, batch_size: 1, color: 2105376 }),
    '2': titled('$headline', 'TextOverlay', {
      ...{ images: ['1', 0], text, font_size: 8, color: '#ffffff', position: 'top', align: 'center', outline: false },
      ...more,
    }),
    '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'card' }),
  }
}

const DECLARATION = {
  title: 'A card',
  only: true,
  inputs: {
    headline: { description: 'What the card says.', max_length: 20, required: true },
    width: { from: '1.width', maximum: 512 },
    align: { from: '2.align' },
  },
}

describe('an endpoint', () => {
  let service: TestApp
  let client: CheckedClient
  before(async () => {
    service = await startTestApp({ settings: { workers: '2' } })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    client.call(`/api/v2/endpoints${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const publish = (name: string, file: object, more: object = {}) =>
    send('POST', '', { name, file, declaration: DECLARATION, ...more })
  const run = (reference: string, inputs: object, headers: Record<string, string> = { prefer: 'wait=60' }) =>
    send('POST', `/${reference}/runs`, { inputs }, headers)
  const wrong = (answer: Answer) =>
    answer.json.error.details.inputs.map((each: { name: string; reason: string }) => `${each.name}: ${each.reason}`)

  test('is published from a graph, and answers a call with the picture that it made', async () => {
    const made = await publish('card', card('Hello'))
    assert.equal(made.status, 201, made.text)
    const { endpoint, version } = made.json
    assert.deepEqual(
      [endpoint.name, endpoint.title, endpoint.state, endpoint.current_version],
      ['card', 'A card', 'ready', 1],
    )
    assert.deepEqual(
      version.inputs.map((input: { name: string; type: string; required: boolean }) => [
        input.name,
        input.type,
        input.required,
      ]),
      [
        ['headline', 'text', true],
        ['width', 'integer', false],
        ['align', 'choice', false],
      ],
    )
    const answer = await run('card', { headline: 'Good morning', width: 128 })
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual([answer.json.status, answer.json.endpoint], ['succeeded', { name: 'card', version: 1 }])
    assert.deepEqual(answer.json.inputs, { headline: 'Good morning', width: 128, align: 'center' })
    const [picture] = answer.json.results.image
    const png = Buffer.from(await (await fetch(picture.url)).arrayBuffer())
    assert.deepEqual([picture.content_type, png.readUInt32BE(16), png.readUInt32BE(20)], ['image/png', 128, 32])
  })

  test('takes nothing but its inputs, and names every mistake', async () => {
    const refused = await run('card', { headlin: 'x', headline: 'x'.repeat(21), width: 4096, color: '#000000' })
    assert.equal(refused.status, 422, refused.text)
    assert.equal(refused.json.error.code, 'invalid_input')
    assert.deepEqual(wrong(refused), ['headlin: unknown', 'color: unknown', 'headline: too_long', 'width: too_large'])
    const missing = await run('card', {})
    assert.deepEqual([missing.status, wrong(missing)], [422, ['headline: missing']])
    const outside = await send('POST', '/card/runs', { headline: 'x' })
    assert.match(outside.json.error.message, /put the inputs of the endpoint in the object inputs/)
  })

  test('is described as a schema and as an OpenAPI document of its own', async () => {
    const schema = await send('GET', '/card/schema')
    assert.deepEqual(schema.json.required, ['headline'])
    assert.deepEqual([schema.json.properties.width.maximum, schema.json.properties.align.enum.length], [512, 3])
    const document = (await send('GET', '/card/openapi.json')).json
    assert.equal(document.paths['/api/v2/endpoints/card/runs'].post.operationId, 'run_card')
    const all = (await send('GET', '/openapi.json')).json
    assert.ok(all.paths['/api/v2/endpoints/card/runs'] !== undefined)
  })

  test('is shown on a page, with samples in three languages that run as they stand', async () => {
    await publish('quoted', card(`It's <"5">\\`), { note: '' })
    const document = (await send('GET', '/quoted/openapi.json?version=latest')).json
    const samples: { label: string; source: string }[] =
      document.paths['/api/v2/endpoints/quoted@latest/runs'].post['x-codeSamples']
    const runners: Record<string, [string, string[]]> = {
      curl: ['bash', ['-c']],
      TypeScript: [process.execPath, ['--input-type=module-typescript', '-e']],
      Python: [process.env['ATELIER_TEST_PYTHON'] ?? 'python3', ['-c']],
    }
    assert.deepEqual(
      samples.map(({ label }) => label),
      Object.keys(runners),
    )
    for (const { label, source } of samples) {
      const [program, args] = runners[label]
      const { stdout } = await promisify(execFile)(program, [...args, source])
      assert.match(stdout, /succeeded/, label)
    }
    const runs = (await send('GET', '/quoted/runs')).json.runs
    assert.equal(runs.length, samples.length)
    const page = await send('GET', '/quoted/docs')
    assert.match(String(page.headers['content-type']), /^text\/html/)
    assert.match(page.text, /What the card says\./)
    assert.match(page.text, /It&#39;/)
    assert.doesNotMatch(page.text, /<"5">/)
    assert.match((await send('GET', '/docs')).text, /endpoints\/quoted\/runs/)
  })

  test('has versions that never change; a call says which it runs, and moving back is one request', async () => {
    await publish('poster', card('one'))
    const second = await publish('poster', card('two', { align: 'left' }), { note: 'to the left' })
    assert.deepEqual([second.status, second.json.version.version], [201, 2])
    const again = await publish('poster', card('one'))
    assert.deepEqual([again.status, again.json.is_new, again.json.endpoint.current_version], [200, false, 1])
    assert.equal((await send('PUT', '/poster/aliases/stable', { version: 2 })).status, 200)
    const ranBy = async (reference: string) => (await run(reference, { headline: 'x' })).json.endpoint.version
    assert.deepEqual(
      [await ranBy('poster'), await ranBy('poster@2'), await ranBy('poster@stable'), await ranBy('poster@latest')],
      [1, 2, 2, 2],
    )
    const read = await send('GET', '/poster')
    const stale = await send('PATCH', '/poster', { current_version: 2 }, { 'if-match': '"1"' })
    assert.deepEqual([stale.status, stale.json.error.code], [412, 'revision_mismatch'])
    const moved = await send('PATCH', '/poster', { current_version: 2 }, { 'if-match': `"${read.json.revision}"` })
    assert.equal(moved.json.current_version, 2)
    assert.equal(await ranBy('poster'), 2)
    const versions = (await send('GET', '/poster/versions')).json.versions
    assert.deepEqual(
      versions.map((each: { version: number; note: string }) => [each.version, each.note]),
      [
        [2, 'to the left'],
        [1, ''],
      ],
    )
    for (const unknown of ['poster@7', 'poster@none', 'nobody'])
      assert.equal((await run(unknown, { headline: 'x' })).status, 404)
  })

  test('a version that would break its callers is refused until that is meant', async () => {
    await publish('strict', card('one'))
    const { width: _, ...fewer } = DECLARATION.inputs
    const declaration = { ...DECLARATION, inputs: { ...fewer, headline: { ...fewer.headline, max_length: 10 } } }
    const refused = await publish('strict', card('one'), { declaration })
    assert.deepEqual([refused.status, refused.json.error.code], [409, 'breaking_change'])
    assert.deepEqual(
      refused.json.error.details.breaking.map((each: { message: string }) => each.message),
      ['headline: maxLength was 20 and is 10', 'width is gone'],
    )
    const meant = await publish('strict', card('one'), { declaration, breaking: true })
    assert.equal(meant.status, 201, meant.text)
    const { differences } = (await send('GET', '/strict/compare?from=1&to=2')).json
    assert.deepEqual(
      differences.map((each: { breaking: boolean }) => each.breaking),
      [true, true],
    )
  })

  test('holds runs until a time and lets them expire, one or a batch of them', async () => {
    await publish('held', card('Hello'))
    const time = new Date(Date.now() + 3_600_000).toISOString()
    const times = { not_before: time, expires_queued_after: 4000 }
    const one = await send('POST', '/held/runs', { inputs: { headline: 'a' }, ...times })
    assert.deepEqual([one.status, one.json.status, one.json.not_before], [201, 'queued', time], one.text)
    const left = Date.parse(one.json.queued_until) - Date.parse(one.json.created_at)
    // The moment of the request is a little before the one that the job is dated with.
    assert.ok(left > 3_990_000 && left <= 4_000_000, `${left}`)
    const batch = await send('POST', '/held/runs/batch', { items: [{ headline: 'a' }, { headline: 'b' }], ...times })
    assert.equal(batch.status, 201, batch.text)
    const ids: string[] = batch.json.items.map(({ job_id: id }: { job_id: string }) => id)
    for (const id of ids) assert.equal((await client.call(`/api/v2/jobs/${id}`)).json.not_before, time)
    for (const [fields, field] of [
      [{ not_before: '2001-01-01T00:00:00Z' }, 'not_before'],
      [{ not_before: 'tomorrow' }, 'not_before'],
      [{ ...times, expires_queued_after: 5 }, 'expires_queued_after'],
      [{ expires_queued_after: -1 }, 'expires_queued_after'],
    ] as const) {
      const refused = await send('POST', '/held/runs', { inputs: { headline: 'a' }, ...fields })
      assert.deepEqual([refused.status, refused.json.error.details.field], [422, field], refused.text)
    }
    for (const id of [one.json.id, ...ids]) await client.call(`/api/v2/jobs/${id}/cancel`, { method: 'POST' })
  })

  test('runs many times from a list or from a table', async () => {
    const listed = await send('POST', '/card/runs/batch', { items: [{ headline: 'a' }, { headline: 'b', width: 96 }] })
    assert.deepEqual([listed.status, listed.json.accepted], [201, 2], listed.text)
    const table = 'headline,width\r\n"Hello, ""you""",80\nplain,\n'
    const read = await send('POST', '/card/runs/batch', { items: table })
    assert.deepEqual([read.status, read.json.accepted], [201, 2], read.text)
    const [first] = read.json.items
    const told = await send('GET', `/card/runs/${first.job_id}`)
    assert.deepEqual(told.json.inputs, { headline: 'Hello, "you"', width: 80, align: 'center' })
    for (const [wrong, why] of [
      ['headline,headline\na,b', /names "headline" twice/],
      ['headline,width\na,80\nHello, you,80', /has 3 fields in row 2/],
      ['headline,width\na', /has 1 fields in row 1/],
    ] as const) {
      const refused = await send('POST', '/card/runs/batch', { items: wrong })
      assert.equal(refused.status, 422, wrong)
      assert.match(refused.json.error.message, why)
    }
    const wrongRow = await send('POST', '/card/runs/batch', { items: [{ headline: 'a' }, { width: 96 }] })
    assert.deepEqual([wrongRow.status, wrongRow.json.error.details.items[0].index], [422, 1])
    const runs = (await send('GET', '/card/runs?limit=2')).json
    assert.deepEqual([runs.runs.length, runs.has_more], [2, true])
    const next = await send('GET', `/card/runs?limit=2&cursor=${encodeURIComponent(runs.next_cursor)}`)
    assert.equal(next.json.runs.length, 2)
  })

  test('without a preference the answer comes as soon as the job is recorded, and a key is used once', async () => {
    const key = { 'idempotency-key': 'the only one' }
    const first = await run('card', { headline: 'x' }, key)
    assert.equal(first.status, 201)
    assert.equal(first.headers['location'], `/api/v2/endpoints/card/runs/${first.json.id}`)
    const again = await run('card', { headline: 'x' }, key)
    assert.deepEqual([again.status, again.json.error.details.job_id], [422, first.json.id])
  })

  test('that was stopped takes no calls, and one that was removed is gone; its numbers are not used again', async () => {
    await publish('short-lived', card('x'))
    await send('PATCH', '/short-lived', { state: 'stopped' })
    const stopped = await run('short-lived', { headline: 'x' })
    assert.deepEqual([stopped.status, stopped.json.error.code], [422, 'endpoint_stopped'])
    assert.equal((await send('DELETE', '/short-lived')).status, 204)
    assert.equal((await run('short-lived', { headline: 'x' })).status, 404)
    const anew = await publish('short-lived', card('x'))
    assert.deepEqual([anew.json.version.version, anew.json.endpoint.state], [2, 'ready'])
  })

  test('that could never run is refused when it is published, and a preview says why', async () => {
    const made = node('EmptyImage', { width: 8, height: 8, batch_size: 1, color: 0 })
    const saved = (from: unknown) => node('SaveImage', { images: from, filename_prefix: 'x' })
    for (const [file, why] of [
      [
        {
          '1': node('ImageInvert', { image: ['2', 0] }),
          '2': node('ImageInvert', { image: ['1', 0] }),
          '3': saved(['1', 0]),
        },
        /dependency cycle/,
      ],
      [{ '1': made }, /no outputs/],
      [{ '1': made, '2': saved(['7', 0]) }, /node '7', which does not exist/],
      [{ '1': made, '2': saved(['1', 3]) }, /output slot/],
      [{ '1': node('ImageInvert', {}), '2': saved(['1', 0]) }, /required input image is missing/],
    ] as const) {
      const refused = await send('POST', '', { name: 'never', file })
      assert.deepEqual([refused.status, refused.json.error?.code], [422, 'invalid_workflow'], refused.text)
      assert.match(refused.json.error.message, why)
      const draft = await send('POST', '/preview', { file })
      assert.equal(draft.status, 200, draft.text)
      assert.match(draft.json.warnings[0].message, why)
    }
    assert.equal((await send('GET', '/never')).status, 404)
    // A caller brings the file that nobody has yet, and what a class lists may change.
    const open = { '1': node('LoadImage', {}), '2': saved(['1', 0]) }
    assert.equal((await send('POST', '', { name: 'open', file: open })).status, 201)
  })

  test('with a class that no engine has waits, and says what is missing', async () => {
    const file = { ...card('x'), '9': node('ClassOfTomorrow', { images: ['2', 0] }) }
    const made = await publish('tomorrow', file)
    assert.equal(made.status, 201, made.text)
    assert.deepEqual(
      [made.json.endpoint.state, made.json.missing.classes[0].class_type],
      ['blocked', 'ClassOfTomorrow'],
    )
    const refused = await run('tomorrow', { headline: 'x' })
    assert.deepEqual([refused.status, refused.json.error.code], [422, 'invalid_workflow'])
  })

  test('takes a picture as the id of an asset or as content, and says of which input it takes none', async () => {
    const file = {
      '1': node('LoadImage', { image: 'example.png' }),
      '2': node('ImageScale', {
        image: ['1', 0],
        upscale_method: 'nearest-exact',
        width: 16,
        height: 8,
        crop: 'disabled',
      }),
      '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'small' }),
    }
    const made = await send('POST', '', { name: 'small', file })
    assert.equal(made.status, 201, made.text)
    const [photo] = made.json.version.inputs.filter((input: { type: string }) => input.type === 'file')
    assert.deepEqual([photo.name, photo.kind, photo.required, photo.example], ['image', 'image', true, 'example.png'])
    const png = await (await fetch((await run('card', { headline: 'x' })).json.results.image[0].url)).arrayBuffer()
    const content = `data:image/png;base64,${Buffer.from(png).toString('base64')}`
    const byContent = await run('small', { image: content, width: 24 })
    assert.deepEqual([byContent.status, byContent.json.status], [200, 'succeeded'], byContent.text)
    // Content that is not kept yet speaks against nothing, whatever the file of the workflow is; other inputs may.
    const validate = (inputs: object) => send('POST', '/small/runs/validate', { inputs })
    const right = await validate({ image: content })
    assert.equal(right.json.is_accepted, true, right.text)
    assert.equal((await validate({ image: content, width: -1 })).json.is_accepted, false)
    assert.equal((await validate({ image: 'nobody-uploaded-this.png' })).json.is_accepted, false)
    const { id } = await client.uploaded('input/photo.png', new Uint8Array(png))
    const byId = await run('small', { image: id })
    assert.deepEqual([byId.status, byId.json.status], [200, 'succeeded'], byId.text)
    for (const [value, reason] of [
      ['data:text/html;base64,PGh0bWw+', 'unsupported_type'],
      ['https://127.0.0.1/a.png', 'fetch_forbidden'],
      ['nobody-uploaded-this.png', 'not_available'],
      [7, 'not_a_file'],
    ] as const)
      assert.deepEqual(wrong(await run('small', { image: value })), [`image: ${reason}`], String(value))
  })

  test('a preview proposes inputs and stores nothing', async () => {
    const draft = await send('POST', '/preview', { file: card('Hello') })
    assert.equal(draft.status, 200, draft.text)
    assert.ok(draft.json.inputs.some((input: { name: string }) => input.name === 'headline'))
    assert.deepEqual(draft.json.workflow, card('Hello'))
    const bad = await publish('Not A Name', card('x'))
    assert.equal(bad.status, 422)
    assert.equal((await publish('preview', card('x'))).status, 422)
    assert.equal((await send('POST', '/preview', { file: { nothing: true } })).status, 422)
  })
})
