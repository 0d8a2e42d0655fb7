import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { spawnServer } from '../support/app/spawn-server.ts'
import { runAtelier } from '../support/cli/atelier.ts'
import { waitUntil } from '../support/wait-until.ts'

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url))

let folder: string
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-serve-'))
})
after(() => rmSync(folder, { recursive: true, force: true }))

describe('atelier serve', () => {
  test('says where it is, refuses a second process and a taken port in one line, and drains on SIGTERM', async () => {
    const data = path.join(folder, 'data')
    await using server = await spawnServer(['--data-dir', data])
    assert.match(server.output(), /^Atelier \d+\.\d+\.\d+ is serving at http:\/\/127\.0\.0\.1:\d+$/m)
    assert.ok(server.output().includes(data))
    assert.match(server.output(), /curl -s http/)

    const locked = await runAtelier(['serve', '--port', '0', '--data-dir', data])
    assert.equal(locked.code, 1)
    assert.match(locked.stderr, new RegExp(`^atelier: cannot start: .* in use by process ${server.pid}\\..*\\n$`))

    const port = new URL(server.url).port
    const taken = await runAtelier(['serve', '--port', port, '--data-dir', path.join(folder, 'other')])
    assert.equal(taken.code, 1)
    assert.match(taken.stderr, /^atelier: cannot start: .*EADDRINUSE.*--port.*\n$/)

    const examined = await runAtelier(['doctor', '--port', port, '--data-dir', data], {
      env: { ATELIER_BASE_URL: server.url },
    })
    assert.equal(examined.code, 0, examined.stdout)
    assert.match(examined.stdout, /a server runs at .* and is healthy/)
    assert.match(examined.stdout, /in use by a running process/)
    assert.match(examined.stdout, /^ok +server /m)

    assert.equal(await server.terminate(), 0)
  })

  test('keeps what it compiled before it ends, so that a start after a kill need not compile it again', async () => {
    const cache = path.join(folder, 'compiled')
    await using server = await spawnServer(['--data-dir', path.join(folder, 'killed')], { NODE_COMPILE_CACHE: cache })
    const count = () => (existsSync(cache) ? readdirSync(cache, { recursive: true }).length : 0)
    await waitUntil(() => count() > 1)
    await server.killNow()
    assert.ok(count() > 1)
  })

  test('a data folder that cannot be one is told in one line', async () => {
    const file = path.join(folder, 'file')
    writeFileSync(file, '')
    const result = await runAtelier(['serve', '--port', '0', '--data-dir', file])
    assert.equal(result.code, 1)
    assert.match(result.stderr, /^atelier: cannot start: .*\n$/)
  })

  test('the token is asked for, and shows nowhere', async () => {
    const token = 'hush-hush-1234'
    await using server = await spawnServer(['--data-dir', path.join(folder, 'guarded'), '--log-level', 'debug'], {
      ATELIER_TOKEN: token,
    })
    assert.equal((await fetch(`${server.url}/api/v2/jobs`)).status, 401)
    const run = ['run', path.join(EXAMPLES, 'greeting.json'), '--base-url', server.url]
    const refused = await runAtelier(run)
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /^unauthorized: /)
    const allowed = await runAtelier(run, { env: { ATELIER_TOKEN: token } })
    assert.equal(allowed.code, 0, allowed.stderr)
    assert.equal(await server.terminate(), 0)
    assert.ok(!`${server.output()}${allowed.stdout}${allowed.stderr}`.includes(token))
  })

  test('every example that needs no upload runs, and its outputs arrive', async () => {
    await using server = await spawnServer(['--data-dir', path.join(folder, 'examples')])
    const out = path.join(folder, 'out')
    for (const [example, output] of [
      ['greeting', /\.txt$/m],
      ['colour-card', /colour-card_00001_\.png$/m],
    ] as const) {
      const result = await runAtelier([
        'run',
        path.join(EXAMPLES, `${example}.json`),
        '--base-url',
        server.url,
        '--out',
        out,
      ])
      assert.equal(result.code, 0, result.stderr)
      assert.match(result.stdout, output)
    }
  })

  test('a server that cannot be reached is told with the reason at the start, to whoever runs a workflow, and in its job', async () => {
    const flags = ['--comfyui', 'http://127.0.0.1:9', '--engine-wait', '1s', '--data-dir', path.join(folder, 'away')]
    await using server = await spawnServer(flags)
    const why = /127\.0\.0\.1:9 \W*starting[;:] \S+ no connection \(ECONNREFUSED\): nothing listens at this address/
    const run = await runAtelier(['run', path.join(EXAMPLES, 'greeting.json'), '--base-url', server.url], {
      onStderr: (text, child) => void (why.test(text) && child.kill('SIGINT')),
    })
    assert.match(run.stderr, /waiting: the engines that can run it are away/)
    assert.match(run.stderr, why)
    assert.equal(run.code, 130)
    assert.match(server.output(), why)
  })

  test('a stop while it still starts ends it, whatever it waits for', async () => {
    // An engine that takes the connection and says nothing: the start would wait an hour for it.
    const met = Promise.withResolvers<void>()
    const silent = createServer((socket) => {
      socket.on('error', () => {})
      met.resolve()
    })
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    const flags = [
      '--comfyui',
      `http://127.0.0.1:${port}`,
      '--engine-wait',
      '1h',
      '--data-dir',
      path.join(folder, 'early'),
    ]
    const { code, stdout } = await runAtelier(['serve', '--port', '0', ...flags], {
      onStart: (child) => void met.promise.then(() => child.kill('SIGTERM')),
    })
    assert.deepEqual([code, stdout], [0, ''])
    silent.close()
  })
})
