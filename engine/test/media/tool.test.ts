/** Programs beside ours: bounded, stoppable, and refused with advice when they are missing. Node itself plays the program. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodingFailed, runTool, type ToolRun, toMetadataText } from '../../media/ffmpeg.ts'
import { NodeError } from '../../node/node-error.ts'

function script(code: string, more: Partial<ToolRun> = {}): ToolRun {
  const run = {
    program: process.execPath,
    args: ['-e', code],
    purpose: 'testing',
    timeLimitMs: 600_000,
    checkpoint() {},
  }
  return { ...run, ...more }
}

const FOREVER = 'setInterval(() => {}, 1000)'

test('input goes in, output comes out, the exit code and the last words are told', async () => {
  const parts: Buffer[] = []
  const echo = 'process.stdin.pipe(process.stdout); process.stderr.write("said"); process.exitCode = 3'
  const input = [Buffer.from('one '), Buffer.alloc(3_000_000, 'x')]
  const end = await runTool(script(echo, { input, onOutput: (bytes) => parts.push(bytes) }))
  assert.deepEqual(end, { isDone: false, complaint: 'said' })
  assert.equal(Buffer.concat(parts).length, 3_000_004)
})

test('a program that stops listening is judged by its exit code', async () => {
  const endless = (function* () {
    for (;;) yield Buffer.alloc(65_536)
  })()
  assert.equal((await runTool(script('process.exit(0)', { input: endless }))).isDone, true)
})

test('a cancel ends a program that would never end, and leaves no process behind', async () => {
  let pid = 0
  const onOutput = (bytes: Buffer) => {
    pid = Number(bytes)
  }
  const checkpoint = () => {
    if (pid > 0) throw new Error('cancelled')
  }
  const running = runTool(script(`process.stdout.write(String(process.pid)); ${FOREVER}`, { onOutput, checkpoint }))
  await assert.rejects(running, /cancelled/)
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
})

test('a failure while input is made, or while output is taken, ends the program', async () => {
  const broken = (function* () {
    yield Buffer.from('x')
    throw new NodeError('ValueError', 'no more frames')
  })()
  await assert.rejects(runTool(script(FOREVER, { input: broken })), /no more frames/)
  const onOutput = () => {
    throw new NodeError('MemoryError', 'no room')
  }
  await assert.rejects(runTool(script(`process.stdout.write("x"); ${FOREVER}`, { onOutput })), /no room/)
})

test('a program that takes too long is given up', async () => {
  await assert.rejects(runTool(script(FOREVER, { timeLimitMs: 100 })), { exceptionType: 'TimeoutError' })
})

test('a program that is not installed is refused with what to install', async () => {
  const missing = runTool(script('', { program: 'no-such-program-anywhere', purpose: "reading 'a.mp3'" }))
  await assert.rejects(missing, (error: NodeError) => {
    assert.equal(error.exceptionType, 'ModelDownloadError')
    assert.match(error.message, /^reading 'a\.mp3' needs the program no-such-program-anywhere/)
    assert.match(error.message, /apt-get install ffmpeg/)
    return true
  })
})

test('an encoder that a build lacks is named; other failures are told without paths', () => {
  const lacking = encodingFailed('writing a video', { isDone: false, complaint: "Unknown encoder 'libsvtav1'\n" })
  assert.equal(lacking.exceptionType, 'ModelDownloadError')
  assert.match(lacking.message, /libsvtav1/)
  const complaint = '/srv/secret/x/made.mp4: Invalid argument in file:/var/other/thing\n'
  const failed = encodingFailed('writing a video', { isDone: false, complaint })
  assert.equal(failed.message, 'writing a video failed: …: Invalid argument in …')
})

test('metadata is escaped so that every value is one value', () => {
  const text = toMetadataText([['a=b', '{"x": "1;2#3\\\\n"}\nsecond=line']])
  assert.equal(text, ';FFMETADATA1\na\\=b={"x": "1\\;2\\#3\\\\\\\\n"}\\\nsecond\\=line\n')
})
