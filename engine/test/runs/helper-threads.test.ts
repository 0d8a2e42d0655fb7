/** Helper threads of a whole engine: when there are any, and that they end with their compute thread and with the engine. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { dumped, type GraphJson, openTestEngine, type TestEngine } from '../support/harness.ts'

const skip = process.platform === 'linux' ? false : 'only Linux shows the names of threads'

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    // What it tells about has ended meanwhile.
    return ''
  }
}

/** Of the processes that this one has started. */
function countHelpers(): number {
  const children = read(`/proc/self/task/${process.pid}/children`).split(' ').filter(Boolean)
  const tasks = children.flatMap((child) => {
    const folder = `/proc/${child}/task`
    return existsSync(folder) ? readdirSync(folder).map((task) => `${folder}/${task}/comm`) : []
  })
  return tasks.filter((file) => read(file) === 'band').length
}

async function untilHelpers(count: number): Promise<void> {
  while (countHelpers() !== count) await sleep(10)
}

const invert = (side: number, color = 7): GraphJson => ({
  1: { class_type: 'EmptyImage', inputs: { width: side, height: side, batch_size: 1, color } },
  2: { class_type: 'ImageInvert', inputs: { image: ['1', 0] } },
  3: { class_type: 'ImageCrop', inputs: { image: ['2', 0], width: 2, height: 2, x: side - 2, y: side - 2 } },
  4: { class_type: 'TestDump', inputs: { source: ['3', 0] } },
})

async function cornerOf(engine: TestEngine, side: number): Promise<number[]> {
  const [{ f32_b64: text }] = dumped(await engine.run(invert(side)), '4') as unknown as [{ f32_b64: string }]
  const bytes = Buffer.from(text, 'base64')
  return [...new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4)]
}

test('a large picture is shared with helpers, a small one is not, and the helpers end with the engine', {
  skip,
}, async () => {
  await using engine = await openTestEngine({ cores: 3 })
  const small = await cornerOf(engine, 400)
  assert.equal(countHelpers(), 0)
  const large = await cornerOf(engine, 1400)
  assert.deepEqual(large, small)
  await untilHelpers(2)
  await engine.engine.close()
  assert.equal(countHelpers(), 0)
})

test('an engine that may use one core starts no helpers', { skip }, async () => {
  await using engine = await openTestEngine({ cores: 1 })
  await cornerOf(engine, 1400)
  assert.equal(countHelpers(), 0)
})

test('a compute thread that dies takes its helpers along, and the next one gets helpers of its own', {
  skip,
}, async () => {
  await using engine = await openTestEngine({ cores: 2 })
  const before = await cornerOf(engine, 1400)
  await untilHelpers(1)
  const crash = {
    1: { class_type: 'TestExit', inputs: { where: 'compute' } },
    2: { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
  }
  assert.equal((await engine.run(crash)).at(-1)?.type, 'failed')
  await untilHelpers(0)
  assert.deepEqual(await cornerOf(engine, 1401), before)
  await untilHelpers(1)
})
