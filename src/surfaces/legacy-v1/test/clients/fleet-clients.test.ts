/** The published clients again, unmodified, with ComfyUI servers behind the service instead of the built-in engine. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { CallWrapper, ComfyApi, PromptBuilder } from '@saintno/comfyui-sdk'
import { Client } from '@stable-canvas/comfyui-client'
import { ComfyUIClient } from 'comfy-ui-client'
import sharp from 'sharp'
import { WebSocket } from 'ws'
import { type FleetApp, startFleetApp } from '../../../../../test/support/app/fleet-app.ts'
import { saveGraph } from '../../../../../test/support/clients/legacy-graphs.ts'

let app: FleetApp
before(async () => {
  app = await startFleetApp({ servers: [{}, {}] })
})
after(() => app[Symbol.asyncDispose]())

async function colorOf(bytes: Uint8Array): Promise<number> {
  const { data } = await sharp(bytes).removeAlpha().raw().toBuffer({ resolveWithObject: true })
  return (data[0] << 16) | (data[1] << 8) | data[2]
}

function graphOf(color: number) {
  const { 1: empty, 3: save } = saveGraph(color, 'fleet')
  return { '1': empty, '3': { ...save, inputs: { ...save.inputs, images: ['1', 0] } } }
}

test('comfy-ui-client gets the picture that a server of the fleet made, and again from its cache', async () => {
  const client = new ComfyUIClient(new URL(app.url).host, randomUUID())
  await client.connect()
  try {
    for (let round = 0; round < 2; round++) {
      const [image] = (await client.getImages(graphOf(0x123456)))['3']
      assert.equal(await colorOf(Buffer.from(await image.blob.arrayBuffer())), 0x123456)
    }
    assert.deepEqual(Object.keys(await client.getObjectInfo('SaveImage')), ['SaveImage'])
  } finally {
    await client.disconnect()
  }
})

test('@saintno/comfyui-sdk gets the picture that a server of the fleet made', async () => {
  const api = new ComfyApi(app.url)
  await api.init().waitForReady()
  try {
    const builder = new PromptBuilder(graphOf(0x00ff00), [], ['images']).setOutputNode('images', '3')
    const result = await new CallWrapper(api, builder).run()
    assert.ok(result !== false && result !== undefined, 'the run has a result')
    const [image] = (result.images as { images: { filename: string; subfolder: string; type: string }[] }).images
    const response = await fetch(api.getPathImage(image))
    assert.equal(await colorOf(Buffer.from(await response.arrayBuffer())), 0x00ff00)
  } finally {
    api.destroy()
  }
})

test('@stable-canvas/comfyui-client gets the picture that a server of the fleet made', async () => {
  const client = new Client({ api_host: new URL(app.url).host, WebSocket, fetch })
  await client.connect({ websocket: { enabled: true } })
  try {
    const { images } = await client.enqueue(graphOf(0x0000ff))
    const [image] = images as { type: 'url'; data: string }[]
    const response = await fetch(image.data)
    assert.equal(await colorOf(Buffer.from(await response.arrayBuffer())), 0x0000ff)
  } finally {
    client.disconnect()
    client.close()
  }
})
