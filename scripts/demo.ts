/**
 * `npm run demo`: starts a temporary server, runs a workflow on a picture and saves the output, in a few seconds. Uses the same
 * code as `atelier serve` and `atelier run`. The server and its data are removed afterwards, the output stays.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import sharp from 'sharp'
import { runWorkflow } from '../src/cli/run/run.ts'
import type { Terminal } from '../src/cli/terminal.ts'
import { findProgram } from './built-parts.js'

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const READY_WITHIN_MS = 30_000

const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" width="640" height="400">
  <defs><linearGradient id="sky" x1="0" y1="0" x2="0" y2="1">
    <stop offset="0" stop-color="#1b2a6b"/><stop offset="0.6" stop-color="#e8743b"/><stop offset="1" stop-color="#f6c667"/>
  </linearGradient></defs>
  <rect width="640" height="400" fill="url(#sky)"/>
  <circle cx="440" cy="250" r="60" fill="#fff3c4"/>
  <path d="M0 330 L140 210 L260 320 L380 230 L640 360 L640 400 L0 400 Z" fill="#20254a"/>
</svg>`

const terminal: Terminal = {
  program: '',
  args: [],
  env: {},
  cwd: project,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  onSignal(listener) {
    process.on('SIGINT', listener).on('SIGTERM', listener)
    return () => void process.off('SIGINT', listener).off('SIGTERM', listener)
  },
  onHangup: () => () => {},
  exitNow: (code) => process.exit(code),
}

async function startServer(dataDir: string): Promise<{ readonly server: ChildProcess; readonly url: string }> {
  const args = [findProgram(project), 'serve', '--port', '0', '--host', '127.0.0.1', '--data-dir', dataDir]
  // In a process group of its own: Ctrl-C is for the run, which cancels its job and then ends the server.
  const server = spawn(process.execPath, [...args, '--log-level', 'warn'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  const url = await readAddress(server).catch((error: unknown) => {
    server.kill('SIGKILL')
    throw error
  })
  return { server, url }
}

function readAddress(server: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const timer = setTimeout(() => reject(new Error(`no server within ${READY_WITHIN_MS / 1000} s`)), READY_WITHIN_MS)
  let text = ''
  server.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    const url = /serving at (http:\S+)/.exec(text)?.[1]
    if (url !== undefined) resolve(url)
  })
  server.once('exit', (code) => reject(new Error(`the server ended with ${code} before it was ready`)))
  server.once('error', reject)
  return promise.finally(() => clearTimeout(timer))
}

async function stopServer(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const exited = once(server, 'exit')
  server.kill('SIGTERM')
  await exited
}

/** Creates a folder that git ignores, even if the project's .gitignore does not name it. */
function prepareOutputFolder(): string {
  const folder = path.join(project, 'demo-output')
  mkdirSync(folder, { recursive: true })
  if (!existsSync(path.join(folder, '.gitignore'))) writeFileSync(path.join(folder, '.gitignore'), '*\n')
  return folder
}

async function main(): Promise<number> {
  const temporary = mkdtempSync(path.join(tmpdir(), 'atelier-demo-'))
  let server: ChildProcess | null = null
  try {
    const picture = path.join(temporary, 'picture.png')
    await sharp(Buffer.from(PICTURE)).png().toFile(picture)
    console.log('starting a throw-away server ...')
    const started = await startServer(path.join(temporary, 'data'))
    server = started.server
    console.log(`running examples/postcard.json on ${started.url} ...`)
    const code = await runWorkflow(
      {
        file: path.join(project, 'examples', 'postcard.json'),
        inputs: [`1.image=@${picture}`],
        out: prepareOutputFolder(),
        server: { baseUrl: started.url, token: null },
        timeoutMs: 120_000,
        json: false,
      },
      terminal,
    )
    console.log(code === 0 ? 'done: the file above is what the workflow made' : 'the demo failed')
    return code
  } finally {
    if (server !== null) await stopServer(server)
    rmSync(temporary, { recursive: true, force: true })
  }
}

process.exitCode = await main()
