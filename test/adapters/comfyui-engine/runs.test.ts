/** What a run says to the server, and what it tells of the run. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ReportedItem } from '../../../engine/graph/run-event.ts'
import { parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { readRecording } from '../../support/engines/fake-comfyui/recording.ts'
import { type GraphJson, ofType, openRig, outline, runGraph, saveGraph, stepsGraph } from './support/harness.ts'

const reportGraph = (output: object): GraphJson => ({
  '1': { class_type: 'DemoReport', inputs: { output: JSON.stringify(output) } },
})

describe('runs on a ComfyUI server', { concurrency: 4 }, () => {
  test('a run whose end the socket tells costs one look into the history', async () => {
    await using rig = await openRig({}, { endLagMs: 60_000, pollFirstMs: 60_000 })
    const { events } = await runGraph(rig.engine, saveGraph(8))
    assert.equal(events.at(-1)?.type, 'succeeded')
    const asked = [...rig.fake.calls].filter(([call]) => call.startsWith('GET /history'))
    assert.deepEqual(
      asked.map(([, times]) => times),
      [1],
    )
    assert.equal(rig.fake.calls.get('POST /prompt'), 1)
  })

  const pictures = (count: number): GraphJson => ({
    '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: count, color: 7 } },
    '2': { class_type: 'SaveImageWebsocket', inputs: { images: ['1', 0] } },
  })

  test('pictures that the socket brings after the history has told the end are not lost', async (context) => {
    await using rig = await openRig()
    const { promise: historyTold, resolve } = Promise.withResolvers<void>()
    const { history } = rig.fake.queue()
    const find = history.get.bind(history)
    context.mock.method(history, 'get', (id: string) => {
      const entry = find(id)
      if (entry !== undefined) resolve()
      return entry
    })
    rig.fake.hold('running')
    const run = runGraph(rig.engine, pictures(3))
    await rig.fake.held('running')
    rig.fake.delayFrames()
    rig.fake.release('running')
    await historyTold
    // By the time of the next answer that one has arrived.
    await rig.engine.refreshList?.()
    rig.fake.deliverFrames()
    const { events } = await run
    const shown = ofType(events, 'preview')
    assert.deepEqual(
      shown.map(({ isResult, bytes }) => [isResult, Buffer.from(bytes)]),
      Array.from({ length: 3 }, () => [true, toPng({ width: 8, height: 8, color: 7 })]),
    )
    assert.equal(events.at(-1)?.type, 'succeeded')
  })

  test('a socket that brings nothing more is not waited for without end', async () => {
    await using rig = await openRig({}, { drainQuietMs: 50 })
    rig.fake.hold('running')
    const run = runGraph(rig.engine, pictures(1))
    await rig.fake.held('running')
    rig.fake.delayFrames()
    rig.fake.release('running')
    assert.equal((await run).events.at(-1)?.type, 'succeeded')
  })

  test('credentials reach the server under the names it keeps secret, and nothing else of ours', async () => {
    await using rig = await openRig()
    const graph: GraphJson = {
      '1': { class_type: 'DemoPrint', inputs: { image: ['0', 0], text: 'the key is sk-very-secret' } },
      '0': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 1 } },
      '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
    }
    const extraData = { api_key_service_org: 'sk-very-secret', extra_pnginfo: { workflow: { id: 'w' } } }
    const { events } = await runGraph(rig.engine, graph, { extraData })
    const { secrets } = rig.fake.executions[0] ?? { secrets: {} }
    assert.deepEqual(secrets, { api_key_comfy_org: 'sk-very-secret', extra_pnginfo: { workflow: { id: 'w' } } })
    assert.deepEqual(
      ofType(events, 'log').map(({ text }) => text),
      ['the key is [redacted]\n'],
    )
    assert.ok(!JSON.stringify(events).includes('sk-very-secret'))
  })

  test('a seed of 64 bits and a float written as 1.0 reach the server digit by digit', async () => {
    await using rig = await openRig()
    const graph = parseLosslessJson(
      '{"1":{"class_type":"PreviewAny","inputs":{"source":18446744073709551615,"x":1.0}}}',
    ) as unknown as GraphJson
    await runGraph(rig.engine, graph)
    const { source, x } = rig.fake.executions[0]?.graph['1']?.inputs ?? {}
    assert.equal(source, 18446744073709551615n)
    assert.equal((x as { text: string }).text, '1.0')
  })

  test('strings, numbers and JSON are kept as values, also when they do not come in lists', async () => {
    await using rig = await openRig()
    const output = {
      text: ['a', 'b'],
      number: [1.5, 2],
      nested: [{ x: [1] }],
      single: 'alone',
      nothing: [null],
      flag: true,
    }
    const { events } = await runGraph(rig.engine, reportGraph(output))
    const values = Object.fromEntries(
      Object.entries(ofType(events, 'node_report')[0]?.report ?? {}).map(([key, items]) => [
        key,
        items.map((item: ReportedItem) => (item.kind === 'value' ? item.value : 'a file')),
      ]),
    )
    assert.deepEqual(values, { ...output, single: ['alone'], flag: [true] })
  })

  test('a video that is reported as an image is a video, and its flag is kept beside it', async () => {
    await using rig = await openRig()
    const { events, files } = await runGraph(rig.engine, {
      '1': { class_type: 'DemoVideo', inputs: { filename: 'clip.mp4' } },
    })
    assert.deepEqual([files[0]?.key, files[0]?.file.contentType], ['images', 'video/mp4'])
    assert.deepEqual(ofType(events, 'node_report')[0]?.report.animated, [{ kind: 'value', value: true }])
  })

  test('progress, previews and texts are emitted during the run, and only those of the run itself', async () => {
    await using rig = await openRig({ faults: { strangersFrames: true } })
    const graph: GraphJson = {
      '1': { class_type: 'DemoSteps', inputs: { steps: 2, ms: 1, preview: true } },
      '2': { class_type: 'DemoText', inputs: { image: ['1', 0] } },
      '3': { class_type: 'PreviewImage', inputs: { images: ['2', 0] } },
    }
    const { events } = await runGraph(rig.engine, graph)
    assert.deepEqual(
      ofType(events, 'node_progress').map(({ nodeId, value, max }) => [nodeId, value, max]),
      [
        ['1', 1, 2],
        ['1', 2, 2],
      ],
    )
    assert.deepEqual(
      ofType(events, 'preview').map(({ nodeId, contentType }) => [nodeId, contentType]),
      [
        ['1', 'image/png'],
        ['1', 'image/png'],
      ],
    )
    assert.deepEqual(
      ofType(events, 'node_text').map(({ nodeId, text }) => [nodeId, text]),
      [['2', 'hello text']],
    )
  })

  test('what the server prints belongs to the run that it executes', async () => {
    await using rig = await openRig()
    rig.fake.print('before anything')
    rig.fake.hold('running')
    const run = runGraph(rig.engine, saveGraph(7))
    await rig.fake.held('running')
    rig.fake.print('loading\rloading 50%\rloading 100%')
    rig.fake.release('running')
    const { events } = await run
    rig.fake.print('afterwards')
    assert.deepEqual(
      ofType(events, 'log').map(({ text }) => text),
      ['loading 100%\n'],
    )
  })

  test('a success without outputs is submitted once more to get them, and nothing else changes', async () => {
    await using rig = await openRig()
    const graph = { ...saveGraph(9), '3': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } } }
    await runGraph(rig.engine, graph)
    rig.fake.faults.cachedEmptyOutputs = true
    const { events, files } = await runGraph(rig.engine, graph)
    assert.equal(events.at(-1)?.type, 'succeeded')
    assert.equal(rig.fake.executions.length, 3)
    assert.deepEqual(files.map(({ nodeId }) => nodeId).toSorted(), ['2', '3'])
    for (const { bytes } of files) assert.deepEqual(bytes, toPng({ width: 8, height: 8, color: 9 }))
  })

  test('an output node that never reports anything is not run again for a report', async () => {
    await using rig = await openRig()
    const graph: GraphJson = {
      '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 3 } },
      '2': { class_type: 'DemoSilent', inputs: { image: ['1', 0] } },
    }
    for (const executions of [1, 3, 4]) {
      const { events } = await runGraph(rig.engine, graph)
      assert.equal(events.at(-1)?.type, 'succeeded')
      // The second run was cached, so the node was run once more to see whether it reports anything.
      assert.equal(rig.fake.executions.length, executions)
    }
  })

  test('an exception has its node, its type and the end of its traceback, however long that is', async () => {
    await using rig = await openRig({ faults: { tracebackBytes: 3_000_000 } })
    const graph: GraphJson = {
      ...saveGraph(4),
      '3': { class_type: 'DemoRaise', inputs: { image: ['1', 0], exception_type: 'ValueError', message: 'no good' } },
      '4': { class_type: 'PreviewImage', inputs: { images: ['3', 0] } },
    }
    const { events, files } = await runGraph(rig.engine, graph)
    const end = events.at(-1)
    assert.ok(end?.type === 'failed')
    const { traceback, currentInputs, currentOutputs, executed, ...failure } = end.failure
    assert.deepEqual([currentInputs, currentOutputs, executed], [{}, ['1', '2'], ['1', '2']])
    assert.deepEqual(failure, {
      code: 'node_execution_error',
      message: 'no good',
      nodeId: '3',
      classType: 'DemoRaise',
      exceptionType: 'ValueError',
    })
    assert.ok(traceback !== null && Buffer.byteLength(traceback) <= 65_536 && traceback.endsWith('last_frame\n'))
    assert.equal(files.length, 1, 'what was saved before is kept')
  })

  test('weights and classes that the server lacks are named', async () => {
    await using rig = await openRig({ checkpoints: ['a.safetensors'], without: ['DemoVideo'] })
    const failureOf = async (graph: GraphJson) => {
      const { events } = await runGraph(rig.engine, graph)
      const end = events.at(-1)
      assert.ok(end?.type === 'failed')
      return end.failure
    }
    const weights = await failureOf({
      '1': { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'b.safetensors' } },
      '2': { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
    })
    assert.deepEqual([weights.code, weights.nodeId], ['missing_weights', '1'])
    assert.match(weights.message, /b\.safetensors/)
    const unknown = await failureOf({ '7': { class_type: 'DemoVideo', inputs: { filename: 'x.mp4' } } })
    assert.deepEqual([unknown.code, unknown.nodeId], ['missing_node_class', '7'])
  })

  test('what the server remembers of a run is removed from it', async () => {
    await using rig = await openRig()
    await runGraph(rig.engine, saveGraph(1))
    for (let tries = 0; rig.fake.queue().history.size > 0 && tries < 100; tries++)
      await rig.engine.free?.({ signal: new AbortController().signal })
    assert.equal(rig.fake.queue().history.size, 0)
  })

  test('runs that end in quick succession are forgotten with one call, at the latest when the engine is closed', async () => {
    await using rig = await openRig({}, { forgetAfterMs: 60_000 })
    for (const color of [1, 2, 3]) await runGraph(rig.engine, saveGraph(color))
    assert.equal(rig.fake.queue().history.size, 3)
    await rig.engine[Symbol.asyncDispose]()
    assert.equal(rig.fake.queue().history.size, 0)
    assert.equal(rig.fake.calls.get('POST /history'), 1)
  })

  test('recordings of a real server give the recorded events', async () => {
    await using rig = await openRig()
    for (const [name, told] of [
      ['run1-success', '1+ 1. 2+ 2. 5+ 5! 5. 3+ 3. 4+ 4! 4. succeeded'],
      ['run2-all-cached', '5!cached 4!cached succeeded'],
      ['runtime-error', '1+ 1. 4+ 4! 4. 2+ failed'],
    ] as const) {
      const recording = readRecording(name)
      rig.fake.files.put('output/samples/run_32x24_00001_.png', Buffer.from('saved'))
      for (const file of ['kbgqq_00001', 'rubpo_00001'])
        rig.fake.files.put(`temp/ComfyUI_temp_${file}_.png`, Buffer.from('temp'))
      rig.fake.play(recording)
      const graph = recording.post.request.json.prompt as unknown as GraphJson
      const { events } = await runGraph(rig.engine, graph, { files: { 'test.png': Buffer.from('a picture') } })
      assert.equal(outline(events), told)
    }
  })

  test('many runs share one socket', async () => {
    await using rig = await openRig()
    await Promise.all(Array.from({ length: 20 }, (_, seed) => runGraph(rig.engine, stepsGraph(2, 0, seed))))
    assert.equal(rig.fake.sockets.peak, 1)
    assert.equal(rig.fake.executions.length, 20)
  })
})
