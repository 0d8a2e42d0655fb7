/** One walk through the whole service, with the parts that a new user gets: from the graph that is sent to the bytes of its picture. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import sharp from 'sharp'
import { startTestApp } from '../support/app/start-app.ts'
import { CheckedClient, node } from '../support/clients/checked-client.ts'

const GRAPH = {
  '1': node('EmptyImage', { width: 24, height: 16, batch_size: 1, color: 0x336699 }),
  '2': node('ImageInvert', { image: ['1', 0] }),
  '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'walk' }),
}

test('a graph is submitted, watched to its end, and its picture read back, also after a restart', async () => {
  await using service = await startTestApp()
  const client = new CheckedClient(service.url)
  const { id } = await client.accepted(GRAPH)
  const watched = await client.events(id)
  assert.equal(watched.at(-1)?.data.status, 'succeeded')
  const { outputs } = await client.job(id)
  assert.deepEqual(
    outputs.map(({ node_id, content_type }) => [node_id, content_type]),
    [['3', 'image/png']],
  )
  const before = await readPicture(outputs[0].url)
  assert.deepEqual([before.width, before.height, before.firstPixel], [24, 16, [204, 153, 101]])
  assert.equal(before.bytes, outputs[0].size_bytes)

  await using again = await service.restart()
  const kept = await new CheckedClient(again.url).job(id)
  assert.equal(kept.status, 'succeeded')
  assert.deepEqual(await readPicture(kept.outputs[0].url), before)
})

async function readPicture(url: string) {
  const bytes = Buffer.from(await (await fetch(url)).arrayBuffer())
  const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true })
  return { bytes: bytes.length, width: info.width, height: info.height, firstPixel: [...data.subarray(0, 3)] }
}
