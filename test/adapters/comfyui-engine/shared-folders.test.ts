/** Runs of the same prompt share a folder on their server, so that it need not save again what it has in its cache. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ReportedFile } from '../../../engine/graph/run-event.ts'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { openComfyEngine } from '../../../src/adapters/engines/comfyui/comfy-engine.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { waitUntil } from '../../support/wait-until.ts'
import {
  BOUNDS,
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

async function restart({ fake, engine }: Rig): Promise<void> {
  const lost = Promise.withResolvers<void>()
  engine.onChange(() => engine.health().state === 'lost' && lost.resolve())
  await fake.restart({ downUntil: lost.promise })
  await engine.untilReady()
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

  test('a run that begins before the folder is removed keeps it', async () => {
    await using rig = await openRig({}, { removeAfterMs: 50 })
    await using other = await openRig({}, { removeAfterMs: 50 })
    await runGraph(rig.engine, saveGraph(5))
    rig.fake.hold('finishing')
    const second = runUnread(rig, saveGraph(5))
    await rig.fake.held('finishing')
    // What ends later is removed meanwhile.
    await runGraph(other.engine, saveGraph(5))
    await waitUntil(() => savedOn(other).every((path) => other.fake.files.get(path)?.length === 0))
    rig.fake.release('finishing')
    const [file] = await second
    assert.ok(file)
    assert.deepEqual(await bytesOf(file), PICTURE)
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

  test('share nothing where the name is filled in by the server, or might be given twice', async () => {
    await using rig = await openRig()
    const prefixes = ['%year%/x', 'x%batch_num%', 'x/', 'x/.', '']
    for (const prefix of prefixes) for (let run = 0; run < 2; run++) await runGraph(rig.engine, saveGraph(5, prefix))
    assert.equal(new Set(rig.fake.executions.map(({ graph }) => graph['2']?.inputs.filename_prefix)).size, 10)
    for (let run = 0; run < 2; run++) await runGraph(rig.engine, saveGraph(5, 'a b/c.d-e_1'))
    assert.equal(
      rig.fake.executions.at(-1)?.graph['2']?.inputs.filename_prefix,
      rig.fake.executions.at(-2)?.graph['2']?.inputs.filename_prefix,
    )
  })

  test('share nothing on a server that runs several at once, or long after the first', async () => {
    await using rig = await openRig({}, { shareForMs: 0 })
    const settings = { bounds: BOUNDS, log: silentLog, clock: systemClock, concurrency: 2 }
    await using several = await openComfyEngine({ server: { kind: 'remote', url: rig.fake.url }, ...settings })
    await several.untilReady()
    for (const engine of [rig.engine, several]) for (let run = 0; run < 2; run++) await runGraph(engine, saveGraph(5))
    assert.equal(new Set(foldersOf(rig)).size, 4)
  })

  test('that keep a larger file are read from the server each time', async () => {
    await using rig = await openRig()
    const graph = saveGraph(5)
    const large = {
      ...graph,
      '1': { class_type: 'EmptyImage', inputs: { width: 2048, height: 2048, batch_size: 1, color: 5 } },
    }
    for (let run = 0; run < 4; run++) {
      const { files } = await runGraph(rig.engine, large)
      assert.ok((files[0]?.bytes.length ?? 0) > 16_384)
    }
    assert.equal(rig.fake.calls.get('GET /view'), 4)
    assert.equal(savedOn(rig).length, 1)
  })

  test('with a branch that is blocked, or an output node that reports nothing, are run once and go on sharing', async () => {
    await using rig = await openRig()
    const graph = {
      ...saveGraph(5),
      '3': { class_type: 'DemoBlocker', inputs: { image: ['1', 0] } },
      '4': { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: 'off' } },
      '5': { class_type: 'DemoSilent', inputs: { image: ['1', 0] } },
    }
    for (let run = 0; run < 3; run++) assert.equal((await runGraph(rig.engine, graph)).files.length, 1)
    assert.equal(rig.fake.executions.length, 3)
    assert.equal(new Set(foldersOf(rig)).size, 1)
  })

  test('a save that was blocked twice does not make its class one that reports nothing', async () => {
    await using rig = await openRig({ faults: { cachedEmptyOutputs: true } })
    const blocked = {
      ...saveGraph(5),
      '3': { class_type: 'DemoBlocker', inputs: { image: ['1', 0] } },
      '4': { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: 'off' } },
    }
    for (let run = 0; run < 2; run++) assert.equal((await runGraph(rig.engine, blocked)).files.length, 1)
    await restart(rig)
    for (let run = 0; run < 3; run++) assert.equal((await runGraph(rig.engine, saveGraph(9))).files.length, 1)
  })

  test('a reader that leaves before it has the report does not keep the file', async () => {
    await using rig = await openRig({}, { removeAfterMs: 1 })
    const [held] = await runUnread(rig, saveGraph(5))
    const ended = () => rig.fake.calls.get('POST /history') ?? 0
    await waitUntil(() => ended() === 1)
    const leaving = rig.engine
      .run(toRun(saveGraph(5)), { signal: new AbortController().signal })
      [Symbol.asyncIterator]()
    await leaving.next()
    // By then the report waits for its reader.
    await waitUntil(() => ended() === 2)
    await leaving.return?.()
    held?.release?.()
    await waitUntil(() => savedOn(rig).every((path) => rig.fake.files.get(path)?.length === 0))
  })

  test('the removal of an earlier folder leaves the present one open', async () => {
    await using rig = await openRig({}, { removeAfterMs: 1 })
    const earlier = await runUnread(rig, saveGraph(5))
    await emptyCache(rig)
    earlier.push(...(await runUnread(rig, saveGraph(5))))
    await emptyCache(rig)
    await runUnread(rig, saveGraph(5))
    for (const file of earlier) file.release?.()
    await waitUntil(() => savedOn(rig).filter((path) => rig.fake.files.get(path)?.length === 0).length === 2)
    await runUnread(rig, saveGraph(5))
    const [first, second, third, fourth] = foldersOf(rig)
    assert.deepEqual([second, fourth], [first, third])
    assert.notEqual(third, first)
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
    rig.fake.faults.cachedEmptyOutputs = false
    await restart(rig)
    for (let run = 0; run < 2; run++) await runGraph(rig.engine, saveGraph(5))
    assert.equal(foldersOf(rig).at(-1), foldersOf(rig).at(-2))
  })

  test('after a restart of the server, each begins with a folder of its own', async () => {
    await using rig = await openRig()
    await runGraph(rig.engine, saveGraph(5))
    await restart(rig)
    await runGraph(rig.engine, saveGraph(5))
    assert.equal(new Set(foldersOf(rig)).size, 2)
  })
})
