/** Files of a run: inputs that are brought to the server, and outputs that are read and removed there. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ReportedFile, ReportedItem } from '../../../engine/graph/run-event.ts'
import { EngineLostError } from '../../../src/domain/engine/engine-lost-error.ts'
import { shortBounds } from '../../support/engines/comfy-test-bounds.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { bytesOf, type GraphJson, ofType, openRig, runGraph, saveGraph, toRun } from './support/harness.ts'

const loadGraph = (name: string): GraphJson => ({
  '1': { class_type: 'LoadImage', inputs: { image: name } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'loaded' } },
})

const reportGraph = (output: object): GraphJson => ({
  '1': { class_type: 'DemoReport', inputs: { output: JSON.stringify(output) } },
})

const isFile = (item: ReportedItem): item is ReportedFile => item.kind === 'file'

describe('files of runs on a ComfyUI server', { concurrency: 4 }, () => {
  test('an input is uploaded once per engine, named by its content, whatever it is called in the graph', async () => {
    await using rig = await openRig()
    const bytes = Buffer.from('one photo')
    await runGraph(rig.engine, loadGraph('photo.png'), { files: { 'photo.png': bytes } })
    await runGraph(rig.engine, loadGraph('again.png [input]'), { files: { 'again.png [input]': bytes } })
    assert.equal(rig.fake.calls.get('POST /upload/image'), 1)
    const [first, second] = rig.fake.executions.map(({ graph }) => graph['1']?.inputs.image)
    assert.match(String(first), /^atelier\/[0-9a-f]{64}\.png$/)
    assert.equal(first, second)
  })

  test('after a restart of the server an input is uploaded again only when it is gone', async () => {
    await using rig = await openRig()
    const files = { 'photo.png': Buffer.from('a photo') }
    await runGraph(rig.engine, loadGraph('photo.png'), { files })
    for (const [wipe, uploads] of [
      [false, 1],
      [true, 2],
    ] as const) {
      const lost = Promise.withResolvers<void>()
      rig.engine.onChange(() => rig.engine.health().state === 'lost' && lost.resolve())
      await rig.fake.restart({ downUntil: lost.promise, wipe })
      await rig.engine.untilReady()
      const { events } = await runGraph(rig.engine, loadGraph('photo.png'), { files })
      assert.equal(events.at(-1)?.type, 'succeeded')
      assert.equal(rig.fake.calls.get('POST /upload/image'), uploads)
    }
  })

  test('a later attempt whose files cannot be asked for is lost; it does not end well without them', async () => {
    await using rig = await openRig()
    for (const faults of [
      { viewHeadStatus: 500, dropView: 0 },
      { viewHeadStatus: null, dropView: Number.POSITIVE_INFINITY },
    ]) {
      Object.assign(rig.fake.faults, faults)
      await assert.rejects(runGraph(rig.engine, saveGraph(7), { attempt: 2 }), { code: 'output_unreadable' })
    }
  })

  test('a later attempt believes a server that knows of no such file only if that cannot have been restarted', async () => {
    await using rig = await openRig()
    rig.fake.faults.viewHeadStatus = 404
    const { events } = await runGraph(rig.engine, saveGraph(7), { attempt: 2 })
    assert.equal(events.at(-1)?.type, 'succeeded')
    rig.fake.hold('running')
    const run = runGraph(rig.engine, saveGraph(8), { attempt: 2 })
    await rig.fake.held('running')
    rig.fake.cutSockets()
    await waitUntil(() => rig.engine.health().reconnects > 0)
    rig.fake.release('running')
    await assert.rejects(run, { code: 'output_unreadable' })
  })

  test('an output can be read again until it is released, and is an error once it was removed', async () => {
    await using rig = await openRig({}, { removeAfterMs: 1 })
    const files: ReportedFile[] = []
    for await (const event of rig.engine.run(toRun(saveGraph(7)), { signal: new AbortController().signal })) {
      if (event.type === 'node_report') files.push(...Object.values(event.report).flat().filter(isFile))
    }
    const [file] = files
    assert.ok(file)
    const bytes = await bytesOf(file)
    // Another run begins and ends, and what it saved goes: this one stays, although it was read.
    await runGraph(rig.engine, saveGraph(8))
    await waitUntil(() => rig.fake.files.paths().some((path) => rig.fake.files.get(path)?.length === 0))
    assert.deepEqual(await bytesOf(file), bytes)
    file.release?.()
    const saved = () => rig.fake.files.paths().filter((path) => path.startsWith('output/atelier/'))
    await waitUntil(() => saved().every((path) => rig.fake.files.get(path)?.length === 0))
    await assert.rejects(bytesOf(file), EngineLostError)
  })

  test('a job that is handed out again as the same attempt is a run of its own on the same server, with a folder of its own', async () => {
    await using rig = await openRig()
    rig.fake.hold('running')
    const runs = ['first', 'second'].map((claimId) => runGraph(rig.engine, saveGraph(9), { jobId: 'same', claimId }))
    await rig.fake.held('running')
    await waitUntil(() => rig.fake.queue().pending.length === 1)
    rig.fake.release('running')
    for (const { events } of await Promise.all(runs)) {
      assert.equal(events.at(-1)?.type, 'succeeded')
      assert.equal(ofType(events, 'node_report').length, 1)
    }
    const [first, second] = rig.fake.executions
    assert.notEqual(first?.promptId, second?.promptId)
    assert.notDeepEqual(first?.graph, second?.graph)
  })

  test('an input folder that somebody emptied is filled again within the run', async () => {
    await using rig = await openRig()
    const files = { 'photo.png': Buffer.from('a photo') }
    await runGraph(rig.engine, loadGraph('photo.png'), { files })
    rig.fake.files.clear('input')
    const { events } = await runGraph(rig.engine, loadGraph('photo.png'), { files })
    assert.equal(events.at(-1)?.type, 'succeeded')
    assert.equal(rig.fake.executions.length, 2)
  })

  test('a node that only accepts files directly in the input folder gets its input there, and later runs do so at once', async () => {
    await using rig = await openRig()
    const graph: GraphJson = {
      '1': { class_type: 'DemoPicker', inputs: { image: 'photo.png' } },
      '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
    }
    for (const content of ['one', 'two']) {
      const { events } = await runGraph(rig.engine, graph, { files: { 'photo.png': Buffer.from(content) } })
      assert.equal(events.at(-1)?.type, 'succeeded', JSON.stringify(events.at(-1)))
    }
    assert.match(String(rig.fake.executions[0]?.graph['1']?.inputs.image), /^[0-9a-f]{64}\.png$/)
    assert.equal(rig.fake.calls.get('POST /prompt'), 3)
  })

  test('an input that the server would refuse for its size fails the run and says so', async () => {
    await using rig = await openRig({ maxUploadBytes: 4 })
    const { events } = await runGraph(rig.engine, loadGraph('photo.png'), {
      files: { 'photo.png': Buffer.from('large') },
    })
    const end = events.at(-1)
    assert.ok(end?.type === 'failed')
    assert.equal(end.failure.code, 'input_too_large')
  })

  test('files are saved into a folder of the attempt, unless the prefix leads out of the output folder', async () => {
    await using rig = await openRig()
    await runGraph(rig.engine, saveGraph(1, 'sub/name'), { jobId: 'one', attempt: 2 })
    await runGraph(rig.engine, saveGraph(1, '/absolute'))
    const prefixes = rig.fake.executions.map(({ graph }) => graph['2']?.inputs.filename_prefix)
    assert.match(String(prefixes[0]), /^atelier\/one-2-[0-9a-f]{8}\/sub\/name$/)
    assert.deepEqual(prefixes.slice(1), ['/absolute'])
  })

  test('two jobs whose files get the same name on the server each keep their own picture', async () => {
    await using rig = await openRig({ faults: { duplicateNames: true } })
    for (const color of [0xff0000, 0x00ff00]) {
      const { files } = await runGraph(rig.engine, saveGraph(color))
      assert.deepEqual(files[0]?.bytes, toPng({ width: 8, height: 8, color }))
    }
  })

  test('a scene that is only named by its path becomes a file when it is one', async () => {
    await using rig = await openRig()
    rig.fake.files.put('output/3d/mesh.glb', Buffer.from('a mesh'))
    const { events, files } = await runGraph(rig.engine, reportGraph({ result: ['3d/mesh.glb', 'gone.glb', null] }))
    assert.deepEqual(
      files.map(({ file, bytes }) => [file.filename, file.subfolder, bytes.toString()]),
      [['mesh.glb', '3d', 'a mesh']],
    )
    assert.deepEqual(ofType(events, 'node_report')[0]?.report.result?.slice(1), [
      { kind: 'value', value: 'gone.glb' },
      { kind: 'value', value: null },
    ])
  })

  test('previews and temporary files are told apart from outputs', async () => {
    await using rig = await openRig()
    const graph = { ...saveGraph(5), '3': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } } }
    const { files } = await runGraph(rig.engine, graph)
    assert.deepEqual(files.map(({ nodeId, file }) => `${nodeId} ${file.folder}`).toSorted(), ['2 output', '3 temp'])
  })

  test('a file that we have is removed from a server whose API can do that, and only then', async () => {
    await using rig = await openRig({ faults: { hasAssets: true } })
    rig.fake.faults.viewTruncated = 1
    const { files } = await runGraph(rig.engine, saveGraph(5))
    assert.deepEqual(files[0]?.bytes, toPng({ width: 8, height: 8, color: 5 }))
    await waitUntil(() => rig.fake.files.paths().length === 0)
  })

  test('a server that dies while a file is read is given up, long before the time that a file may take', async () => {
    await using rig = await openRig({}, shortBounds('unreachableMs', 'callMs'))
    const reported: ReportedFile[] = []
    for await (const event of rig.engine.run(toRun(saveGraph(6)), { signal: new AbortController().signal })) {
      if (event.type !== 'node_report') continue
      reported.push(...Object.values(event.report).flatMap((items) => items.filter((item) => item.kind === 'file')))
    }
    rig.fake.faults.mute = { '': Number.POSITIVE_INFINITY }
    assert.equal(reported.length, 1)
    await assert.rejects(
      bytesOf(reported[0] as ReportedFile),
      (error) => error instanceof EngineLostError && /nothing was answered/.test(error.message),
    )
  })
})
