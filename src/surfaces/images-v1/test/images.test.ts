/** OpenAI's own client, unmodified, against endpoints on the built-in engine. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import OpenAI, { APIError, toFile } from 'openai'
import sharp from 'sharp'
import { startTestApp, type TestApp } from '../../../../test/support/app/start-app.ts'
import { type Answer, call } from '../../../../test/support/clients/call.ts'
import { openSpecChecks } from '../../../../test/support/clients/check-against-spec.ts'
import { node } from '../../../../test/support/clients/checked-client.ts'

const { checkAgainstSchema } = openSpecChecks('images.openapi.json')

const CARD = {
  '1': node('EmptyImage', { width: 64, height: 32, batch_size: 1, color: 2105376 }),
  '2': node('TextOverlay', {
    ...{ images: ['1', 0], text: 'Hello', font_size: 8, color: '#ffffff' },
    ...{ position: 'top', align: 'center', outline: false },
  }),
  '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'card' }),
}
const CARD_INPUTS = {
  only: true,
  inputs: {
    headline: { from: '2.text', max_length: 20, required: true },
    width: { from: '1.width', minimum: 16, maximum: 512 },
    height: { from: '1.height', minimum: 16, maximum: 512 },
    align: { from: '2.align' },
    color: { from: '1.color' },
  },
}

describe('image models', () => {
  let service: TestApp
  let client: OpenAI
  let edits: { readonly image: Buffer; readonly mask: Buffer }
  before(async () => {
    service = await startTestApp({ settings: { workers: '2' } })
    client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: 'none' })
    await publish('card', { file: CARD, declaration: CARD_INPUTS, models: ['gpt-image-1'] })
    const left = Buffer.from('<svg width="32" height="16"><rect width="16" height="16" fill="#f00"/></svg>')
    edits = {
      image: await sharp({ create: { width: 32, height: 16, channels: 3, background: '#00ff00' } })
        .png()
        .toBuffer(),
      // Opaque on the left, transparent on the right: edit the right half.
      mask: await sharp(left).png().toBuffer(),
    }
  })
  after(() => service[Symbol.asyncDispose]())

  async function publish(name: string, body: object): Promise<Answer> {
    const made = await call(service.url, '/api/v2/endpoints', {
      method: 'POST',
      body: JSON.stringify({ name, ...body }),
    })
    assert.equal(made.status, 201, made.text)
    return made
  }
  const countJobs = async () => (await call(service.url, '/api/v2/jobs?limit=100')).json.jobs.length as number
  const bytesOf = (image: { readonly b64_json?: string } | undefined) => Buffer.from(image?.b64_json ?? '', 'base64')
  const sizeOf = async (bytes: Uint8Array) => {
    const { format, width, height } = await sharp(bytes).metadata()
    return [format, width, height]
  }
  const refused = async (asked: Promise<unknown>): Promise<APIError> => {
    const error = await asked.then(
      () => assert.fail('it was answered'),
      (thrown: unknown) => thrown,
    )
    assert.ok(error instanceof APIError, String(error))
    checkAgainstSchema('ErrorAnswer', { error: error.error })
    return error
  }

  test('are listed, with their further names', async () => {
    const { data } = await client.models.list()
    assert.deepEqual(
      data.map(({ id, owned_by }) => [id, owned_by]),
      [
        ['card', 'local'],
        ['gpt-image-1', 'local'],
        ['sandbox/chat', 'sandbox'],
        ['sandbox/image', 'sandbox'],
        ['text-card', 'service'],
      ],
    )
    assert.equal((await client.models.retrieve('card')).object, 'model')
    assert.equal((await refused(client.models.retrieve('nobody'))).code, 'model_not_found')
  })

  test('of the service make pictures, too', async () => {
    const made = await client.images.generate({ model: 'text-card', prompt: 'Hello', size: '96x48' as never })
    assert.deepEqual(await sizeOf(bytesOf(made.data?.[0])), ['png', 96, 48])
  })

  test('make a picture of a text, with the size and the further inputs that were asked for', async () => {
    const made = await client.images.generate({ model: 'card', prompt: 'Good morning', size: '128x64' as never })
    checkAgainstSchema('Images', made)
    assert.equal(made.data?.length, 1)
    assert.deepEqual(await sizeOf(bytesOf(made.data?.[0])), ['png', 128, 64])
    assert.deepEqual([made.output_format, made.size, made.usage?.total_tokens], ['png', '128x64', 0])
    const extra = { model: 'card', prompt: 'Left', align: 'left', user: 'somebody' } as never
    await client.images.generate(extra)
    const [job] = (await call(service.url, '/api/v2/endpoints/card/runs?limit=1')).json.runs
    assert.deepEqual(job.metadata, { user: 'somebody' })
    const run = (await call(service.url, `/api/v2/endpoints/card/runs/${job.id}`)).json
    assert.deepEqual([run.inputs.headline, run.inputs.align, run.inputs.width], ['Left', 'left', 64])
  })

  test('are found by a further name and by a version; without a name the only one that takes a text is meant', async () => {
    // As LibreChat sends it.
    const made = await client.images.generate({
      ...{ model: 'gpt-image-1', prompt: 'x', n: 1, size: 'auto', quality: 'auto', background: 'auto' },
      ...{ output_format: 'jpeg', output_compression: 60 },
    })
    assert.deepEqual(await sizeOf(bytesOf(made.data?.[0])), ['jpeg', 64, 32])
    assert.equal((await client.images.generate({ model: 'card@1', prompt: 'x' })).data?.length, 1)
    assert.equal((await client.images.generate({ prompt: 'x' })).data?.length, 1)
    for (const model of ['nobody', 'card@7']) {
      const error = await refused(client.images.generate({ model, prompt: 'x' }))
      assert.deepEqual([error.status, error.code, error.param], [404, 'model_not_found', 'model'])
    }
  })

  test('give an address that needs no credential when that is asked for', async () => {
    const { data } = await client.images.generate({ model: 'card', prompt: 'x', response_format: 'url' })
    const file = await fetch(data?.[0]?.url as string)
    assert.deepEqual(await sizeOf(Buffer.from(await file.arrayBuffer())), ['png', 64, 32])
    const both = client.images.generate({ model: 'card', prompt: 'x', response_format: 'url', output_format: 'webp' })
    assert.equal((await refused(both)).param, 'output_format')
  })

  test('make several pictures: as many runs, or one run where an input says how many', async () => {
    const before = await countJobs()
    const made = await client.images.generate({ model: 'card', prompt: 'two', n: 2, output_format: 'webp' })
    assert.deepEqual(await Promise.all((made.data ?? []).map((each) => sizeOf(bytesOf(each)))), [
      ['webp', 64, 32],
      ['webp', 64, 32],
    ])
    assert.equal(await countJobs(), before + 2)
    const inputs = { prompt: { from: '2.text' }, batch_size: { from: '1.batch_size' } }
    await publish('sheet', { file: CARD, declaration: { only: true, inputs } })
    assert.equal((await client.images.generate({ model: 'sheet', prompt: 'three', n: 3 })).data?.length, 3)
    assert.equal(await countJobs(), before + 3)
  })

  test('refuse what they cannot do, under the name of the parameter, and make no job', async () => {
    const before = await countJobs()
    const cases: [body: object, param: string | null, code: string, message: RegExp][] = [
      [{ prompt: 'x', size: '128x4096' }, 'size', 'invalid_value', /height must be at most 512/],
      [{ prompt: 'x', size: 'large' }, 'size', 'invalid_value', /such as 1024x768/],
      [{ prompt: 'x'.repeat(21) }, 'prompt', 'invalid_value', /at most 20 characters/],
      [{}, 'prompt', 'invalid_value', /prompt is required/],
      [{ prompt: 'x', n: 11 }, 'n', 'invalid_value', /from 1 to 10/],
      [{ prompt: 'x', n: 2, align: 'top' }, 'align', 'invalid_value', /must be one of/],
      [{ prompt: 'x', background: 'transparent' }, 'background', 'invalid_value', /auto or opaque/],
      [{ prompt: 'x', output_format: 'svg' }, 'output_format', 'invalid_value', /png, jpeg, webp/],
      [{ prompt: 'x', frame_count: 4 }, 'frame_count', 'invalid_value', /neither a parameter nor an input/],
      [{ prompt: 'x', quality: 7 }, 'quality', 'invalid_value', /auto or standard/],
      [{ prompt: 'x', model: 'm'.repeat(257) }, 'model', 'invalid_value', /at most 256 characters/],
      [{ prompt: 'x', constructor: 7 }, 'constructor', 'invalid_value', /neither a parameter nor an input/],
    ]
    for (const [body, param, code, message] of cases) {
      const error = await refused(client.images.generate({ model: 'card', ...body } as never))
      assert.deepEqual([error.status, error.param, error.code, error.type], [400, param, code, 'invalid_request_error'])
      assert.match(error.message, message)
      assert.ok(error.requestID)
    }
    assert.equal(await countJobs(), before)
    // The line that is all some clients show.
    const answer = await fetch(`${service.url}/v1/images/generations`, { method: 'POST', body: '{"model":"nobody"}' })
    assert.match(answer.statusText, /there is no model "nobody"/)
    await answer.body?.cancel()
    assert.equal((await fetch(`${service.url}/v1/images/generations`)).status, 405)
  })

  test('edit pictures: the mask is transparent where they are to be edited, for loaders of pictures and of masks', async () => {
    const joined = { destination: ['1', 0], source: ['3', 0], x: 0, y: 0, resize_source: false, mask: ['2', 1] }
    const masked = {
      '1': node('LoadImage', { image: 'example.png' }),
      '2': node('LoadImage', { image: 'example.png' }),
      '3': node('EmptyImage', { width: 32, height: 16, batch_size: 1, color: 255 }),
      '4': node('ImageCompositeMasked', joined),
      '5': node('SaveImage', { images: ['4', 0], filename_prefix: 'edited' }),
    }
    const inputs = {
      photo: { from: '1.image', required: true },
      mask: { from: '2.image' },
    }
    await publish('paint', { file: masked, declaration: { only: true, inputs } })
    const own = {
      ...masked,
      '2': masked['3'],
      '4': node('ImageCompositeMasked', { ...joined, mask: ['1', 1] }),
    }
    await publish('paint-own', { file: own, declaration: { only: true, inputs: { photo: inputs.photo } } })
    const colours = { ...masked, '4': node('ImageCompositeMasked', { ...joined, mask: ['6', 0] }) }
    await publish('paint-red', {
      file: { ...colours, '6': node('ImageToMask', { image: ['2', 0], channel: 'red' }) },
      declaration: { only: true, inputs },
    })
    for (const model of ['paint', 'paint-own', 'paint-red']) {
      const { data } = await client.images.edit({
        ...{ model, prompt: '', n: 1 },
        image: await toFile(edits.image, 'photo.png', { type: 'image/png' }),
        mask: await toFile(edits.mask, 'mask.png', { type: 'image/png' }),
      })
      const { data: pixels, info } = await sharp(bytesOf(data?.[0]))
        .removeAlpha()
        .raw()
        .toBuffer({ resolveWithObject: true })
      const at = (x: number) => [...pixels.subarray((8 * info.width + x) * 3, (8 * info.width + x) * 3 + 3)]
      assert.deepEqual([info.width, info.height, at(4), at(28)], [32, 16, [0, 255, 0], [0, 0, 255]], model)
    }
  })

  test('take parameters as their author declares them, in every version its own way', async () => {
    const inputs = {
      text: { from: '2.position' },
      slogan: { from: '2.text', max_length: 20 },
      breite: { from: '1.width', maximum: 512 },
      hoehe: { from: '1.height', maximum: 512 },
      sheets: { from: '1.batch_size' },
      points: { from: '2.font_size' },
      align: { from: '2.align' },
      frame: { from: '2.outline' },
    }
    const map = {
      ...{ prompt: 'slogan', width: 'breite', height: 'hoehe', n: 'sheets', steps: 'points', style: 'align' },
      quality: { input: 'points', values: { low: 6, high: 12, standard: 10 } },
      background: { input: 'frame', values: { transparent: true } },
    }
    const declaration = { only: true, inputs, openai: { map } }
    const made = await publish('slogan', { file: CARD, declaration })
    const usedBy = async (body: object) => {
      const answer = await client.images.generate({ model: 'slogan', prompt: 'x', ...body } as never)
      const [run] = (await call(service.url, '/api/v2/endpoints/slogan/runs?limit=1')).json.runs
      return { answer, used: (await call(service.url, `/api/v2/endpoints/slogan/runs/${run.id}`)).json.inputs }
    }
    const high = await usedBy({
      prompt: 'Now',
      size: '96x48',
      n: 2,
      quality: 'high',
      style: 'left',
      background: 'transparent',
    })
    assert.deepEqual(high.used, {
      ...{ text: 'top', slogan: 'Now', breite: 96, hoehe: 48, sheets: 2, points: 12, align: 'left', frame: true },
    })
    assert.equal(high.answer.data?.length, 2)
    assert.deepEqual(await sizeOf(bytesOf(high.answer.data?.[1])), ['png', 96, 48])
    // What means the default may be declared, too; a number that is given itself says more than a word.
    assert.equal((await usedBy({ quality: 'standard' })).used.points, 10)
    assert.equal((await usedBy({ quality: 'auto', background: 'opaque', style: 'auto' })).used.points, 8)
    assert.equal((await usedBy({ quality: 'low', steps: 9 })).used.points, 9)
    const cases: [body: object, param: string, message: RegExp][] = [
      [{ quality: 'medium' }, 'quality', /must be one of auto, low, high, standard/],
      [{ quality: 7 }, 'quality', /must be a text/],
      [{ style: 'vertical' }, 'style', /must be one of left/],
      [{ background: 'transparent', output_format: 'jpeg' }, 'output_format', /png or webp/],
      [{ size: '96x4096' }, 'size', /must be at most 512/],
      [{ prompt: 'x'.repeat(21) }, 'prompt', /at most 20 characters/],
    ]
    for (const [body, param, message] of cases) {
      const error = await refused(client.images.generate({ model: 'slogan', prompt: 'x', ...body } as never))
      assert.deepEqual([error.status, error.param], [400, param])
      assert.match(error.message, message)
    }
    // It is part of what was published: another version goes its own way, an export brings it along.
    const exported = (await call(service.url, '/api/v2/endpoints/slogan/export')).json
    const copy = await publish('copied', { file: exported })
    assert.deepEqual(copy.json.version.inputs, made.json.version.inputs)
    await publish('slogan', { file: CARD, declaration: { only: true, inputs }, breaking: true })
    // Nothing declared: a wish that cannot be had is ignored.
    assert.equal((await usedBy({ quality: 'medium' })).used.points, 8)
  })

  test('give a mask in the way that its author declares', async () => {
    const file = {
      '1': node('LoadImage', { image: 'example.png' }),
      '2': node('LoadImage', { image: 'example.png' }),
      '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'mask' }),
      '4': node('SaveImage', { images: ['1', 0], filename_prefix: 'photo' }),
    }
    const inputs = { second: { from: '1.image' }, where: { from: '2.image' } }
    const outputs = { shown: { from: '3' } }
    for (const [convention, color] of [
      ['white_is_edit', [255, 255, 255]],
      ['alpha', [255, 0, 0]],
    ] as const) {
      const openai = { map: { image: ['second'], mask: 'where' }, mask_convention: convention }
      const model = `masks-${convention.replaceAll('_', '-')}`
      await publish(model, { file, declaration: { only: true, inputs, outputs, openai } })
      const red = Buffer.from(
        '<svg width="32" height="16"><rect width="32" height="16" fill="#f00" opacity="0"/></svg>',
      )
      const { data } = await client.images.edit({
        ...{ model, prompt: '' },
        image: await toFile(edits.image, 'photo.png', { type: 'image/png' }),
        mask: await toFile(convention === 'alpha' ? edits.mask : await sharp(red).png().toBuffer(), 'mask.png'),
      })
      const pixels = await sharp(bytesOf(data?.[0])).removeAlpha().raw().toBuffer()
      assert.deepEqual([...pixels.subarray(0, 3)], color, convention)
    }
  })

  test('refuse files that they cannot take', async () => {
    const picture = () => toFile(edits.image, 'a.png', { type: 'image/png' })
    const many = await refused(
      client.images.edit({ model: 'paint', prompt: '', image: [await picture(), await picture()] }),
    )
    assert.deepEqual([many.status, many.param], [400, 'image'])
    const missing = await refused(client.images.generate({ model: 'paint', prompt: '' }))
    assert.deepEqual([missing.status, missing.param, missing.code], [400, 'image', 'missing_required_parameter'])
    const text = await refused(
      client.images.edit({ model: 'paint', prompt: '', image: await toFile(Buffer.from('hello'), 'a.png') }),
    )
    assert.deepEqual([text.status, text.param], [400, 'image'])
    const opaque = await refused(
      client.images.edit({ model: 'paint', prompt: '', image: await picture(), mask: await picture() }),
    )
    assert.deepEqual([opaque.param, opaque.status], ['mask', 400])
    assert.match(opaque.message, /alpha/)
    const none = await refused(client.images.edit({ model: 'card', prompt: 'x', image: await picture() }))
    assert.equal(none.param, 'image')
  })

  test('stream: the finished picture is an event', async () => {
    const stream = await client.images.generate({ model: 'card', prompt: 'x', stream: true, partial_images: 2 })
    const events = []
    for await (const event of stream) events.push(event)
    assert.deepEqual(
      events.map(({ type }) => type),
      ['image_generation.completed'],
    )
    assert.deepEqual(await sizeOf(bytesOf(events[0])), ['png', 64, 32])
    const refusal = await refused(client.images.generate({ model: 'nobody', prompt: 'x', stream: true }))
    assert.equal(refusal.status, 404)
  })

  test('describe themselves', async () => {
    const { json } = await call(service.url, '/v1/images/openapi.json')
    assert.equal(json.servers[0].url, service.url)
  })
})
