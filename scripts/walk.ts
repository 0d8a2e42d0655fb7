/**
 * `npm run walk job|call`: which files of the service and of its engine one job (from the submit to its picture) or one routed call goes
 * through. A function counts when it is called more often between request and answer than in an equally long time without a request, in
 * any thread of either process. Loading a module does not count, nor does what only a service's first requests do. `--files` lists the files with their functions.
 */
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type SpawnedServer, spawnServer } from '../test/support/app/spawn-server.ts'
import { waitUntil } from '../test/support/wait-until.ts'

/** Calls by function, as `file name@offset`. */
type Counts = Map<string, number>
type Walk = (url: string, index: number) => Promise<void>

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const HOUSES = ['src', 'engine', 'lib']
/** Requests before the one that is counted: what a service does once in its life is no part of each job. */
const WARM_UP = 3
const ROUNDS = 4
const SETTLES_MS = 1500
const BARS = { job: 90, call: 40 }
const CHAT = JSON.stringify({
  ...{ id: 'chat-1', object: 'chat.completion', created: 1_700_000_000, model: 'walk' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'A lighthouse at dusk.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 9, completion_tokens: 6, total_tokens: 15, cost: 0.000_05 },
})

async function ask<Answer>(url: string, init?: RequestInit): Promise<Answer> {
  const response = await fetch(url, init)
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  return (await response.json()) as Answer
}

function post<Answer>(url: string, body: object, headers: Record<string, string> = {}): Promise<Answer> {
  const init = {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  }
  return ask(url, init)
}

interface JobAnswer {
  readonly id: string
  readonly status: string
  readonly outputs: readonly { readonly url: string }[]
}

/** Submits, waits for the end and fetches the picture, as a client does. */
async function walkJob(url: string, index: number): Promise<void> {
  const workflow = {
    '1': { class_type: 'EmptyImage', inputs: { width: 64, height: 64, batch_size: 1, color: index } },
    '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'walk' } },
  }
  const { id } = await post<JobAnswer>(`${url}/api/v2/jobs`, { workflow })
  const ended = await waitUntil(async () => {
    const job = await ask<JobAnswer>(`${url}/api/v2/jobs/${id}`)
    return job.status === 'queued' || job.status === 'running' ? null : job
  })
  const [output] = ended.outputs
  if (output === undefined) throw new Error(`the job ended as ${ended.status}, without a picture`)
  const picture = await fetch(new URL(output.url, url))
  if (!picture.ok || (await picture.arrayBuffer()).byteLength === 0) throw new Error('the picture cannot be read')
}

async function walkCall(url: string, index: number): Promise<void> {
  const input = { model: 'walk/chat', messages: [{ role: 'user', content: `Number ${index}` }] }
  await post(`${url}/v2/models/openrouter/chat-completions`, input, { 'idempotency-key': `walk-${index}` })
}

/** The provider of the call; answers at once. */
async function openProvider() {
  const server = createServer((request, response) => {
    request.resume().once('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(CHAT))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
}

/** Asks every thread for its counts since the last question, and adds them up. */
function createCounter(folder: string): () => Promise<Counts> {
  let questions = 0
  writeQuestion()

  function writeQuestion(): void {
    writeFileSync(path.join(folder, 'next'), String(questions))
    renameSync(path.join(folder, 'next'), path.join(folder, 'question'))
  }

  return async () => {
    questions++
    const threads = readdirSync(folder).filter((name) => /^alive\.[^.]+$/.test(name))
    const answers = threads.map((name) => name.replace('alive', String(questions)))
    writeQuestion()
    await waitUntil(
      () => answers.every((name) => readdirSync(folder).includes(name)),
      () => `the counts of ${answers.length} threads`,
    )
    const counts: Counts = new Map()
    for (const answer of answers) {
      const calls = JSON.parse(readFileSync(path.join(folder, answer), 'utf8')) as [string, number][]
      for (const [key, count] of calls) counts.set(key, (counts.get(key) ?? 0) + count)
    }
    return counts
  }
}

/** The functions that every one of several walks calls more often than usual in as many times without a walk. */
async function countWalk(service: SpawnedServer, walk: Walk, take: () => Promise<Counts>): Promise<string[]> {
  for (let index = 0; index < WARM_UP; index++) await walk(service.url, index)
  const walks: Counts[] = []
  const idle: Counts[] = []
  let longestMs = 0
  for (let round = 0; round < ROUNDS; round++) {
    // What ends after the answer, such as giving memory back, belongs to neither.
    await pause(SETTLES_MS)
    await take()
    const startedAt = performance.now()
    await walk(service.url, WARM_UP + round)
    longestMs = Math.max(longestMs, performance.now() - startedAt)
    walks.push(await take())
    await pause(SETTLES_MS)
    await take()
    await pause(longestMs)
    idle.push(await take())
  }
  // The median: a timer that fires in one of these times and not in the others is no measure.
  const idly = (key: string) =>
    idle.map((counts) => counts.get(key) ?? 0).sort((one, other) => one - other)[ROUNDS >> 1]
  return [...walks[0].keys()].filter((key) => walks.every((counts) => (counts.get(key) ?? 0) > idly(key)))
}

/** Two folders deep, three in the adapters: as in docs/layout.md. */
function roomOf(file: string): string {
  const folders = path.dirname(file).split('/')
  return folders.slice(0, folders[1] === 'adapters' ? 3 : 2).join('/')
}

function print(functions: readonly string[], listsFiles: boolean, bar: number): void {
  const files = new Map<string, string[]>()
  for (const key of functions) {
    const [absolute = '', name = ''] = key.split('\n')
    const file = path.relative(project, absolute)
    if (HOUSES.includes(file.split('/')[0] ?? ''))
      files.set(file, [...(files.get(file) ?? []), name || '(a function without a name)'])
  }
  const rooms = Map.groupBy([...files].sort(), ([file]) => roomOf(file))
  for (const [room, own] of rooms) {
    console.log(`${room}: ${own.length} files, ${own.flatMap(([, names]) => names).length} functions`)
    if (listsFiles)
      for (const [file, names] of own) console.log(`    ${path.relative(room, file)}: ${names.join(', ')}`)
  }
  const count = [...files.values()].flat().length
  console.log(`together: ${files.size} files (bar: at most ${bar}), ${count} functions`)
}

async function main([kind, ...flags]: string[]): Promise<void> {
  if (kind !== 'job' && kind !== 'call') throw new Error('usage: npm run walk job|call [-- --files]')
  const temporary = mkdtempSync(path.join(tmpdir(), 'atelier-walk-'))
  const folder = path.join(temporary, 'counts')
  mkdirSync(folder)
  const provider = await openProvider()
  try {
    const providers = path.join(temporary, 'providers.json')
    const openrouter = { key: 'walk', base_url: `${provider.url}/v1` }
    writeFileSync(providers, JSON.stringify({ openrouter, '*': { allow_private_network: true } }))
    const probe = pathToFileURL(path.join(project, 'scripts/walk-probe.ts'))
    probe.searchParams.set('folder', folder)
    const take = createCounter(folder)
    await using service = await spawnServer(
      ['--data-dir', path.join(temporary, 'data')],
      { ATELIER_PROVIDERS: providers, NODE_OPTIONS: `--import=${probe.href}` },
      // Never the build, which has few files.
      { bin: path.join(project, 'src/bin.ts') },
    )
    print(await countWalk(service, kind === 'job' ? walkJob : walkCall, take), flags.includes('--files'), BARS[kind])
  } finally {
    provider.close()
    rmSync(temporary, { recursive: true, force: true })
  }
}

await main(process.argv.slice(2))
