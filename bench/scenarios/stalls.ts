/**
 * The longest time for which one request or job keeps others waiting: the CPU time of the main thread in one turn of its event
 * loop, for every operation that handles much data at once.
 */
import { WebSocket } from 'ws'
import { submitJob, waitForEnd } from '../kit/client-steps.ts'
import type { Figure } from '../kit/figure.ts'
import { forkServer, type ServerChild } from '../kit/server-child.ts'

type Case = (url: string) => Promise<unknown>

const BAR_MS = 50
const NODES = 19_990
const MIB = 1_048_576

const CASES: Readonly<Record<string, Case>> = {
  'a model input of 490,000 keys': (url) => post(url, '/v2/models/sandbox/echo', manyKeys(490_000)),
  'eight model inputs of 490,000 keys at once': (url) =>
    eightTimes(() => post(url, '/v2/models/sandbox/echo', manyKeys(490_000))),
  'a model input with 90 MB of text': (url) =>
    post(url, '/v2/models/sandbox/echo', JSON.stringify({ text: 'x'.repeat(90 * MIB) })),
  'a model input of 90 MB in 30,000 texts': (url) =>
    post(url, '/v2/models/sandbox/echo', JSON.stringify({ texts: Array(30_000).fill('é'.repeat(1500)) })),
  'a model input of 48,000 keys': (url) => post(url, '/v2/models/sandbox/echo', manyKeysInside(48_000)),
  'an estimate of 490,000 keys': (url) => post(url, '/v2/models/sandbox/echo/estimate', manyKeys(490_000)),
  'a queued model input of 490,000 keys': (url) => post(url, '/v2/models/sandbox/echo/requests', manyKeys(490_000)),
  'extra_data of 490,000 keys': (url) =>
    post(
      url,
      '/api/v2/jobs',
      `{"workflow":${TRIVIAL},"extra_data":{"extra_pnginfo":{"workflow":${manyKeys(490_000)}}}}`,
    ),
  'eight extra_data of 490,000 keys at once': (url) =>
    eightTimes(() =>
      post(
        url,
        '/api/v2/jobs',
        `{"workflow":${TRIVIAL},"extra_data":{"extra_pnginfo":{"workflow":${manyKeys(490_000)}}}}`,
      ),
    ),
  'extra_data of 480,000 keys in 20 objects': (url) =>
    post(
      url,
      '/api/v2/jobs',
      `{"workflow":${TRIVIAL},"extra_data":{"extra_pnginfo":{"workflow":${manyKeysInside(480_000)}}}}`,
    ),
  'a prompt with extra_data of 480,000 keys in 20 objects': (url) =>
    post(
      url,
      '/api/prompt',
      `{"prompt":${TRIVIAL},"extra_data":{"other":${manyKeysInside(240_000)},"more":${manyKeysInside(240_000)}}}`,
    ),
  'a graph of 20,000 nodes with errors': (url) => post(url, '/api/v2/jobs', `{"workflow":${faultyGraph(20_000)}}`),
  'a graph with 480,000 inputs': (url) => post(url, '/api/v2/jobs', `{"workflow":${wideGraph(480_000)}}`),
  'a graph with 30 MB of text': (url) => post(url, '/api/v2/jobs', `{"workflow":${longTextGraph(30 * MIB)}}`),
  'a prompt with extra_data of 490,000 keys': (url) =>
    post(
      url,
      '/api/prompt',
      `{"prompt":${TRIVIAL},"extra_data":{"other":${manyKeys(240_000)},"extra_pnginfo":{"workflow":${manyKeys(240_000)}}}}`,
    ),
  'a prompt of 20,000 nodes with errors': (url) => post(url, '/api/prompt', `{"prompt":${faultyGraph(20_000)}}`),
  'settings of 240,000 keys': (url) => post(url, '/api/settings', manyKeys(240_000)),
  'a user file of 20 MB': (url) => post(url, '/api/userdata/big.json', manyKeys(490_000)),
  'history removals of 490,000 ids': (url) => post(url, '/api/history', JSON.stringify({ delete: ids(490_000) })),
  'queue removals of 490,000 ids': (url) => post(url, '/api/queue', JSON.stringify({ delete: ids(490_000) })),
  'a body of brackets': (url) => post(url, '/api/v2/jobs', '['.repeat(30 * MIB)),
  'a body of digits': (url) => post(url, '/api/v2/jobs', '1'.repeat(30 * MIB)),
  'a body of rare numbers': (url) => post(url, '/v2/models/sandbox/echo', `[${Array(400_000).fill('1.50').join()}]`),
  'a body of escapes': (url) => post(url, '/api/v2/jobs', `{"a":"${'\\u00e9'.repeat(5 * MIB)}"}`),
  'a job that is a chain of 19,990 nodes': (url) => runJob(url, chain(NODES)),
  'a job with 9,990 outputs': (url) => runJob(url, outputs(9990)),
}

const TRIVIAL = JSON.stringify({ '1': { class_type: 'PrimitiveInt', inputs: { value: 1 } }, '2': previewOf('1') })

export async function stalls(): Promise<Figure[]> {
  const only = process.env['STALLS'] // one case, by a part of its name
  const figures: Figure[] = []
  for (const [name, run] of Object.entries(CASES)) {
    if (only !== undefined && !name.includes(only)) continue
    await using atelier = await forkServer('bench/servers/atelier.ts', {})
    await run(atelier.url)
    figures.push(await measure(atelier, name, run))
    const { name: shown, measured, detail } = figures.at(-1) as Figure
    console.error(`  ${shown}: ${measured.toFixed(0)} ms ${JSON.stringify(detail)}`)
  }
  return figures
}

/** After one run that warms the code up. */
async function measure(atelier: ServerChild, name: string, run: Case): Promise<Figure> {
  await atelier.ask('longestTurnMs')
  const startedAt = performance.now()
  const answer = await run(atelier.url)
  const tookMs = Math.round(performance.now() - startedAt)
  const measured = await atelier.ask<number>('longestTurnMs')
  return {
    name: `longest turn: ${name}`,
    measured,
    unit: 'ms',
    bar: BAR_MS,
    direction: 'at_most',
    detail: { tookMs, answer },
  }
}

async function post(url: string, path: string, body: string): Promise<unknown> {
  const response = await fetch(url + path, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
  const text = await response.text()
  return { status: response.status, bodyBytes: text.length, ...(response.ok ? {} : { start: text.slice(0, 150) }) }
}

async function eightTimes(act: () => Promise<unknown>): Promise<unknown> {
  const answers = await Promise.all(Array.from({ length: 8 }, act))
  return answers[0]
}

/** Watched over both kinds of streams from beginning to end, then read through every operation. */
async function runJob(url: string, workflow: object): Promise<unknown> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws?clientId=bench`)
  let frames = 0
  socket.on('message', () => frames++)
  const { id } = await submitJob(url, workflow)
  await waitForEnd(url, id)
  const doors = [`/api/v2/jobs/${id}`, `/api/v2/jobs/${id}/workflow`, `/api/v2/jobs/${id}/events`, '/api/v2/jobs']
  const legacy = [`/api/history/${id}`, '/api/history', `/api/jobs/${id}`, '/api/jobs']
  const statuses: string[] = []
  for (const path of [...doors, ...legacy]) {
    const response = await fetch(url + path)
    statuses.push(`${response.status} ${(await response.text()).length}`)
  }
  socket.terminate()
  return { statuses: statuses.join(', '), frames }
}

function manyKeys(count: number): string {
  return `{${Array.from({ length: count }, (_, index) => `"k${index}":1`).join()}}`
}

/** Split into objects that stay below the limit for one object. */
function manyKeysInside(count: number): string {
  const size = 20_000
  const groups = Array.from(
    { length: Math.ceil(count / size) },
    (_, index) => `"g${index}":${manyKeys(Math.min(size, count - index * size))}`,
  )
  return `{${groups.join()}}`
}

function ids(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`)
}

function previewOf(source: string): object {
  return { class_type: 'PreviewAny', inputs: { source: [source, 0] } }
}

function chain(count: number): object {
  const nodes: [string, object][] = [['0', { class_type: 'PrimitiveInt', inputs: { value: Date.now() % 1_000_000 } }]]
  for (let index = 1; index < count; index++) {
    nodes.push([String(index), { class_type: 'PrimitiveInt', inputs: { value: [String(index - 1), 0] } }])
  }
  return Object.fromEntries([...nodes, ['end', previewOf(String(count - 1))]])
}

function outputs(count: number): object {
  const nodes = Array.from({ length: count }, (_, index) => [`o${index}`, previewOf('0')])
  return Object.fromEntries([
    ['0', { class_type: 'PrimitiveInt', inputs: { value: Date.now() % 1_000_000 } }],
    ...nodes,
  ])
}

function faultyGraph(count: number): string {
  const nodes = Array.from({ length: count }, (_, index) => [
    String(index),
    { class_type: 'SaveImage', inputs: { filename_prefix: 1, images: [String((index + 1) % count), 0] } },
  ])
  return JSON.stringify(Object.fromEntries(nodes))
}

function wideGraph(count: number): string {
  const inputs = Object.fromEntries(Array.from({ length: count }, (_, index) => [`i${index}`, index]))
  return JSON.stringify({ '1': { class_type: 'PrimitiveInt', inputs: { ...inputs, value: 1 } }, '2': previewOf('1') })
}

function longTextGraph(length: number): string {
  const text = { class_type: 'PrimitiveString', inputs: { value: 'x'.repeat(length) } }
  return JSON.stringify({ '1': text, '2': { class_type: 'PreviewAny', inputs: { source: ['1', 0] } } })
}
