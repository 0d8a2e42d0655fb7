/**
 * Every operation of the Jobs API over whatever engine stands behind it, with graphs that use only classes of ComfyUI itself. Every
 * answer is held against the specification and the official client's schemas. A test file supplies the running service, and a graph
 * that takes a while.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import sharp from 'sharp'
import {
  assetRef,
  CheckedClient,
  node,
  refused,
  type WireJob,
  type Workflow,
} from '../support/clients/checked-client.ts'

export interface JobsApiUnderTest extends AsyncDisposable {
  readonly url: string
  /** Takes long enough to be canceled in its middle; `seed` keeps it out of every cache. */
  slowGraph(seed: number): Workflow
}

const NOBODY = '0199b3f4-1d2e-4a3b-8c4d-5e6f70819234'

export function describeJobsApi(name: string, open: () => Promise<JobsApiUnderTest>): void {
  describe(`the Jobs API over ${name}`, () => {
    let service: JobsApiUnderTest
    let client: CheckedClient
    // Other pictures than those of an earlier run against the same server.
    let color = Date.now() % 0xff0000

    before(async () => {
      service = await open()
      client = new CheckedClient(service.url)
    })
    after(() => service[Symbol.asyncDispose]())

    const content = (id: string, headers = {}) => client.call(`/api/v2/assets/${id}/content`, { headers })

    async function succeed(graph: Workflow, more: object = {}): Promise<WireJob> {
      const job = await client.run(graph, more)
      assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
      return job
    }

    async function pixelOf(job: WireJob): Promise<number> {
      const output = job.outputs.find(({ type }) => type === 'image')
      assert.ok(output !== undefined)
      const { data } = await sharp((await content(output.id)).bytes)
        .raw()
        .toBuffer({ resolveWithObject: true })
      return Buffer.from(data).readUIntBE(0, 3)
    }

    async function picture(): Promise<Buffer> {
      const [r, g, b] = [++color >> 16, (color >> 8) & 0xff, color & 0xff]
      return sharp({ create: { width: 16, height: 16, channels: 3, background: { r, g, b } } })
        .png()
        .toBuffer()
    }

    test('is there, with its contract', async () => {
      assert.equal((await client.call('/api/v2/health')).status, 200)
      assert.match((await client.call('/api/v2/openapi.json')).json.openapi, /^3\.1/)
    })

    test('runs a workflow, streams what happens, and keeps the picture', async () => {
      const { id } = await client.accepted(pictureOf(++color), { metadata: { from: 'a test' } })
      const frames = await client.events(id)
      assert.equal(frames.at(-1)?.data.status, 'succeeded')
      assert.equal(frames.filter(({ event }) => event === 'output').length, 1)
      const job = await client.job(id)
      assert.equal(job.metadata.from, 'a test')
      const [output] = job.outputs
      assert.deepEqual([output.node_id, output.type, output.content_type], ['2', 'image', 'image/png'])
      const { bytes } = await content(output.id)
      assert.equal(bytes.length, output.size_bytes)
      const range = await content(output.id, { range: 'bytes=1-3' })
      assert.deepEqual([range.status, range.text], [206, 'PNG'])
      assert.equal(await pixelOf(job), color)
    })

    test('the same picture again, out of the server’s cache, is there as well', async () => {
      const graph = { ...pictureOf(++color), '3': node('PreviewAny', { source: ['1', 0] }) }
      const [first, second] = [await succeed(graph), await succeed(graph)]
      assert.equal(second.outputs.length, first.outputs.length)
      assert.equal(await pixelOf(second), color)
    })

    test('keeps texts as well as files', async () => {
      const { outputs } = await succeed({
        '1': node('PrimitiveString', { value: `text ${++color}` }),
        '2': node('PreviewAny', { source: ['1', 0] }),
      })
      assert.deepEqual(
        outputs.map(({ type }) => type),
        ['text'],
      )
      assert.equal((await content(outputs[0].id)).text, `text ${color}`)
    })

    test('takes files, once each, and gives them to workflows by reference and by name', async () => {
      const bytes = await picture()
      const asset = await client.uploaded(`in/${color}.png`, bytes)
      assert.equal((await client.upload(`in/${color}.png`, bytes)).json.created_new, false)
      assert.equal((await client.call(`/api/v2/assets/by-hash/${asset.hash}`, { method: 'HEAD' })).status, 200)
      const body = JSON.stringify({ hash: asset.hash, file_path: `in/again-${color}.png` })
      assert.equal((await client.call('/api/v2/assets/from-hash', { method: 'POST', body })).status, 201)
      assert.equal((await client.call(`/api/v2/assets/${asset.id}`)).json.hash, asset.hash)
      const byReference = await succeed(loadGraph(assetRef(asset.id)))
      const byName = await succeed(loadGraph(`in/${color}.png`))
      for (const { outputs } of [byReference, byName]) assert.equal(outputs[0].type, 'image')
      const { workflow } = (await client.call(`/api/v2/jobs/${byReference.id}/workflow`)).json
      assert.equal(workflow['1'].inputs.image, `${asset.hash.replace('blake3:', '')}.png`)
    })

    test('deletes an upload, and no output of a job that is kept', async () => {
      const { id } = await client.uploaded(`gone-${++color}.png`, await picture())
      assert.equal((await client.call(`/api/v2/assets/${id}`, { method: 'DELETE' })).status, 204)
      assert.equal((await client.call(`/api/v2/assets/${id}`)).status, 404)
      const { outputs } = await succeed(pictureOf(++color))
      refused(await client.call(`/api/v2/assets/${outputs[0].id}`, { method: 'DELETE' }), 409, 'asset_in_use')
    })

    test('lists jobs, and tells what they printed', async () => {
      const { id } = await succeed(pictureOf(++color))
      const { json } = await client.call('/api/v2/jobs?limit=1')
      assert.equal(json.jobs[0].id, id)
      assert.ok([200, 204].includes((await client.call(`/api/v2/jobs/${id}/logs`)).status))
    })

    test('cancels a job that runs, one that waits, and none that has ended', async () => {
      const { id: running } = await client.accepted(service.slowGraph(++color))
      const { id: waiting } = await client.accepted(service.slowGraph(++color))
      await client.until(running, ({ status, progress }) => status === 'running' && progress !== null)
      assert.equal((await client.cancel(waiting)).status, 200)
      await client.untilStatus(waiting, 'canceled')
      assert.equal((await client.cancel(running)).status, 200)
      await client.untilStatus(running, 'canceled')
      const { id: ended } = await succeed(pictureOf(++color))
      assert.equal((await client.cancel(ended)).json.status, 'succeeded')
    })

    test('a node that raises fails its job with the node and its traceback', async () => {
      const graph = pictureOf(++color, '../../outside')
      const job = await client.run(graph)
      assert.equal(job.status, 'failed')
      assert.deepEqual([job.error?.code, job.error?.node_id], ['node_execution_error', '2'])
      assert.ok((job.error?.traceback ?? '').length > 0)
    })

    test('refuses what cannot run, and a key that was used', async () => {
      const unknown = await client.submit({ workflow: { '1': node('NoSuchNode') } })
      assert.equal(refused(unknown, 422, 'invalid_workflow') === null, false)
      const absent = { ...pictureOf(1), '5': node('CheckpointLoaderSimple', { ckpt_name: 'nobody.safetensors' }) }
      refused(await client.submit({ workflow: absent }), 422, 'invalid_workflow')
      refused(await client.submit({ workflow: loadGraph(assetRef(NOBODY)) }), 422, 'missing_asset')
      refused(await client.call(`/api/v2/jobs/${NOBODY}`), 404, 'not_found')
      const key = { 'idempotency-key': `key-${++color}` }
      const { id } = await client.accepted(pictureOf(color), {}, key)
      assert.deepEqual(
        refused(await client.submit({ workflow: pictureOf(color) }, key), 422, 'idempotency_key_reuse'),
        {
          job_id: id,
        },
      )
      await client.untilStatus(id, 'succeeded')
    })
  })
}

function pictureOf(color: number, prefix = 'made'): Workflow {
  return {
    '1': node('EmptyImage', { width: 16, height: 16, batch_size: 1, color }),
    '2': node('SaveImage', { images: ['1', 0], filename_prefix: prefix }),
  }
}

function loadGraph(image: unknown): Workflow {
  return {
    '1': node('LoadImage', { image }),
    '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'loaded' }),
  }
}
