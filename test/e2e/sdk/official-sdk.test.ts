/**
 * The official TypeScript client, unmodified, against a running service: everything it can do must work. Over the built-in engine, or
 * over a real ComfyUI when ATELIER_TEST_COMFYUI_URL names one.
 */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import * as sdk from '@comfyorg/sdk'
import * as low from '@comfyorg/sdk/low'
import sharp from 'sharp'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'

const INVERT = {
  '1': { class_type: 'LoadImage', inputs: { image: '' } },
  '2': { class_type: 'ImageInvert', inputs: { image: ['1', 0] } },
  '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: 'inverted' } },
}
/** As float32 pixels become bytes again: by truncation, so 0x99 turns into 101 and not 102. */
const inverted = (byte: number) => Math.trunc(Math.fround(1 - Math.fround(byte / 255)) * 255)

/** Long enough to be cancelled in the middle: many large resizes in a chain. */
function longWorkflow(): sdk.WorkflowGraph {
  const graph: Record<string, unknown> = {
    '1': { class_type: 'EmptyImage', inputs: { width: 3000, height: 3000, batch_size: 1, color: 1 } },
  }
  for (let index = 2; index < 40; index++)
    graph[index] = {
      class_type: 'ImageScale',
      inputs: {
        image: [String(index - 1), 0],
        upscale_method: 'bicubic',
        width: 3000 + index,
        height: 3000,
        crop: 'disabled',
      },
    }
  graph['99'] = { class_type: 'SaveImage', inputs: { images: ['39', 0], filename_prefix: 'long' } }
  return graph
}

describe('the official SDK', () => {
  let service: TestApp
  let folder: string
  let client: sdk.Comfy
  let picture: Buffer

  before(async () => {
    const realUrl = process.env.ATELIER_TEST_COMFYUI_URL
    service = await startTestApp(realUrl === undefined ? {} : { settings: { comfyui: realUrl } })
    folder = await mkdtemp(join(tmpdir(), 'atelier-sdk-'))
    picture = await sharp({ create: { width: 512, height: 512, channels: 3, background: '#336699' } })
      .png()
      .toBuffer()
    await writeFile(join(folder, 'photo.png'), picture)
    process.env['COMFY_BASE_URL'] = service.url
    client = new sdk.Comfy()
  })
  after(async () => {
    delete process.env['COMFY_BASE_URL']
    await service[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  function invertWorkflow(image: unknown): sdk.Workflow {
    const workflow = client.workflows.fromJson(structuredClone(INVERT))
    workflow.setInput('1', 'image', image)
    return workflow
  }

  test('runs a workflow over a lazy asset and downloads the inverted picture', async () => {
    const job = await client.run(invertWorkflow(client.assets.fromFile(join(folder, 'photo.png'))))
    assert.equal(job.status, 'succeeded')
    const [output] = job.getOutputs('3')
    assert.equal(output.type, 'image')
    assert.match(output.name, /^inverted_00001_\.png$/)
    await output.toFile(join(folder, 'out.png'))
    const { data, info } = await sharp(await readFile(join(folder, 'out.png')))
      .raw()
      .toBuffer({ resolveWithObject: true })
    assert.deepEqual(
      [info.width, info.height, data[0], data[1], data[2]],
      [512, 512, inverted(0x33), inverted(0x66), inverted(0x99)],
    )
  })

  test('commits the same bytes and name twice as one asset', async () => {
    const first = client.assets.fromBytes(new Uint8Array(picture), { filename: 'same.png', contentType: 'image/png' })
    const second = client.assets.fromBytes(new Uint8Array(picture), { filename: 'same.png', contentType: 'image/png' })
    assert.equal(await first.commit(), await second.commit())
    assert.equal(second.createdNew, false)
  })

  test('runs by the bare name of an uploaded file', async () => {
    await client.assets.fromBytes(new Uint8Array(picture), { filename: 'bare.png' }).commit()
    const job = await client.run(invertWorkflow('bare.png'))
    assert.equal(job.outputs.length, 1)
  })

  test('streams status, progress and the output before the end', async () => {
    const job = await client.submit(invertWorkflow(client.assets.fromFile(join(folder, 'photo.png'))))
    const kinds: string[] = []
    let last = ''
    for await (const event of job.events()) {
      kinds.push(event.kind)
      if (event.kind === 'statusChange') last = event.status
      if (event.kind === 'outputReady') assert.equal((await event.output.toBytes()).length, event.output.sizeBytes)
    }
    assert.equal(last, 'succeeded')
    assert.ok(kinds.includes('outputReady'))
    assert.equal(kinds.at(-1), 'statusChange')
  })

  test('reads exactly the range it asks for', async () => {
    const job = await client.run(invertWorkflow(client.assets.fromFile(join(folder, 'photo.png'))))
    const whole = await job.outputs[0].toBytes()
    const response = await fetch((await job.outputs[0].getDownloadUrl()).url, { headers: { range: 'bytes=8-15' } })
    assert.equal(response.status, 206)
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), Buffer.from(whole).subarray(8, 16))
  })

  test('cancels a running job, which then ends canceled', async () => {
    const job = await client.submit(client.workflows.fromJson(longWorkflow()))
    for await (const event of job.events()) {
      if (event.kind === 'progress') break
    }
    await job.cancel()
    assert.ok(['canceling', 'canceled'].includes(job.status), job.status)
    await assert.rejects(job.result(), /cancel/i)
    assert.equal((await client.jobs.get(job.id)).status, 'canceled')
  })

  test('reads the executed workflow back with the reference resolved and the seed whole', async () => {
    const asset = client.assets.fromFile(join(folder, 'photo.png'))
    const job = await client.run(invertWorkflow(asset))
    const { workflow, format } = await job.getWorkflow()
    assert.equal(format, 'api')
    const load = (workflow as typeof INVERT)['1']
    assert.equal(`${load.inputs.image}`, `${(await asset.hash()).replace('blake3:', '')}.png`)
  })

  test('deletes an upload, and refuses while a retained job holds an output', async () => {
    const asset = client.assets.fromBytes(Buffer.from('to be deleted'), { filename: 'gone.txt' })
    await asset.commit()
    await asset.delete()
    await assert.rejects(client.assets.get(asset.id ?? ''), sdk.NotFound)
    const job = await client.run(invertWorkflow(client.assets.fromFile(join(folder, 'photo.png'))))
    await assert.rejects(client.assets.delete(job.outputs[0].id), /asset_in_use|in use/)
  })

  test('maps refusals to its own error classes', async () => {
    await assert.rejects(
      client.submit(client.workflows.fromJson({ '1': { class_type: 'Nope', inputs: {} } })),
      sdk.InvalidWorkflow,
    )
    await assert.rejects(client.jobs.get('0199b3f4-1d2e-7a3b-8c4d-5e6f70819234'), sdk.NotFound)
    const missing = { __type: 'core/ASSET', info: { id: '0199b3f4-1d2e-4a3b-8c4d-5e6f70819234' } }
    await assert.rejects(client.submit(invertWorkflow(missing)), sdk.MissingAsset)
  })

  test('accepts every answer with its own schemas', async () => {
    const job = await client.run(invertWorkflow(client.assets.fromFile(join(folder, 'photo.png'))))
    const body: unknown = await (await fetch(`${service.url}/api/v2/jobs/${job.id}`)).json()
    assert.deepEqual(
      Object.keys(low.schemas).filter((name) => /^zJob$/.test(name)),
      ['zJob'],
    )
    low.schemas.zJob.parse(body)
    const asset: unknown = await (await fetch(`${service.url}/api/v2/assets/${job.outputs[0].id}`)).json()
    low.schemas.zAsset.parse(asset)
  })
})
