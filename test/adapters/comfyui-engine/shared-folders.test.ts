/** Runs of the same prompt share a folder on their server, so that it need not save again what it has in its cache. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ReportedFile } from '../../../engine/graph/run-event.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { waitUntil } from '../../support/wait-until.ts'
import {
  bytesOf,
  type GraphJson,
  ofType,
  openRig,
  outline,
  type Rig,
  type RunSettings,
  runGraph,
  saveGraph,
  toRun,
} from './support/harness.ts'

const SAVED_ANEW = /2\+ 2! 2\. succeeded$/
const PICTURE = toPng({ width: 8, height: 8, color: 5 })

/** The folders that the prompts named, in their order. */
function foldersOf({ fake }: Rig): string[] {
  return fake.executions.map(({ graph }) => String(graph['2']?.inputs.filename_prefix).replace(/\/[^/]*$/, ''))
}

function savedOn({ fake }: Rig): string[] {
  return fake.files.paths().filter((path) => path.startsWith('output/atelier/'))
}

async function emptyCache({ fake }: Rig): Promise<void> {
  await fetch(new URL('free', fake.url), { method: 'POST', body: '{"unload_models":true,"free_memory":true}' })
}

/** Runs it without reading what it saved. */
async function runUnread(rig: Rig, graph: GraphJson, settings: RunSettings = {}): Promise<ReportedFile[]> {
  const files: ReportedFile[] = []
  for await (const event of rig.engine.run(toRun(graph, settings), { signal: new AbortController().signal })) {
    if (event.type !== 'node_report') continue
    for (const item of Object.values(event.report).flat()) if (item.kind === 'file') files.push(item)
  }
  return files
}

describe('runs of the same prompt', { concurrency: 4 }, () => {
  test('are saved once, and each has the picture under a name of its own', async () => {
    await using rig = await openRig()
    const first = await runGraph(rig.engine, saveGraph(5))
    const second = await runGraph(rig.engine, saveGraph(5))
    assert.match(outline(first.events), SAVED_ANEW)
    assert.equal(outline(second.events), '2!cached succeeded')
    for (const { files } of [first, second]) assert.deepEqual(files[0]?.bytes, PICTURE)
    assert.equal(savedOn(rig).length, 1)
    assert.equal(second.files[0]?.file.subfolder, '')
  })

  test('are read from the server twice at most where the file is short, previews or not', async () => {
    await using rig = await openRig()
    const graph = { ...saveGraph(5), '3': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } } }
    const reads: number[] = []
    for (let run = 0; run < 5; run++) {
      const before = rig.fake.calls.get('GET /view') ?? 0
      const { files } = await runGraph(rig.engine, graph)
      for (const { bytes } of files) assert.deepEqual(bytes, PICTURE)
      assert.equal(files.length, 2)
      reads.push((rig.fake.calls.get('GET /view') ?? 0) - before)
    }
    // The preview lies in no folder of ours.
    assert.deepEqual(reads, [2, 2, 1, 1, 1])
    assert.equal(savedOn(rig).length, 1)
  })

  test('of another account, of later attempts, with data or with other inputs share nothing', async () => {
    await using rig = await openRig()
    const graph: GraphJson = {
      '1': { class_type: 'LoadImage', inputs: { image: 'photo.png' } },
      '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
    }
    const files = { 'photo.png': Buffer.from('one') }
    await runGraph(rig.engine, graph, { files })
    await runGraph(rig.engine, graph, { files, accountId: 'other' })
    await runGraph(rig.engine, graph, { files, attempt: 2 })
    await runGraph(rig.engine, graph, { files, extraData: { extra_pnginfo: { workflow: {} } } })
    await runGraph(rig.engine, graph, { files: { 'photo.png': Buffer.from('two') } })
    assert.equal(new Set(foldersOf(rig)).size, 5)
    await runGraph(rig.engine, graph, { files })
    assert.equal(foldersOf(rig).at(-1), foldersOf(rig)[0])
  })

  test('of classes that may give two files the same name share nothing', async () => {
    await using rig = await openRig()
    const signed = { class_type: 'DemoSigned', inputs: { image: ['1', 0], filename_prefix: 'signed' } }
    for (let run = 0; run < 2; run++) await runGraph(rig.engine, { ...saveGraph(5), '3': signed })
    assert.equal(new Set(foldersOf(rig)).size, 2)
  })

  test('keep their file until the last of them has read it', async () => {
    await using rig = await openRig({}, { removeAfterMs: 1 })
    const [early] = await runUnread(rig, saveGraph(5))
    const [late] = await runUnread(rig, saveGraph(5))
    assert.ok(early !== undefined && late !== undefined)
    early.release?.()
    // Another prompt comes and goes, and with it what it saved.
    await runGraph(rig.engine, saveGraph(6))
    await waitUntil(() => savedOn(rig).some((path) => rig.fake.files.get(path)?.length === 0))
    assert.deepEqual(await bytesOf(late), PICTURE)
    late.release?.()
    await waitUntil(() => savedOn(rig).every((path) => rig.fake.files.get(path)?.length === 0))
  })

  test('a run that has not ended keeps the folder that an earlier one has left', async () => {
    await using rig = await openRig({}, { removeAfterMs: 1 })
    rig.fake.hold('finishing')
    const first = runGraph(rig.engine, saveGraph(5))
    await rig.fake.held('finishing')
    const second = runGraph(rig.engine, saveGraph(5))
    await waitUntil(() => rig.fake.queue().pending.length === 1)
    rig.fake.release('finishing')
    assert.deepEqual((await first).files[0]?.bytes, PICTURE)
    assert.deepEqual((await second).files[0]?.bytes, PICTURE)
    assert.equal(outline((await second).events), '2!cached succeeded')
  })

  test('that come after the folder was removed save anew', async () => {
    await using rig = await openRig({}, { removeAfterMs: 1 })
    await runGraph(rig.engine, saveGraph(5))
    await waitUntil(() => savedOn(rig).every((path) => rig.fake.files.get(path)?.length === 0))
    const { events, files } = await runGraph(rig.engine, saveGraph(5))
    assert.match(outline(events), SAVED_ANEW)
    assert.deepEqual(files[0]?.bytes, PICTURE)
  })

  test('are referred only once to a file that somebody has deleted', async () => {
    await using rig = await openRig()
    await runGraph(rig.engine, saveGraph(5))
    rig.fake.files.clear('output')
    await assert.rejects(runGraph(rig.engine, saveGraph(5)), { code: 'output_unreadable' })
    const { events, files } = await runGraph(rig.engine, saveGraph(5))
    assert.match(outline(events), SAVED_ANEW)
    assert.deepEqual(files[0]?.bytes, PICTURE)
  })

  test('that failed before they saved leave no folder to share', async () => {
    await using rig = await openRig()
    rig.fake.faults.outOfMemory = 1
    const { events } = await runGraph(rig.engine, saveGraph(5))
    assert.equal(events.at(-1)?.type, 'failed')
    await runGraph(rig.engine, saveGraph(5))
    const [first, second] = foldersOf(rig)
    assert.notEqual(first, second)
  })

  test('gather no files where the server does not have them in its cache', async () => {
    await using rig = await openRig()
    for (let run = 0; run < 4; run++) {
      const { files } = await runGraph(rig.engine, saveGraph(5))
      assert.deepEqual(files[0]?.bytes, PICTURE)
      await emptyCache(rig)
    }
    const [first, second, third, fourth] = foldersOf(rig)
    assert.equal(second, first)
    assert.notEqual(third, second)
    assert.equal(fourth, third)
  })

  test('on a server that does not tell what it had in its cache share nothing once that is known', async () => {
    await using rig = await openRig({ faults: { cachedEmptyOutputs: true } })
    for (let run = 0; run < 3; run++) {
      const { events, files } = await runGraph(rig.engine, saveGraph(5))
      assert.equal(ofType(events, 'node_report').length, 1)
      assert.deepEqual(files[0]?.bytes, PICTURE)
    }
    // The second was submitted twice.
    const [first, second, again, third] = foldersOf(rig)
    assert.deepEqual([second, again], [first, first])
    assert.notEqual(third, first)
    assert.equal(rig.fake.executions.length, 4)
  })

  test('after a restart of the server, each begins with a folder of its own', async () => {
    await using rig = await openRig()
    await runGraph(rig.engine, saveGraph(5))
    const lost = Promise.withResolvers<void>()
    rig.engine.onChange(() => rig.engine.health().state === 'lost' && lost.resolve())
    await rig.fake.restart({ downUntil: lost.promise })
    await rig.engine.untilReady()
    await runGraph(rig.engine, saveGraph(5))
    assert.equal(new Set(foldersOf(rig)).size, 2)
  })
})
