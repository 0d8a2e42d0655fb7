/** What the engine adds to every node, what it costs to check a large graph, and to convert the hardest of files. */
import { readGraph } from '../../engine/graph/graph-json.ts'
import { validate } from '../../engine/graph/validate/validate.ts'
import { type JsonValue, parseLosslessJson } from '../../lib/json/lossless-json.ts'
import { createConvertFile } from '../../src/domain/workflows/convert/convert-file.ts'
import { readEditorCatalog } from '../../test/support/workflows/editor-pairs.ts'
import { HARD_FILES } from '../../test/support/workflows/hard-files.ts'
import { type BenchEngine, openBenchEngine } from '../kit/engine.ts'
import type { Figure } from '../kit/figure.ts'

const CHAIN = 1_000
const LARGE = 10_000
const WARM_UP = 5
const ROUNDS = 25

/** Every node hands on the number of the one before it; the last one is shown. */
function chain(nodes: number, value: number): object {
  const graph: Record<string, object> = { '1': { class_type: 'PrimitiveInt', inputs: { value } } }
  for (let id = 2; id < nodes; id++) {
    graph[id] = { class_type: 'PrimitiveInt', inputs: { value: [`${id - 1}`, 0] } }
  }
  graph[nodes] = { class_type: 'PreviewAny', inputs: { source: [`${nodes - 1}`, 0] } }
  return graph
}

/** Rounds by their time, fastest first; the first few only warm up. */
async function rounds(once: (round: number) => Promise<number>): Promise<number[]> {
  const times: number[] = []
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    const time = await once(round)
    if (round >= WARM_UP) times.push(time)
  }
  return times.sort((a, b) => a - b)
}

const median = (sorted: readonly number[]) => sorted[Math.floor(sorted.length / 2)]

async function overhead({ time }: BenchEngine): Promise<Figure> {
  const times = await rounds((round) => time(chain(CHAIN, round)))
  const perNode = times.map((ms) => (ms * 1000) / CHAIN)
  return {
    name: 'engine overhead per node, chain of 1,000',
    measured: median(perNode),
    unit: 'µs',
    bar: 150,
    direction: 'at_most',
    detail: { fastest: perNode[0], slowest: perNode.at(-1), rounds: ROUNDS },
  }
}

async function validation({ engine }: BenchEngine): Promise<Figure> {
  const catalog = engine.catalog()
  const times = await rounds(async (round) => {
    const workflow = chain(LARGE, round) as JsonValue
    const startedAt = performance.now()
    const result = validate(readGraph(workflow), { catalog })
    if (!result.ok) throw new Error('the chain does not validate')
    return performance.now() - startedAt
  })
  return {
    name: 'graph of 10,000 nodes validated',
    measured: median(times),
    unit: 'ms',
    bar: 300,
    direction: 'at_most',
    detail: { fastest: times[0], slowest: times.at(-1), rounds: ROUNDS },
  }
}

const CONVERSIONS = 5

/** The slowest of all files that are made to be slow, each at its median. */
async function conversion(): Promise<Figure> {
  const catalog = readEditorCatalog()
  const clock = { now: () => new Date() }
  const convert = createConvertFile({ catalog: () => catalog, clock, random: Math.random })
  const slowest: [ms: number, name: string][] = []
  for (const [name, make] of Object.entries(HARD_FILES)) {
    const text = JSON.stringify(make())
    const times: number[] = []
    for (let round = 0; round < CONVERSIONS; round++) {
      const file = parseLosslessJson(text)
      const startedAt = performance.now()
      // Most of them are refused.
      await convert(file, null).catch(() => {})
      times.push(performance.now() - startedAt)
    }
    slowest.push([median(times.sort((a, b) => a - b)), name])
  }
  slowest.sort(([a], [b]) => b - a)
  return {
    name: 'hardest saved workflow of 1 MB converted or refused',
    measured: slowest[0][0],
    unit: 'ms',
    bar: 200,
    direction: 'at_most',
    detail: Object.fromEntries(slowest.slice(0, CONVERSIONS).map(([ms, name]) => [name, ms])),
  }
}

export async function graph(): Promise<Figure[]> {
  await using opened = await openBenchEngine()
  return [await overhead(opened), await validation(opened), await conversion()]
}
