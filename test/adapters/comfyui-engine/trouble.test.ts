/** A server that cannot be used is said in the log: soon, with its name and the reason, and again only when that changes. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type ServerResponse } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { systemClock } from '../../../lib/clock.ts'
import { type Log, silentLog } from '../../../lib/log.ts'
import type { ComfyServer } from '../../../src/adapters/engines/comfyui/comfy-bounds.ts'
import { openComfyEngine } from '../../../src/adapters/engines/comfyui/comfy-engine.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { startTlsFake } from '../../support/network/tls-fake.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { BOUNDS } from './support/harness.ts'

interface Warning {
  readonly engine?: string
  readonly reason?: string
  readonly lastLines?: readonly string[]
}

/** Collects what is warned of, and wakes whoever waits for a number of them. */
function collectWarnings() {
  const found: Warning[] = []
  let wake = () => {}
  function logWith(bound: object): Log {
    return {
      ...silentLog,
      warn(fields) {
        found.push({ ...bound, ...fields })
        wake()
      },
      child: (fields) => logWith({ ...bound, ...fields }),
    }
  }
  async function until(count: number): Promise<void> {
    while (found.length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  return { found, until, log: logWith({}) }
}

function open(server: ComfyServer, log: Log) {
  return openComfyEngine({ server, id: 'gpu-7', bounds: { ...BOUNDS, probeMaxMs: 30 }, log, clock: systemClock })
}

describe('a server that cannot be used', () => {
  test('nothing listens there: logged once, however often it is tried, and again after it has been ready', async () => {
    const { found, until, log } = collectWarnings()
    const fake = await startFakeComfy()
    const { url } = fake
    await using engine = await open({ kind: 'remote', url: new URL(url) }, log)
    await engine.untilReady()
    assert.equal(found.length, 0)
    await fake[Symbol.asyncDispose]()
    await until(1)
    assert.equal(found[0]?.engine, 'gpu-7')
    const failed = await open({ kind: 'remote', url: new URL(url) }, log)
    await until(2)
    assert.match(
      found[1]?.reason ?? '',
      /no connection \(ECONNREFUSED\): nothing listens at this address: start ComfyUI/,
    )
    // Some more tries of both.
    await failed.untilReady(AbortSignal.timeout(400))
    await failed[Symbol.asyncDispose]()
    assert.equal(found.length, 2)
  })

  test("what answers there is told apart: a locked door, no ComfyUI, a proxy alone, a stranger's certificate, no TLS", async () => {
    const { found, until, log } = collectWarnings()
    const answers: Record<string, (response: ServerResponse) => void> = {
      locked: (response) => response.writeHead(401).end(),
      shut: (response) => response.writeHead(403).end(),
      elsewhere: (response) => response.writeHead(404).end(),
      page: (response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>'),
      proxy: (response) => response.writeHead(502).end(),
    }
    const plain = createHttpServer((request, response) => {
      answers[(request.url ?? '').split('/')[1]]?.(response)
    })
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
    const { port } = plain.address() as { port: number }
    await using secret = await startTlsFake((_request, response) => response.end('{}'))
    const told: [address: string, reason: RegExp][] = [
      [`http://127.0.0.1:${port}/locked`, /answered 401: it wants a user and a password/],
      [`http://127.0.0.1:${port}/shut`, /answered 403: .*does not let this service in/],
      [`http://127.0.0.1:${port}/elsewhere`, /answered 404: what answers at this address is not a ComfyUI/],
      [`http://127.0.0.1:${port}/page`, /is not a ComfyUI/],
      [`http://127.0.0.1:${port}/proxy`, /answered 502: a proxy answers, and no ComfyUI behind it/],
      [`https://127.0.0.1:${port}`, /it does not speak TLS: write http:/],
      [`https://127.0.0.1:${secret.port}`, /nobody here knows who signed its certificate/],
      ['http://no-such-name.invalid:8188', /no machine is known by this name|could not be looked up/],
    ]
    try {
      for (const [address, reason] of told) {
        const before = found.length
        const engine = await open({ kind: 'remote', url: new URL(address) }, log)
        await until(before + 1)
        await engine[Symbol.asyncDispose]()
        assert.match(found[before]?.reason ?? '', reason, address)
      }
    } finally {
      plain.closeAllConnections()
      await new Promise((resolve) => plain.close(resolve))
    }
  })

  test('it accepts connections and never answers: logged before any call times out', async () => {
    const { found, until, log } = collectWarnings()
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => sockets.add(socket.on('error', () => {})))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    const engine = await open({ kind: 'remote', url: new URL(`http://127.0.0.1:${port}`) }, log)
    await until(1)
    assert.match(found[0]?.reason ?? '', /did not answer/)
    await engine[Symbol.asyncDispose]()
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => silent.close(resolve))
  })

  test('one that we start and that ends at once: logged with its last lines, and again when the reason changes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'atelier-trouble-'))
    const [script, rule] = [join(folder, 'main.mjs'), join(folder, 'exit-code')]
    await writeFile(rule, '3')
    await writeFile(
      script,
      `import { readFileSync } from 'node:fs'
       for (let i = 0; i < 50; i++) console.log('line ' + i)
       console.error('No module named torch')
       process.exitCode = Number(readFileSync(${JSON.stringify(rule)}, 'utf8'))`,
    )
    const { found, until, log } = collectWarnings()
    const command = `'${process.execPath}' '${script}' {port}`
    const server = { kind: 'supervised', command, killGraceMs: 100, restartFirstMs: 5, restartMaxMs: 5 } as const
    const engine = await open(server, log)
    try {
      await until(1)
      const [first] = found
      assert.deepEqual([first?.engine, first?.reason], ['gpu-7', 'its process ended (3)'])
      const lines = first?.lastLines ?? []
      assert.ok(lines.includes('No module named torch') && lines.includes('line 49'), JSON.stringify(first))
      assert.equal(lines.length, 20)
      const { incarnation } = engine.health()
      await waitUntil(() => engine.health().incarnation >= incarnation + 3)
      assert.equal(found.length, 1)
      await writeFile(rule, '4')
      await until(2)
      assert.equal(found[1]?.reason, 'its process ended (4)')
    } finally {
      await engine[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('the service names each of those that its settings name', async () => {
    const { found, until, log } = collectWarnings()
    const settings = { comfyui: 'http://127.0.0.1:9', comfyuiLaunch: 'no-such-program --port {port}', engineWait: '0s' }
    await using _app = await startTestApp({ settings, log })
    await until(2)
    const byName = Object.fromEntries(found.map(({ engine, reason }) => [engine, reason]))
    assert.match(byName['127.0.0.1:9'] ?? '', /no connection/)
    assert.match(byName['launched-1'] ?? '', /cannot be started: .*ENOENT/)
  })
})
