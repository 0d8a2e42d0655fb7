/**
 * Clients as they are published, unmodified, against the whole service: connect, run, read the outputs, run again fully
 * cached, upload, interrupt. And ComfyUI's own example programs, step by step.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { CallWrapper, ComfyApi, PromptBuilder } from '@saintno/comfyui-sdk'
import { Client } from '@stable-canvas/comfyui-client'
import { ComfyUIClient } from 'comfy-ui-client'
import sharp from 'sharp'
import { WebSocket } from 'ws'
import { startTestApp, type TestApp } from '../../../../../test/support/app/start-app.ts'
import { failingGraph, saveGraph, websocketGraph } from '../../../../../test/support/clients/legacy-graphs.ts'

let app: TestApp
let host: string
before(async () => {
  app = await startTestApp()
  host = new URL(app.url).host
})
after(() => app[Symbol.asyncDispose]())

/** The colour of a PNG's first pixel, as one number. */
async function colorOf(bytes: Uint8Array): Promise<number> {
  const { data } = await sharp(bytes).removeAlpha().raw().toBuffer({ resolveWithObject: true })
  return (data[0] << 16) | (data[1] << 8) | data[2]
}

async function picture(color: string): Promise<Buffer> {
  return sharp({ create: { width: 8, height: 8, channels: 4, background: color } })
    .png()
    .toBuffer()
}

test('comfy-ui-client runs a prompt, reads its images, runs it cached, uploads and edits the history', async () => {
  const client = new ComfyUIClient(host, randomUUID())
  await client.connect()
  try {
    for (let round = 0; round < 2; round++) {
      const images = await client.getImages(saveGraph(0xff0000, 'first'))
      const [image] = images['3']
      assert.equal(await colorOf(Buffer.from(await image.blob.arrayBuffer())), 0x00ffff)
    }
    const uploaded = await client.uploadImage(await picture('#ff000080'), 'mine.png')
    assert.deepEqual(uploaded, { name: 'mine.png', subfolder: '', type: 'input' })
    const ref = { filename: 'mine.png', subfolder: '', type: 'input' }
    const masked = await client.uploadMask(await picture('#00000010'), 'masked.png', ref)
    assert.equal(masked.name, 'masked.png')
    assert.deepEqual(Object.keys(await client.getObjectInfo('LoadImage')), ['LoadImage'])
    assert.ok((await client.getSystemStats()).devices.length > 0)
    assert.deepEqual(await client.getExtensions(), [])
    assert.deepEqual(await client.getEmbeddings(), [])
    assert.equal((await client.getPrompt()).exec_info.queue_remaining, 0)
    assert.equal(Object.keys(await client.getHistory()).length >= 2, true)
    await client.interrupt()
    await client.editHistory({ clear: true })
    assert.deepEqual(await client.getHistory(), {})
  } finally {
    await client.disconnect()
  }
})

test('comfy-ui-client hears the end of a prompt that fails', async () => {
  const client = new ComfyUIClient(host, randomUUID())
  await client.connect()
  try {
    assert.deepEqual(await client.getImages(failingGraph()), {})
  } finally {
    await client.disconnect()
  }
})

test('@saintno/comfyui-sdk connects, runs, reads and uploads', async () => {
  const api = new ComfyApi(app.url)
  await api.init().waitForReady()
  try {
    for (let round = 0; round < 2; round++) {
      const builder = new PromptBuilder(saveGraph(0x00ff00, 'second'), [], ['images']).setOutputNode('images', '3')
      const result = await new CallWrapper(api, builder).run()
      assert.ok(result !== false && result !== undefined, 'the run has a result')
      const [image] = (result.images as { images: { filename: string; subfolder: string; type: string }[] }).images
      const response = await fetch(api.getPathImage(image))
      assert.equal(await colorOf(Buffer.from(await response.arrayBuffer())), 0xff00ff)
    }
    const uploaded = await api.uploadImage(await picture('#00ff00'), 'green.png')
    assert.equal(uploaded !== false && uploaded.info.filename, 'green.png')
    assert.equal((await api.getQueue()).queue_running.length, 0)
    assert.ok(Object.keys(await api.getHistories()).length > 0)
    await api.storeSetting('Comfy.X', 5)
    assert.equal(await api.getSettings().then((settings) => (settings as Record<string, unknown>)['Comfy.X']), 5)
    await api.interrupt()
  } finally {
    api.destroy()
  }
})

test('@saintno/comfyui-sdk is told when a run fails', async () => {
  const api = new ComfyApi(app.url)
  await api.init().waitForReady()
  try {
    const builder = new PromptBuilder(failingGraph(), [], ['images']).setOutputNode('images', '2')
    const failed = Promise.withResolvers<Error>()
    const call = new CallWrapper(api, builder).onFailed((error) => failed.resolve(error))
    assert.equal(await call.run(), false)
    assert.ok((await failed.promise) instanceof Error)
  } finally {
    api.destroy()
  }
})

function createCanvasClient(): Client {
  return new Client({ api_host: host, clientId: randomUUID(), fetch, WebSocket: WebSocket as never })
}

for (const how of ['enqueue', 'enqueue_polling'] as const) {
  test(`@stable-canvas/comfyui-client runs a prompt with ${how}`, async () => {
    const client = createCanvasClient()
    await client.connect({ websocket: { enabled: true } })
    try {
      for (let round = 0; round < 2; round++) {
        const { images } = await client[how](saveGraph(0x0000ff, how))
        const [image] = images as { type: 'url'; data: string }[]
        const response = await fetch(image.data)
        assert.equal(await colorOf(Buffer.from(await response.arrayBuffer())), 0xffff00)
      }
      assert.ok(Object.keys(await client.getNodeDefs()).includes('SaveImage'))
      assert.deepEqual(await client.getExtensions(), [])
    } finally {
      client.disconnect()
      client.close()
    }
  })
}

test('@stable-canvas/comfyui-client is refused a prompt that cannot run', async () => {
  const client = createCanvasClient()
  await client.connect({ websocket: { enabled: true } })
  try {
    await assert.rejects(async () => client.enqueue({ '1': { class_type: 'Nothing', inputs: {} } }))
  } finally {
    client.disconnect()
    client.close()
  }
})

/** What the example programs do: a socket with an id, a prompt under an id of their own, and waiting for `executing` null. */
async function runExample(prompt: object): Promise<{ promptId: string; images: Buffer[] }> {
  const clientId = randomUUID()
  const promptId = randomUUID()
  const socket = new WebSocket(`ws://${host}/ws?clientId=${clientId}`)
  const images: Buffer[] = []
  const ended = Promise.withResolvers<void>()
  let current = ''
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) {
      if (current === 'save_image_websocket_node') images.push(data.subarray(8))
      return
    }
    const message = JSON.parse(data.toString()) as { type: string; data: { prompt_id?: string; node: string | null } }
    if (message.type !== 'executing' || message.data.prompt_id !== promptId) return
    if (message.data.node === null) ended.resolve()
    else current = message.data.node
  })
  await new Promise((resolve) => socket.once('open', resolve))
  try {
    const body = JSON.stringify({ prompt, client_id: clientId, prompt_id: promptId })
    // Python's urllib sends JSON as a form unless it is told otherwise.
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const response = await fetch(`${app.url}/prompt`, { method: 'POST', body, headers })
    assert.equal(((await response.json()) as { prompt_id: string }).prompt_id, promptId)
    await ended.promise
  } finally {
    socket.terminate()
  }
  return { promptId, images }
}

interface History {
  readonly [id: string]: { readonly outputs: Record<string, { images: Record<string, string>[] }> }
}

test("ComfyUI's websocket example reads its images through the history", async () => {
  const { promptId } = await runExample(saveGraph(0xffff00, 'example'))
  const history = (await (await fetch(`${app.url}/history/${promptId}`)).json()) as History
  const [image] = history[promptId].outputs['3'].images
  const response = await fetch(`${app.url}/view?${new URLSearchParams(image)}`)
  assert.equal(await colorOf(Buffer.from(await response.arrayBuffer())), 0x0000ff)
})

test("ComfyUI's example with images over the socket gets them there", async () => {
  const { images } = await runExample(websocketGraph(0xff00ff))
  assert.equal(images.length, 1)
  assert.equal(await colorOf(images[0]), 0x00ff00)
})
