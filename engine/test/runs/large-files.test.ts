/** Files of any size come out of the engine's process without holding up whoever opened it, and leave nothing behind. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { serialize } from 'node:v8'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { CheckedGraph } from '../../engine.ts'
import { readGraph } from '../../graph/graph-json.ts'
import { bytesOf, filesOf, type GraphJson, lastOf, openTestEngine, watchProcesses } from '../support/harness.ts'
import { fileBytes } from '../support/test-nodes.ts'

const MIB = 1_048_576

let folder: string
let before: string | undefined
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'atelier-large-'))
  before = process.env.TMPDIR
  process.env.TMPDIR = folder
})
afterEach(() => {
  if (before === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = before
  rmSync(folder, { recursive: true, force: true })
})

const making = (...sizes: readonly number[]): GraphJson => ({
  1: { class_type: 'TestFiles', inputs: { sizes: sizes.join(' ') } },
})
const left = () => readdirSync(folder, { recursive: true })

test('large files, and many small ones, arrive whole in messages of bounded size, from the cache as well', async (t) => {
  let largest = 0
  watchProcesses(t, (child) => {
    child.on('message', (message) => {
      largest = Math.max(largest, serialize(message).byteLength)
    })
  })
  await using engine = await openTestEngine()
  for (const sizes of [[64 * MIB, 5, 3 * MIB, 0], Array.from({ length: 40 }, () => MIB / 2)]) {
    for (const _ of ['made', 'cached']) {
      const events = await engine.run(making(...sizes))
      const files = filesOf(events, '1')
      assert.equal(files.length, sizes.length)
      for (const [index, file] of files.entries()) {
        // Twice: a store that was away reads again.
        for (const __ of ['first', 'again']) {
          const bytes = await bytesOf(file)
          assert.ok(bytes.equals(fileBytes(sizes[index], index)), `file ${index} of ${sizes}`)
        }
        file.release?.()
      }
    }
  }
  assert.ok(largest > MIB / 2 && largest < 2 * MIB, `${largest} bytes in one message`)
  assert.deepEqual(
    left().filter((name) => !String(name).startsWith('atelier-engine-') || String(name).includes('/')),
    [],
  )
})

test('files that nobody has read yet outlive the engine, which leaves nothing on the disk', async () => {
  const engine = await openTestEngine()
  const [file] = filesOf(await engine.run(making(3 * MIB)), '1')
  await engine.engine.close()
  assert.deepEqual(left(), [])
  assert.ok((await bytesOf(file)).equals(fileBytes(3 * MIB, 0)))
  file.release?.()
  file.release?.()
  await assert.rejects(bytesOf(file), /released/)
})

test('a reader that leaves before its files leaves nothing on the disk', async () => {
  await using engine = await openTestEngine()
  for await (const event of engine.engine.run(new CheckedGraph(readGraph(making(8 * MIB) as JsonValue)))) {
    if (event.type === 'node_started') break
  }
  // The next run is answered after whatever the one before still had to say.
  assert.equal((await engine.run(making(1))).at(-1)?.type, 'succeeded')
  const deadline = performance.now() + 30_000
  while (left().some((name) => String(name).includes('/'))) {
    assert.ok(performance.now() < deadline, `left: ${left()}`)
    await sleep(20)
  }
})

test('a disk that is full or away fails the node with the code of the machine, and the engine goes on', async () => {
  await using engine = await openTestEngine()
  assert.equal((await engine.run(making(2 * MIB))).at(-1)?.type, 'succeeded')
  const [own] = readdirSync(folder)
  symlinkSync('/dev/full', path.join(folder, own, '1'))
  const full = lastOf(await engine.run(making(2 * MIB + 1)), 'failed').failure
  assert.deepEqual([full.exceptionType, full.nodeId], ['OSError', '1'])
  assert.match(full.message, /^what the node made could not be written .*\(ENOSPC\)$/)
  rmSync(path.join(folder, own), { recursive: true })
  writeFileSync(path.join(folder, own), '')
  const away = lastOf(await engine.run(making(2 * MIB + 2)), 'failed').failure
  assert.match(away.message, /\((?:ENOTDIR|EEXIST)\)$/)
  rmSync(path.join(folder, own))
  assert.equal((await engine.run(making(2 * MIB + 3))).at(-1)?.type, 'succeeded')
})
