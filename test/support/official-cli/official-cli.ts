/**
 * The official command line as its users have it: a program of its own, with a home folder of its own, against a whole service with a
 * builder. The releases hold the fake ComfyUI, which loads their packs as ComfyUI does; wheels, packs and models are made here.
 */
import { execFile, execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type SharedApp, startShared, type Tenant } from '../app/start-shared.ts'
import { packFiles, tinyModel, writeFolder, writeRepository, writeWheel } from '../builds/packages.ts'
import { writeRunning } from '../builds/running-comfyui.ts'
import { call } from '../clients/call.ts'
import { type Exchange, startRecorder } from './recorder.ts'

export const COMFY_CLI = process.env['ATELIER_TEST_COMFY_CLI'] ?? null
export const OPEN_GATE = '(slow engines may start)'
export const CLOSE_GATE = '(slow engines wait)'
export const DOMAIN = 'example.test'
export const TARGET = 'linux/nvidia'

export interface Ended {
  readonly code: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  readonly data: any
  readonly changed: boolean | null
  readonly error: { readonly code: string; readonly message: string } | null
  readonly stdout: string
  readonly stderr: string
}

/** What one command asked for, in order. */
export interface RecordedCommand {
  readonly words: readonly string[]
  readonly code: number
  readonly exchanges: readonly Exchange[]
}

export interface OfficialCli extends AsyncDisposable {
  /** The folder that stands for a ComfyUI with models and packs. */
  readonly folder: string
  readonly python: string
  readonly app: SharedApp
  readonly tenant: Tenant
  readonly recorded: readonly RecordedCommand[]
  /** `comfy --skip-prompt --json <words>`, in a folder. */
  run(words: readonly string[], cwd?: string): Promise<Ended>
  /** What somebody else does in between with the same key, and is recorded too. */
  ask(method: string, path: string, body: string): Promise<number>
  /** What engines of a release have begun, as graphs. */
  logOf(releaseId: string): string
  /** Whether engines with the pack `slow` may start. */
  setGate(isOpen: boolean): Promise<void>
  /** Another folder like the first one, with these files. */
  another(name: string, files: Readonly<Record<string, string>>): Promise<string>
}

export async function openOfficialCli(venv: string): Promise<OfficialCli> {
  const root = await realpath(await mkdtemp(path.join(tmpdir(), 'atelier-comfy-')))
  const target = { os: 'linux', gpu: 'nvidia' } as const
  const { builderFile, logOf, gate, wheels } = await writeRunning(root, { uv: path.join(venv, 'bin/uv'), target })
  await writeWheel(wheels, { name: 'tiny', version: '1.0' })
  const app = await startShared({
    ...{ builder: builderFile, builds: 'ana', deploymentsDomain: DOMAIN, trustedProxies: '127.0.0.1' },
    ...{ releaseEngines: '3', releaseIdle: '1h' },
  })
  const tenant = await app.account('ana', { requestsPerMinute: null, concurrentJobs: 4, queuedJobs: 1000 })
  const recorder = await startRecorder(app.url, DOMAIN, root)
  const recorded: RecordedCommand[] = []
  const python = await writePython(root)
  const folder = await writeInstallation(path.join(root, 'studio'))
  const env = {
    ...{ HOME: path.join(root, 'home'), PATH: `${path.join(venv, 'bin')}:/usr/bin:/bin`, DO_NOT_TRACK: '1' },
    ...{ COMFY_BUILDER_URL: `${recorder.origin}/builder`, COMFY_DEPLOY_URL: `${recorder.origin}/deploy` },
    ...{ COMFY_CLOUD_BASE_URL: recorder.origin, COMFY_CLOUD_API_KEY: tenant.key },
    ...{ COMFY_DEPLOY_HOST_SUFFIXES: `.run.${DOMAIN}`, SSL_CERT_FILE: recorder.ca, REQUESTS_CA_BUNDLE: recorder.ca },
    ...{ HTTPS_PROXY: recorder.proxy, NO_PROXY: '127.0.0.1,localhost', LANG: 'C.UTF-8' },
  }
  await mkdir(env.HOME)
  return {
    ...{ folder, python, app, tenant, recorded },
    async run(words, cwd = folder) {
      const ended = await runComfy(path.join(venv, 'bin/comfy'), words, { cwd, env })
      recorded.push({ words, code: ended.code, exchanges: recorder.take() })
      return ended
    },
    async ask(method, at, body) {
      const headers = { 'x-api-key': tenant.key, 'content-type': 'application/json' }
      const { status } = await call(recorder.origin, at, { method, body, headers })
      recorded.push({ words: ['(somebody else)'], code: 0, exchanges: recorder.take() })
      return status
    },
    logOf,
    async setGate(isOpen) {
      recorded.push({ words: [isOpen ? OPEN_GATE : CLOSE_GATE], code: 0, exchanges: [] })
      await (isOpen ? rm(gate, { force: true }) : writeFile(gate, ''))
    },
    another: (name, files) => writeFolder(path.join(root, name), files),
    async [Symbol.asyncDispose]() {
      await recorder[Symbol.asyncDispose]()
      await app[Symbol.asyncDispose]()
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

interface Running {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

function runComfy(program: string, words: readonly string[], { cwd, env }: Running): Promise<Ended> {
  const all = ['--skip-prompt', '--json', ...words]
  return new Promise((resolve) => {
    execFile(program, all, { cwd, env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      const line = stdout.trim().split('\n').at(-1) ?? ''
      const told = line.startsWith('{') ? JSON.parse(line) : {}
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
      const { data = null, changed = null, error: problem = null } = told
      resolve({ code, data, changed, error: problem, stdout, stderr })
    })
  })
}

/** Says what is installed, as any Python with pip does; the environment of whoever runs this is nobody's business. */
async function writePython(root: string): Promise<string> {
  const file = path.join(root, 'python')
  await writeFile(file, '#!/bin/sh\nif [ "$2" = pip ]; then echo tiny==1.0; else exec python3 "$@"; fi\n')
  await chmod(file, 0o755)
  return file
}

/** A ComfyUI with a model, a pack of its owner, and a file that a workflow names. */
async function writeInstallation(folder: string): Promise<string> {
  const pack = packFiles('StudioNode', { requirements: 'tiny\n' })
  await writeFolder(path.join(folder, 'custom_nodes/studio-pack'), pack)
  await mkdir(path.join(folder, 'models/checkpoints'), { recursive: true })
  await writeFile(path.join(folder, 'models/checkpoints/a.safetensors'), tinyModel('a'))
  await mkdir(path.join(folder, 'input'))
  await writeFile(path.join(folder, 'input/in.png'), PIXEL)
  await writeFile(path.join(folder, 'w.json'), JSON.stringify(WORKFLOW))
  await writeFile(path.join(folder, 'ui.json'), JSON.stringify({ nodes: [], links: [], version: 0.4 }))
  return folder
}

/** Packs as people find them: a checkout of a public repository, and one that the registry installed. */
export async function writePublicPacks(folder: string): Promise<string> {
  const checkout = path.join(folder, 'custom_nodes/git-pack')
  await writeRepository(checkout, packFiles('GitNode'))
  execFileSync('git', ['remote', 'add', 'origin', 'https://github.com/example-org/git-pack.git'], { cwd: checkout })
  return folder
}

const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

export const WORKFLOW = {
  '1': { class_type: 'LoadImage', inputs: { image: 'input/in.png' } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'walk' } },
}
