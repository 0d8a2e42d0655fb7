/** A real ComfyUI that the service starts: what the editor saves is run on it by one command, and its previews are seen live. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import sharp from 'sharp'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { runAtelier } from '../../support/cli/atelier.ts'
import { call } from '../../support/clients/call.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { hasRealComfyui, prepareRealComfyui } from '../../support/engines/real-comfyui.ts'
import { savedCard } from '../../support/workflows/saved-workflow.ts'

/** Shows pictures while it works, for a few seconds: as a sampler does, and without weights. */
const SHOWING_NODE = `
import time
import torch
import comfy.utils
from PIL import Image

class TestShowing:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"steps": ("INT", {"default": 20, "min": 1, "max": 1000})}}
    RETURN_TYPES = ("IMAGE",)
    FUNCTION = "show"
    CATEGORY = "test"

    def show(self, steps):
        bar = comfy.utils.ProgressBar(steps)
        for step in range(steps):
            time.sleep(0.1)
            bar.update_absolute(step + 1, steps, ("JPEG", Image.new("RGB", (32, 16), (step, 0, 0)), 64))
        return (torch.zeros([1, 16, 32, 3]),)

NODE_CLASS_MAPPINGS = {"TestShowing": TestShowing}
`

// Asked for by naming one.
if (hasRealComfyui) {
  describe('a real ComfyUI', () => {
    const stack = new AsyncDisposableStack()
    let app: TestApp
    let folder: string
    before(async () => {
      folder = await mkdtemp(path.join(tmpdir(), 'atelier-saved-'))
      stack.defer(() => rm(folder, { recursive: true, force: true }))
      const comfyui = stack.use(await prepareRealComfyui({ customNode: SHOWING_NODE }))
      app = stack.use(await startTestApp({ settings: { comfyuiLaunch: comfyui.command, engineWait: '170s' } }))
    })
    after(() => stack.disposeAsync())

    test('runs what the editor saves: a subgraph, a bypassed node, a Primitive node and a prompt by name', async () => {
      await writeFile(path.join(folder, 'card.json'), JSON.stringify(savedCard('card')))
      const args = ['run', 'card.json', '--base-url', app.url, '--input', 'prompt=a red fox', '--out', 'results']
      const { code, stderr } = await runAtelier([...args, '-i', 'width=40'], { cwd: folder })
      assert.equal(code, 0, stderr)
      const made = (name: string) => path.join(folder, 'results', name)
      assert.equal(await readFile(made('11_text_1.txt'), 'utf8'), 'a red fox')
      const { data, info } = await sharp(made('card_00001_.png')).raw().toBuffer({ resolveWithObject: true })
      assert.deepEqual([info.width, info.height, ...data.subarray(0, 3)], [40, 8, 0, 255, 0])
    })

    const graph = (seed: number) => ({
      '1': { class_type: 'TestShowing', inputs: { steps: 20 + seed } },
      '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
    })

    test('shows its previews in the stream of a job', async () => {
      const workflow = graph(0)
      const { json } = await call(app.url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
      using events = openEvents(app.url, `/api/v2/jobs/${json.id}/events`)
      const frames = await events.rest()
      const previews = frames.filter(({ event }) => event === 'preview')
      assert.ok(previews.length > 0, frames.map(({ event }) => event).join())
      const last = frames.filter(({ event }) => event !== 'comment').at(-1)?.data
      assert.equal(last.status ?? last.job?.status, 'succeeded', JSON.stringify(last))
    })

    test('shows them to a ComfyUI client as binary frames of its socket', async () => {
      const socket = new WebSocket(`${app.url.replace('http', 'ws')}/ws?clientId=somebody`)
      socket.binaryType = 'arraybuffer'
      const kinds: number[] = []
      const ended = Promise.withResolvers<void>()
      socket.addEventListener('message', ({ data }) => {
        if (typeof data !== 'string') return void kinds.push(new DataView(data).getUint32(0))
        const { type } = JSON.parse(data)
        if (type === 'execution_success' || type === 'execution_error') ended.resolve()
      })
      await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }))
      const body = JSON.stringify({ prompt: graph(1), client_id: 'somebody' })
      const { status, text } = await call(app.url, '/prompt', { method: 'POST', body })
      assert.equal(status, 200, text)
      await ended.promise
      socket.close()
      // 1: a picture; 4: a picture and what it is of.
      assert.ok(
        kinds.some((kind) => kind === 1 || kind === 4),
        kinds.join(),
      )
    })
  })
}
