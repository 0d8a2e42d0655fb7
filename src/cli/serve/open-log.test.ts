import assert from 'node:assert/strict'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { Log } from '../../../lib/log.ts'
import { openLog, toReadableLine } from './open-log.ts'

async function written(isTerminal: boolean, use: (log: Log) => void): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), 'atelier-log-'))
  const file = path.join(folder, 'log')
  try {
    {
      // The log closes its descriptor when it ends (standard error excepted).
      await using service = openLog({ level: 'info', requests: false }, { descriptor: openSync(file, 'w'), isTerminal })
      use(service.log)
    }
    return readFileSync(file, 'utf8')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('credentials are cut out wherever a log call carries them', async () => {
  for (const isTerminal of [true, false]) {
    const text = await written(isTerminal, (log) => {
      log.info({ token: 'hush-1', request: { headers: { authorization: 'hush-2' } } }, 'one')
      log.child({ extra_data: { api_key_comfy_org: 'hush-3' } }).warn({ job: { extraData: 'hush-4' } }, 'two')
    })
    assert.match(text, /one[\s\S]*two/)
    assert.ok(!text.includes('hush'), text)
    assert.match(text, /\[secret\]/)
  }
})

test('lines below the level are not written', async () => {
  assert.equal(await written(false, (log) => log.debug({}, 'no')), '')
})

test('on a terminal a line is short, and an error has its stack', async () => {
  const line = JSON.stringify({
    level: 'info',
    time: '2026-01-01T12:00:01.000Z',
    url: 'http://x',
    count: 2,
    msg: 'listening',
  })
  assert.equal(toReadableLine(line), '12:00:01 info  listening url=http://x count=2\n')
  assert.match(
    await written(true, (log) => log.error({ err: new Error('broken') }, 'failed')),
    /error failed\nError: broken\n {4}at /,
  )
})

test('every line is written once, however many are still being written when the log closes', async () => {
  const text = await written(false, (log) => {
    for (let index = 0; index < 500; index++) log.info({ index }, 'line')
  })
  const seen = text
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { index: number }).index)
  assert.deepEqual(
    seen,
    Array.from({ length: 500 }, (_, index) => index),
  )
})
