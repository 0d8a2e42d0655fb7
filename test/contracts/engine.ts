/**
 * What every engine promises, whatever it computes with. The graphs use only classes that all of them have. An adapter's own
 * test file supplies the engine, and a graph that takes a while.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { readGraph } from '../../engine/graph/graph-json.ts'
import type { EngineEvent, ReportedFile } from '../../engine/graph/run-event.ts'
import { type JsonValue, parseLosslessJson } from '../../lib/json/lossless-json.ts'
import type { Engine, EngineInput, EngineRun } from '../../src/domain/engine/engine-port.ts'

export interface EngineUnderTest extends AsyncDisposable {
  readonly engine: Engine
  /** Takes long enough to be stopped in its middle; `seed` keeps it out of every cache. */
  slowGraph(seed: number): GraphJson
  /** A file that LoadImage can read. */
  readonly picture: EngineInput
}

export type GraphJson = Record<string, { class_type: string; inputs: Record<string, unknown> }>

const OUTCOMES: ReadonlySet<EngineEvent['type']> = new Set(['succeeded', 'failed', 'interrupted'])

function createRuns() {
  let jobs = 0
  const numbers = new Map<string, number>()
  return function toRun(graph: JsonValue, fields: Partial<EngineRun> = {}): EngineRun {
    return {
      jobId: `${process.pid}-${Date.now()}-${++jobs}`,
      accountId: 'local',
      attempt: 1,
      claimId: 'claim',
      graph: readGraph(graph),
      inputs: new Map(),
      extraData: null,
      async reserveOutputNumbers(folder, prefix, count) {
        const first = numbers.get(`${folder}/${prefix}`) ?? 1
        numbers.set(`${folder}/${prefix}`, first + count)
        return first
      },
      ...fields,
    }
  }
}

interface Settings extends Partial<EngineRun> {
  readonly signal?: AbortSignal
  onEvent?(event: EngineEvent): void
}

async function readAll(file: ReportedFile): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of file.read()) parts.push(part)
  return Buffer.concat(parts)
}

function filesOf(events: readonly EngineEvent[], nodeId: string): ReportedFile[] {
  return events.flatMap((event) =>
    event.type === 'node_report' && event.displayNodeId === nodeId
      ? Object.values(event.report).flatMap((items) => items.filter((item) => item.kind === 'file'))
      : [],
  )
}

function textsOf(events: readonly EngineEvent[], nodeId: string): unknown[] {
  return events.flatMap((event) =>
    event.type === 'node_report' && event.displayNodeId === nodeId
      ? (event.report.text ?? []).map((item) => (item.kind === 'value' ? item.value : null))
      : [],
  )
}

function pictureGraph(color: number, prefix: string, batch = 1): GraphJson {
  return {
    '1': { class_type: 'EmptyImage', inputs: { width: 16, height: 8, batch_size: batch, color } },
    '2': { class_type: 'ImageInvert', inputs: { image: ['1', 0] } },
    '3': { class_type: 'SaveImage', inputs: { images: ['2', 0], filename_prefix: prefix } },
  }
}

export function describeEngine(name: string, open: () => Promise<EngineUnderTest>): void {
  describe(`an engine: ${name}`, () => {
    const toRun = createRuns()
    let tested: EngineUnderTest
    before(async () => {
      tested = await open()
    })
    after(() => tested[Symbol.asyncDispose]())

    async function run(
      graph: GraphJson | JsonValue,
      { signal, onEvent, ...fields }: Settings = {},
    ): Promise<EngineEvent[]> {
      const events: EngineEvent[] = []
      const options = { signal: signal ?? new AbortController().signal }
      for await (const event of tested.engine.run(toRun(graph as JsonValue, fields), options)) {
        events.push(event)
        onEvent?.(event)
      }
      return events
    }

    const uniqueColor = () => Math.floor(Math.random() * 0xffffff)

    test('a run begins with `started` and ends with exactly one outcome', async () => {
      const events = await run(pictureGraph(uniqueColor(), 'contract'))
      assert.deepEqual(events[0], { type: 'started', nodesTotal: 3 })
      assert.equal(events.at(-1)?.type, 'succeeded')
      assert.equal(events.filter(({ type }) => OUTCOMES.has(type)).length, 1)
    })

    test('every node that runs is started and finished once, and saves report in between', async () => {
      const events = await run(pictureGraph(uniqueColor(), 'contract'))
      for (const nodeId of ['1', '2', '3']) {
        const own = events.filter((event) => 'nodeId' in event && event.nodeId === nodeId).map(({ type }) => type)
        assert.deepEqual([own[0], own.at(-1)], ['node_started', 'node_finished'])
        assert.equal(own.includes('node_report'), nodeId === '3')
      }
    })

    test('outputs are whole PNG files with consecutive numbers, readable after the run', async () => {
      const prefix = `numbered${uniqueColor()}`
      const files = filesOf(await run(pictureGraph(uniqueColor(), `folder/${prefix}`, 2)), '3')
      assert.deepEqual(
        files.map(({ filename, subfolder, folder }) => [filename, subfolder, folder]),
        [1, 2].map((number) => [`${prefix}_0000${number}_.png`, 'folder', 'output']),
      )
      const again = filesOf(await run(pictureGraph(uniqueColor(), `folder/${prefix}`)), '3')
      assert.equal(again[0]?.filename, `${prefix}_00003_.png`)
      for (const file of files) {
        const bytes = await readAll(file)
        assert.deepEqual([...bytes.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47])
        assert.equal(bytes.subarray(-8, -4).toString('latin1'), 'IEND')
      }
    })

    test('different graphs never get each other’s files', async () => {
      const colors = [uniqueColor(), uniqueColor(), uniqueColor()]
      const outputs = await Promise.all(
        [...colors, ...colors].map(async (color) => {
          const [file] = filesOf(await run(pictureGraph(color, 'same')), '3')
          assert.ok(file !== undefined)
          return (await readAll(file)).subarray(0, 33).toString('hex') + (await pixelsOf(file))
        }),
      )
      for (const index of colors.keys()) assert.equal(outputs[index], outputs[index + 3])
      assert.equal(new Set(outputs).size, 3)
    })

    test('a node that is not run again is told as cached', async () => {
      const color = uniqueColor()
      await run(pictureGraph(color, 'cached'))
      const events = await run(pictureGraph(color, 'cached'))
      const cached = events.find((event) => event.type === 'cached')
      assert.ok(cached?.type === 'cached' && ['1', '2'].every((nodeId) => cached.nodeIds.includes(nodeId)))
      assert.equal(filesOf(events, '3').length, 1)
    })

    test('a text is reported as a value', async () => {
      const events = await run({ '1': { class_type: 'PreviewAny', inputs: { source: `text ${uniqueColor()}` } } })
      assert.match(String(textsOf(events, '1')[0]), /^text \d+$/)
    })

    test('an integer of 64 bits arrives with all its digits', async () => {
      const graph = parseLosslessJson('{"1":{"class_type":"PreviewAny","inputs":{"source":18446744073709551615}}}')
      assert.deepEqual(textsOf(await run(graph), '1'), ['18446744073709551615'])
    })

    test('a file of the caller is found under the name that stands in the graph', async () => {
      const graph = {
        '1': { class_type: 'LoadImage', inputs: { image: 'my photo.png' } },
        '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'loaded' } },
      }
      const events = await run(graph, { inputs: new Map([['my photo.png', tested.picture]]) })
      assert.equal(events.at(-1)?.type, 'succeeded', JSON.stringify(events.at(-1)))
      assert.equal(filesOf(events, '2').length, 1)
    })

    test('a node that fails is named, and its run ends with the failure', async () => {
      const events = await run(pictureGraph(uniqueColor(), '../../outside'))
      const end = events.at(-1)
      assert.ok(end?.type === 'failed', JSON.stringify(end))
      assert.deepEqual(
        [end.failure.code, end.failure.nodeId, end.failure.classType],
        ['node_execution_error', '3', 'SaveImage'],
      )
    })

    test('a run that is stopped before it begins is interrupted', async () => {
      const events = await run(pictureGraph(uniqueColor(), 'stopped'), { signal: AbortSignal.abort() })
      assert.deepEqual([events[0]?.type, events.at(-1)?.type], ['started', 'interrupted'])
      assert.ok(!events.some(({ type }) => type === 'node_started'), 'nothing was begun')
    })

    test('a run that is stopped in its middle is interrupted, and the engine goes on', async () => {
      const stop = new AbortController()
      const events = await run(tested.slowGraph(uniqueColor()), {
        signal: stop.signal,
        onEvent: ({ type }) => (type === 'node_started' ? stop.abort() : undefined),
      })
      assert.equal(events.at(-1)?.type, 'interrupted')
      assert.equal((await run(pictureGraph(uniqueColor(), 'after'))).at(-1)?.type, 'succeeded')
    })

    test('a reader who leaves early leaves the engine usable', async () => {
      for await (const event of tested.engine.run(toRun(tested.slowGraph(uniqueColor()) as JsonValue), {
        signal: new AbortController().signal,
      })) {
        if (event.type === 'node_started') break
      }
      assert.equal((await run(pictureGraph(uniqueColor(), 'left'))).at(-1)?.type, 'succeeded')
    })
  })
}

/** What the picture shows, without what its file remembers of how it was made. */
async function pixelsOf(file: ReportedFile): Promise<string> {
  const bytes = await readAll(file)
  const start = bytes.indexOf('IDAT')
  const length = bytes.readUInt32BE(start - 4)
  return bytes.subarray(start, start + 4 + length).toString('hex')
}
