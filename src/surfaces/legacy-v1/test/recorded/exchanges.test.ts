/**
 * Every recorded exchange that is not a run, sent again to the whole service in the recorded order: the same status, the same
 * shape of body. Where this service answers otherwise on purpose, the table below names the difference and its reason.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isJsonObject, NumberText } from '../../../../../lib/json/lossless-json.ts'
import { startTestApp, type TestApp } from '../../../../../test/support/app/start-app.ts'
import {
  type Answer,
  type Exchange,
  RECORDINGS,
  readExchanges,
  sendExchange,
} from '../../../../../test/support/recordings/replay-exchange.ts'
import { waitUntil } from '../../../../../test/support/wait-until.ts'

/** By file and name: the status that is right here, and why. */
const OTHERWISE: Readonly<Record<string, readonly [status: number, reason: string]>> = {
  'validation/bad json': [400, 'a caller is told of its mistake; ComfyUI breaks'],
  'validation/ui workflow as prompt': [400, 'a caller is told of its mistake; ComfyUI breaks'],
  'edge-cases/same prompt_id second': [400, 'ids are unique; ComfyUI would overwrite the first run'],
  'edge-cases/same prompt_id after completion': [400, 'ids are unique'],
  'uploads-view/mask missing original': [400, 'ComfyUI says yes and writes nothing'],
  'misc-endpoints/GET /api/user': [200, 'the hosted v1 has it'],
  'misc-endpoints/GET /api/history_v2': [200, 'the hosted v1 has it'],
  'misc-endpoints/GET /api/assets': [200, 'the library is never off'],
}

/** Maps and lists whose members depend on what the server holds: only their type is compared. */
const FREE: readonly RegExp[] = [
  /GET \/history\?/,
  /GET \/api\/jobs/,
  /GET \/global_subgraphs/,
  /GET \/internal\/(logs|folder_paths|files)/,
  /GET \/models\//,
  /GET \/system_stats/,
  /GET \/features/,
]

const PROSE = ['description', 'tooltip', 'search_aliases', 'output_tooltips']

/** Kinds of values by path; arrays by the kinds of their members, since their order and number is data. */
function shapeOf(value: unknown): unknown {
  if (typeof value === 'bigint' || value instanceof NumberText) return 'number'
  if (Array.isArray(value)) return [...new Set(value.map((item) => JSON.stringify(shapeOf(item))))].sort()
  if (!isJsonObject(value)) return value === null ? 'null' : typeof value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, shapeOf(member)]),
  )
}

function assertSameBody(name: string, { request, response }: Exchange, answer: Answer): void {
  const { body } = response
  const isText = response.headers?.['Content-Type']?.startsWith('text/plain') === true
  if (isJsonObject(body) && typeof body['base64'] === 'string') assertSameFile(body['base64'], response, answer)
  else if (isText) assert.equal(answer.bytes.toString('utf8'), body)
  // Where ComfyUI answers with nothing, there is a JSON body here, or a text for files of the user.
  else if (body === null && request.path !== '/settings/Comfy.X') return
  else if (FREE.some((pattern) => pattern.test(name))) assert.equal(typeof answer.body, typeof body)
  else if (request.path.endsWith('/prompt') && request.method === 'POST') assertSamePromptAnswer(body, answer.body)
  else assert.deepEqual(withoutProse(shapeOf(answer.body)), shapeOf(body))
}

/** Prose was taken out of the recordings. */
function withoutProse(shape: unknown): unknown {
  return JSON.parse(JSON.stringify(shape), (key, value) => (PROSE.includes(key) ? undefined : value))
}

/** Previews are encoded by another library; everything else is the same byte for byte. */
function assertSameFile(base64: string, response: Exchange['response'], answer: Answer): void {
  const expected = Buffer.from(base64, 'base64')
  const type = response.headers?.['Content-Type']
  assert.equal(answer.headers.get('content-type'), type)
  assert.equal(answer.headers.get('content-disposition'), response.headers?.['Content-Disposition'])
  if (response.headers?.['Etag'] !== undefined && !/m\.png/.test(response.headers?.['Content-Disposition'] ?? '')) {
    assert.ok(answer.bytes.equals(expected))
  } else assert.deepEqual(answer.bytes.subarray(0, 3), expected.subarray(0, 3))
}

type NodeErrors = Record<string, { errors: { type: string; details: string; message: string }[]; class_type: string }>

function assertSamePromptAnswer(recorded: unknown, ours: unknown): void {
  const [expected, actual] = [recorded, ours] as { error?: unknown; node_errors: NodeErrors; number?: unknown }[]
  assert.deepEqual(Object.keys(actual).sort(), Object.keys(expected).sort())
  assert.deepEqual(actual.error, expected.error)
  const outline = (errors: NodeErrors) =>
    Object.entries(errors).map(([id, node]) => [
      id,
      node.class_type,
      node.errors.map(({ type, message, details }) => `${type}|${message}|${toSet(type, details)}`).sort(),
    ])
  assert.deepEqual(outline(actual.node_errors).sort(), outline(expected.node_errors).sort())
}

/** A cycle may be written starting from any of its nodes. */
function toSet(type: string, details: string): string {
  return type === 'dependency_cycle' ? [...new Set(details.split(' -> '))].sort().join(' ') : details
}

/** The recorded server was idle between two files of recordings. */
async function waitForIdle(): Promise<void> {
  await waitUntil(async () => {
    const { exec_info } = (await (await fetch(`${app.url}/prompt`)).json()) as {
      exec_info: { queue_remaining: number }
    }
    return exec_info.queue_remaining === 0
  })
}

const FILES = {
  validation: '../validation.json',
  'uploads-view': 'uploads-view.json',
  'edge-cases': 'edge-cases.json',
  'misc-endpoints': 'misc-endpoints.json',
}

let app: TestApp
before(async () => {
  app = await startTestApp()
})
after(() => app[Symbol.asyncDispose]())

for (const [file, path] of Object.entries(FILES)) {
  describe(`recorded exchanges: ${file}`, () => {
    before(async () => {
      await waitForIdle()
      for (const name of ['test.png', 'a.png']) {
        const multipart = { image: { filename: name, content: `inputs/${name}` } }
        // The recordings of uploads begin with an empty folder.
        if (file === 'uploads-view') continue
        const request = { method: 'POST', path: '/upload/image', multipart: { ...multipart, overwrite: 'true' } }
        await sendExchange(app.url, { request, response: { status: 200, headers: null, body: null } })
      }
    })
    for (const [name, exchange] of readExchanges(RECORDINGS + path)) {
      const otherwise = OTHERWISE[`${file}/${name}`]
      test(otherwise === undefined ? name : `${name}, differently: ${otherwise[1]}`, async () => {
        const answer = await sendExchange(app.url, exchange)
        assert.equal(answer.status, otherwise?.[0] ?? exchange.response.status, answer.bytes.toString('utf8'))
        assert.ok(answer.headers.has('deprecation') || answer.status === 404)
        if (answer.status >= 400 && !(answer.headers.get('content-type') ?? '').startsWith('text/plain')) {
          assert.notEqual(answer.body, undefined, 'every refusal is JSON')
        }
        if (otherwise === undefined) assertSameBody(name, exchange, answer)
      })
    }
  })
}
