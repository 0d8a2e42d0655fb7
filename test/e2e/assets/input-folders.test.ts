/** Folders of uploads through the whole service and the built-in engine. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import sharp from 'sharp'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { CheckedClient, node, refused } from '../../support/clients/checked-client.ts'

let service: TestApp
let client: CheckedClient
before(async () => {
  service = await startTestApp()
  client = new CheckedClient(service.url)
})
after(() => service[Symbol.asyncDispose]())

const picture = (width: number) =>
  sharp({ create: { width, height: 4, channels: 3, background: '#336699' } })
    .png()
    .toBuffer()

const graphOf = (folder: string) => ({
  '1': node('LoadImageDataSetFromFolder', { folder }),
  '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'set' }),
})

test('every picture of a folder reaches the node that reads it, sorted by name', async () => {
  for (const [path, width] of [
    ['cats/b.png', 7],
    ['cats/a.png', 5],
    ['cats/old/c.png', 9],
    ['dogs/d.png', 11],
  ] as const) {
    await client.uploaded(path, await picture(width), { fields: { file_path: path, content_type: 'image/png' } })
  }
  const job = await client.run(graphOf('cats'))
  assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
  const widths = []
  for (const { id } of job.outputs) {
    const answer = await fetch(`${service.url}/api/v2/assets/${id}/content`)
    widths.push((await sharp(Buffer.from(await answer.arrayBuffer())).metadata()).width)
  }
  assert.deepEqual(widths, [5, 7])
})

test('a folder without files refuses the workflow and names the node', async () => {
  const answer = await client.call('/api/v2/jobs', {
    method: 'POST',
    body: JSON.stringify({ workflow: graphOf('nothing') }),
  })
  refused(answer, 422, 'invalid_workflow')
  assert.deepEqual(
    answer.json.error.details.node_errors['1'].map(({ field }: { field: string }) => field),
    ['folder'],
  )
})
