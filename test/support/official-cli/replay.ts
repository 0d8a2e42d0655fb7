/** Asks a service what the official command line asked, in the same order, and compares what the client would read of each answer. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { type Builder, BuildFailure } from '../../../src/domain/environments/builder.ts'
import { type SharedApp, startShared } from '../app/start-shared.ts'
import { type Answer, call } from '../clients/call.ts'
import { GIVE_UP_MS, waitUntil } from '../wait-until.ts'
import { CLOSE_GATE, DOMAIN, OPEN_GATE } from './official-cli.ts'
import { type Recorded, type RecordedRequest, readsOf } from './recording.ts'

const FAKE = fileURLToPath(new URL('../engines/fake-comfyui/main.ts', import.meta.url))
const NAME = /\{(\w+(?: \d+)?)\}/

export interface Replay extends AsyncDisposable {
  run(recorded: Recorded): Promise<void>
}

export async function startReplay(): Promise<Replay> {
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-replay-'))
  const gate = path.join(folder, 'gate')
  const app = await startShared(
    { builds: 'ana', deploymentsDomain: DOMAIN, trustedProxies: '127.0.0.1', releaseEngines: '3', releaseIdle: '1h' },
    { overrides: { builder: createPlainBuilder(folder, gate) } },
  )
  const { key } = await app.account('ana', { requestsPerMinute: null, concurrentJobs: 4, queuedJobs: 1000 })
  const names = new Map([['key', key]])
  return {
    async run({ command, requests }) {
      if (command === CLOSE_GATE) await writeFile(gate, '')
      if (command === OPEN_GATE) await rm(gate, { force: true })
      for (const request of requests) await ask(app, request, names, command)
    },
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function ask(
  app: SharedApp,
  recorded: RecordedRequest,
  names: Map<string, string>,
  command: string,
): Promise<void> {
  const { method, host, json, base64, status, type } = recorded
  const fill = (text: string) => fillIn(text, names)
  const at = fill(recorded.path)
  const headers = {
    ...Object.fromEntries(Object.entries(recorded.headers).map(([name, text]) => [name, fill(text)])),
    ...(host !== undefined && { host: fill(host), 'x-forwarded-proto': 'https', 'x-forwarded-for': '127.0.0.1' }),
  }
  const text = json === undefined ? undefined : fill(JSON.stringify(json))
  const body = base64 === undefined ? text : Buffer.from(base64, 'base64')
  const where = `comfy ${command}: ${method} ${at}`
  const once = async () => {
    const answer = await call(app.url, at, { method, headers, body })
    return { answer, fault: compare(recorded, answer, { at, names, where }) }
  }
  if (method !== 'GET') return assert.equal((await once()).fault, null)
  // A client reads again until what it waits for is so.
  let last: string | null = null
  const sought = waitUntil(
    async () => {
      last = (await once()).fault
      return last === null
    },
    () => `${where}, type ${type}, status ${status}, within ${GIVE_UP_MS} ms: ${last}`,
  )
  await sought
}

interface Place {
  readonly at: string
  readonly names: Map<string, string>
  readonly where: string
}

/** null: it is as recorded; names that it tells first are known from then on. */
function compare(
  { method, status, type, reads }: RecordedRequest,
  answer: Answer,
  { at, names, where }: Place,
): string | null {
  if (answer.status !== status) return `${where}: ${answer.status} instead of ${status}: ${answer.text.slice(0, 500)}`
  const told = String(answer.headers['content-type'] ?? '').split(';')[0]
  if (told !== type) return `${where}: ${told} instead of ${type}`
  if (reads === undefined) return null
  const learned = new Map(names)
  const fault = differ(reads, readsOf(method, at, status, answer.text), learned, '')
  if (fault !== null) return `${where}: ${fault}`
  for (const [name, value] of learned) names.set(name, value)
  return null
}

function differ(recorded: unknown, actual: unknown, names: Map<string, string>, at: string): string | null {
  if (recorded === '{any}') return actual === undefined || actual === null ? `${at} is missing` : null
  if (typeof recorded === 'string' && NAME.test(recorded)) return differText(recorded, actual, names, at)
  if (typeof recorded !== 'object' || recorded === null)
    return Object.is(recorded, actual)
      ? null
      : `${at} is ${JSON.stringify(actual)} instead of ${JSON.stringify(recorded)}`
  if (typeof actual !== 'object' || actual === null || Array.isArray(actual) !== Array.isArray(recorded))
    return `${at} is ${JSON.stringify(actual)}`
  const keys = new Set([...Object.keys(recorded), ...Object.keys(actual)])
  const of = (value: object, key: string) => (value as Readonly<Record<string, unknown>>)[key]
  for (const key of keys) {
    const fault = differ(of(recorded, key), of(actual, key), names, at === '' ? key : `${at}.${key}`)
    if (fault !== null) return fault
  }
  return null
}

function differText(recorded: string, actual: unknown, names: Map<string, string>, at: string): string | null {
  const asked: string[] = []
  const pattern = recorded.split(NAME).map((part, index) => {
    if (index % 2 === 0) return RegExp.escape(part)
    const known = names.get(part)
    if (known !== undefined) return RegExp.escape(known)
    asked.push(part)
    return '(.+?)'
  })
  const match = new RegExp(`^${pattern.join('')}$`, 's').exec(String(actual))
  if (match === null) return `${at} is ${JSON.stringify(actual)} instead of ${recorded}`
  for (const [index, name] of asked.entries()) names.set(name, match[index + 1] ?? '')
  return null
}

function fillIn(text: string, names: ReadonlyMap<string, string>): string {
  return text.replaceAll(new RegExp(NAME, 'g'), (_, name: string) => {
    const value = names.get(name)
    assert.ok(
      value !== undefined,
      `nothing has told {${name}} that ${text} needs: the table of what the client reads lacks it`,
    )
    return value
  })
}

/** Publishes folders with the fake ComfyUI at once: what the real builder makes of a definition is not what is compared here. */
function createPlainBuilder(root: string, gate: string): Builder & AsyncDisposable {
  const target = { os: 'linux', gpu: 'nvidia' } as const
  const folderOf = (releaseId: string) => ({
    python: path.join(root, releaseId, 'venv/bin/python'),
    comfyui: path.join(root, releaseId, 'ComfyUI'),
  })
  const image = { id: 'cu130-py312', label: 'Python 3.12', python: '3.12', torch: 'cu130', targets: [target] }
  return {
    targets: [target],
    baseImages: [{ ...image, isDefault: true }],
    async build({ releaseId, definition, openBlob, note, say }) {
      const { customNodes = [], models = [] } = definition
      if (customNodes.some(({ name }) => name === 'broken'))
        throw new BuildFailure('assemble', 'pack broken: its install script failed')
      const locked = []
      for (const { type, filename, blobId = '' } of models) {
        const bytes = await buffer(await openBlob(blobId, 'model'))
        const sha256 = createHash('sha256').update(bytes).digest('hex')
        locked.push({ type, filename, sha256, sizeBytes: bytes.length, from: 'blob' as const })
      }
      const comfyui = { wanted: definition.baseComfyVersion ?? '', commit: null, sha256: '0'.repeat(64) }
      const lock = {
        comfyui,
        python: '3.12',
        torch: { variant: 'cu130', version: null },
        packs: [],
        wheels: '',
        models: locked,
      }
      await note(lock)
      say('== assemble')
      const waits = customNodes.some(({ name }) => name === 'slow-pack')
      const folder = folderOf(releaseId)
      for (const each of [path.dirname(folder.python), folder.comfyui]) await mkdir(each, { recursive: true })
      await writeFile(folder.python, fakePython(waits ? gate : null))
      await chmod(folder.python, 0o755)
      return { lock, archiveSha256: '0'.repeat(64), sizeBytes: 1, classes: {} }
    },
    async find(releaseId) {
      return existsSync(folderOf(releaseId).python) ? folderOf(releaseId) : null
    },
    keepOnly: async () => 0,
    async [Symbol.asyncDispose]() {},
  }
}

function fakePython(gate: string | null): string {
  const wait = gate === null ? '' : `while [ -e '${gate}' ]; do sleep 0.05; done\n`
  return `#!/bin/sh
while [ $# -gt 0 ]; do if [ "$1" = --port ]; then port=$2; fi; shift; done
${wait}exec '${process.execPath}' '${FAKE}' --port "$port" --options '{"checkpoints":["a.safetensors"]}'
`
}
