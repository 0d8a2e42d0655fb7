/** The service in the background: started, found, stopped, and never confused with another process that has got its id. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { runAtelier } from '../support/cli/atelier.ts'
import { waitUntil } from '../support/wait-until.ts'

let folder: string
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-background-'))
})
after(() => rmSync(folder, { recursive: true, force: true }))

const pidOf = (text: string) => Number(/process (\d+)/.exec(text)?.[1])

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('start returns when the service answers, a second start is refused, stop waits for the end, a kill leaves nothing behind', async () => {
  const data = ['--data-dir', path.join(folder, 'data')]
  const flags = [...data, '--port', '0', '--workers', '0']
  const status = () => runAtelier(['status', ...data])
  assert.deepEqual([(await status()).code, (await runAtelier(['stop', ...data])).code], [3, 0])
  const started = await runAtelier(['start', ...flags], {
    env: { ATELIER_TOKEN: 'hush-hush-1234', ATELIER_URL_LIFETIME: '1h' },
  })
  const pid = pidOf(started.stdout)
  try {
    assert.equal(started.code, 0, started.stderr)
    assert.match(started.stderr, /^atelier: warning: urlLifetime .* looser than the 1h asked for; leave it out\n$/)
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(started.stdout)?.[0] ?? ''
    assert.equal((await fetch(`${url}/healthz`)).status, 200)
    assert.equal((await fetch(`${url}/api/v2/jobs`)).status, 401)
    const running = await status()
    assert.deepEqual([running.code, running.stdout], [0, `running: ${url} (process ${pid})\n`])
    const second = await runAtelier(['start', ...flags])
    assert.deepEqual([second.code, second.stdout], [1, ''])
    assert.match(second.stderr, new RegExp(`^atelier: the service runs already: .*process ${pid}\\).*\\n$`))
    const log = path.join(folder, 'data', 'service.log')
    assert.equal(statSync(log).mode & 0o777, 0o600)
    assert.ok(!readFileSync(log, 'utf8').includes('hush'))
    const stopped = await runAtelier(['stop', ...data])
    assert.deepEqual([stopped.code, stopped.stdout, isAlive(pid)], [0, `stopped: process ${pid}\n`, false])
    assert.equal((await status()).code, 3)
  } finally {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  }
})

test('a process id that belongs to another process by now is neither believed nor signalled', async () => {
  const directory = path.join(folder, 'stale')
  const data = ['--data-dir', directory]
  const flags = [...data, '--port', '0', '--workers', '0']
  const first = await runAtelier(['start', ...flags])
  const pid = pidOf(first.stdout)
  process.kill(pid, 'SIGKILL')
  await waitUntil(() => !isAlive(pid))
  const file = path.join(directory, 'service.json')
  assert.ok(existsSync(file))
  writeFileSync(file, readFileSync(file, 'utf8').replace(`"pid":${pid}`, `"pid":${process.pid}`))
  assert.equal((await runAtelier(['status', ...data])).code, 3)
  assert.match((await runAtelier(['stop', ...data])).stdout, /^no service holds/)
  const again = await runAtelier(['start', ...flags])
  assert.equal(again.code, 0, again.stderr)
  assert.equal((await runAtelier(['stop', ...data])).code, 0)
})

test('a start that fails says why in this terminal, with the exit code of the service', async () => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  const { port } = taken.address() as { port: number }
  const flags = ['--data-dir', path.join(folder, 'failing'), '--workers', '0']
  const busy = await runAtelier(['start', ...flags, '--port', String(port)])
  await new Promise((resolve) => taken.close(resolve))
  assert.deepEqual([busy.code, busy.stdout], [1, ''])
  assert.match(busy.stderr, /^atelier: cannot start: .*EADDRINUSE/)
  const wrong = await runAtelier(['start', ...flags, '--port', 'x'])
  assert.deepEqual([wrong.code, wrong.stdout], [2, ''])
  const faulty = await runAtelier(['start', ...flags, '--port', '0', '--catalogs', path.join(folder, 'nowhere')])
  assert.equal(faulty.code, 2)
  assert.match(faulty.stderr, /^atelier: cannot start: .*there is no such folder/m)
})
