/**
 * One endpoint behind every door, each opened by the client that people have: over a fake ComfyUI, and over a real one when
 * ATELIER_TEST_COMFYUI names one. Each call asks for another size and colour, and the picture that comes is looked at.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import OpenAI from 'openai'
import Replicate from 'replicate'
import sharp from 'sharp'
import { startFleetApp } from '../../support/app/fleet-app.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { runAtelier } from '../../support/cli/atelier.ts'
import { call } from '../../support/clients/call.ts'
import { node } from '../../support/clients/checked-client.ts'
import { hasRealComfyui, prepareRealComfyui } from '../../support/engines/real-comfyui.ts'

const KEY = 'the-key-of-this-test'
const PYTHON = process.env['ATELIER_TEST_PYTHON']
const exec = promisify(execFile)

/** Needs no weights. The colour is that of the picture before it is inverted. */
const TILE = {
  '1': node('EmptyImage', { width: 64, height: 64, batch_size: 1, color: 0 }),
  '2': node('ImageInvert', { image: ['1', 0] }),
  '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'tile' }),
}
const DECLARATION = {
  title: 'A tile',
  only: true,
  inputs: {
    prompt: { from: '3.filename_prefix', description: 'The name of the file.', required: true },
    width: { from: '1.width', maximum: 256 },
    height: { from: '1.height', maximum: 256 },
    color: { from: '1.color' },
  },
  outputs: { tile: { from: '3' } },
}

interface Service extends AsyncDisposable {
  readonly url: string
}

function describeDoors(engine: string, open: () => Promise<Service>): void {
  describe(`an endpoint over ${engine} is called by`, () => {
    let folder: string
    let service: Service
    let env: Record<string, string>
    before(async () => {
      folder = await mkdtemp(path.join(tmpdir(), 'atelier-doors-'))
      service = await open()
      env = { PATH: process.env['PATH'] ?? '', ATELIER_BASE_URL: service.url, ATELIER_TOKEN: KEY }
      const body = JSON.stringify({ name: 'tile', file: TILE, declaration: DECLARATION })
      const headers = { authorization: `Bearer ${KEY}` }
      const made = await call(service.url, '/api/v2/endpoints', { method: 'POST', body, headers })
      // Blocked: the engine has not come up, and calls would wait for it.
      assert.deepEqual([made.status, made.json.endpoint?.state], [201, 'ready'], made.text)
    })
    after(async () => {
      await service?.[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    })

    async function mustBe(bytes: Uint8Array, size: readonly [number, number], color: readonly number[]) {
      const { data, info } = await sharp(bytes).removeAlpha().raw().toBuffer({ resolveWithObject: true })
      assert.deepEqual([info.width, info.height], size)
      assert.deepEqual([...data.subarray(0, 3)], color)
      assert.deepEqual([...data.subarray(-3)], color)
    }
    const bytesAt = async (url: string, headers = {}) =>
      new Uint8Array(await (await fetch(url, { headers })).arrayBuffer())
    async function writeClient(language: string, file: string): Promise<void> {
      const { code, stderr } = await runAtelier(
        ['endpoints', 'client', 'tile', '--lang', language, '--out', path.join(folder, file)],
        { env },
      )
      assert.equal(code, 0, stderr)
    }

    test('curl', async () => {
      const body = JSON.stringify({ inputs: { prompt: 'by curl', width: 40, height: 24, color: 0xff_00_00 } })
      const flags = ['-sf', `${service.url}/api/v2/endpoints/tile/runs`, '-H', `Authorization: Bearer ${KEY}`]
      const { stdout } = await exec('curl', [...flags, '-H', 'Prefer: wait=60', '-d', body])
      const { status, results } = JSON.parse(stdout)
      assert.equal(status, 'succeeded')
      assert.match(results.tile[0].name, /^by curl_/)
      const picture = await bytesAt(results.tile[0].url, { authorization: `Bearer ${KEY}` })
      await mustBe(picture, [40, 24], [0, 255, 255])
    })

    test('openai', async () => {
      const client = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: KEY })
      const asked = { model: 'tile', prompt: 'by openai', size: '48x32' as never, color: 0x00_ff_00 }
      const { data } = await client.images.generate(asked as OpenAI.ImageGenerateParamsNonStreaming)
      await mustBe(Buffer.from(data?.[0]?.b64_json ?? '', 'base64'), [48, 32], [255, 0, 255])
    })

    test('replicate', async () => {
      const client = new Replicate({ baseUrl: `${service.url}/replicate/v1`, auth: KEY })
      const input = { prompt: 'by replicate', width: 56, height: 40, color: 0x00_00_ff }
      const url = await client.run('local/tile', { input })
      await mustBe(await bytesAt(String(url)), [56, 40], [255, 255, 0])
    })

    test('a client of MCP', async () => {
      const client = new Client({ name: 'test', version: '1' })
      const requestInit = { headers: { Authorization: `Bearer ${KEY}` } }
      await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }))
      try {
        const input = { prompt: 'by an agent', width: 72, height: 48, color: 0xff_ff_00 }
        const { content } = await client.callTool({ name: 'run_tile', arguments: input })
        const link = (content as { type: string; uri?: string }[]).find(({ type }) => type === 'resource_link')
        const { contents } = await client.readResource({ uri: link?.uri ?? '' })
        const [{ blob = '' } = {}] = contents as { blob?: string }[]
        await mustBe(Buffer.from(blob, 'base64'), [72, 48], [0, 0, 255])
      } finally {
        await client.close()
      }
    })

    test('the generated client in TypeScript', async () => {
      await writeClient('ts', 'tile.ts')
      const script = `import { download, run } from './tile.ts'
const { status, results } = await run({ prompt: 'by TypeScript', width: 80, height: 56, color: ${0xff_00_ff} })
const blob = await download(results.tile[0])
console.log(JSON.stringify([status, Buffer.from(await blob.arrayBuffer()).toString('base64')]))`
      await writeFile(path.join(folder, 'use.ts'), script)
      const { stdout } = await exec(process.execPath, [path.join(folder, 'use.ts')], { env })
      const [status, picture] = JSON.parse(stdout)
      assert.equal(status, 'succeeded')
      await mustBe(Buffer.from(picture, 'base64'), [80, 56], [0, 255, 0])
    })

    const without = 'set ATELIER_TEST_PYTHON to a Python, 3.9 or newer'
    test('the generated client in Python', { skip: PYTHON === undefined ? without : false }, async () => {
      await writeClient('python', 'tile.py')
      const script = `import base64, json, tile
run = tile.run({"prompt": "by Python", "width": 88, "height": 64, "color": ${0x00_ff_ff}})
picture = tile.download(run["results"]["tile"][0])
print(json.dumps([run["status"], base64.b64encode(picture).decode()]))`
      const { stdout } = await exec(PYTHON ?? '', ['-c', script], { cwd: folder, env })
      const [status, picture] = JSON.parse(stdout)
      assert.equal(status, 'succeeded')
      await mustBe(Buffer.from(picture, 'base64'), [88, 64], [255, 0, 0])
    })

    test('atelier run', async () => {
      const flags = ['--prompt', 'by hand', '--width', '96', '--height=72', '--color', String(0xff_ff_ff)]
      const { code, stdout, stderr } = await runAtelier(['run', 'tile', ...flags, '--out', 'made'], {
        cwd: folder,
        env,
      })
      assert.equal(code, 0, stderr)
      assert.match(path.basename(stdout.trim()), /^by hand_/)
      await mustBe(await readFile(stdout.trim()), [96, 72], [0, 0, 0])
    })
  })
}

describeDoors('a fake ComfyUI', () => startFleetApp({ servers: [{}], settings: { token: KEY } }))

if (hasRealComfyui) {
  describeDoors('a real ComfyUI', async () => {
    await using opening = new AsyncDisposableStack()
    const comfyui = opening.use(await prepareRealComfyui())
    const settings = { comfyuiLaunch: comfyui.command, engineWait: '170s', token: KEY }
    const { url } = opening.use(await startTestApp({ settings }))
    const opened = opening.move()
    return { url, [Symbol.asyncDispose]: () => opened.disposeAsync() }
  })
}
