/**
 * What a reader has before the first command of a page: a fresh checkout with its packages installed, and the port of the pages
 * free. `npx` finds the command of that checkout; tools that this machine lacks are replaced by stand-ins.
 */
import { spawn } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { runAtelier } from '../support/cli/atelier.ts'
import { findFreePort } from '../support/network/free-port.ts'

export const project = fileURLToPath(new URL('../..', import.meta.url))

const COPIED = ['scripts', 'examples', 'package.json', 'package-lock.json']
// Shared by all checkouts, because no page changes them.
const LINKED = ['client', 'engine', 'exports', 'lib', 'src', 'spec', 'models', 'migrations', 'build', 'node_modules']
const STAND_INS = ['jq', 'sqlite3']
// A page takes a few seconds; on a machine that does much else, several times that.
const PAGE_WITHIN_MS = 300_000

export interface Ended {
  readonly code: number | null
  readonly output: string
}

export interface CleanCheckout extends AsyncDisposable {
  readonly folder: string
  /** Where a service that says nothing about its port is found. */
  readonly url: string
  run(script: string): Promise<Ended>
}

export async function openCleanCheckout(): Promise<CleanCheckout> {
  const home = mkdtempSync(path.join(tmpdir(), 'atelier-docs-'))
  const folder = path.join(home, 'atelier')
  mkdirSync(folder)
  for (const name of COPIED) cpSync(path.join(project, name), path.join(folder, name), { recursive: true })
  for (const name of LINKED) symlinkSync(path.join(project, name), path.join(folder, name))
  const port = await findFreePort()
  const url = `http://127.0.0.1:${port}`
  const env = {
    PATH: `${writeCommands(path.join(home, 'bin'))}:${process.env['PATH'] ?? ''}`,
    HOME: home,
    TMPDIR: home,
    SERVICE_LOG: path.join(home, 'service.log'),
    // The pages say 8189.
    ATELIER_PORT: String(port),
    SERVICE_URL: url,
    npm_config_update_notifier: 'false',
  }
  return {
    folder,
    url,
    run: (script) => runScript(script, { cwd: folder, env }),
    async [Symbol.asyncDispose]() {
      // What a page started in the background and did not stop.
      if (existsSync(path.join(folder, '.atelier/service.json'))) await runAtelier(['stop'], { cwd: folder })
      rmSync(home, { recursive: true, force: true })
    },
  }
}

function runScript(script: string, { cwd, env }: { cwd: string; env: Record<string, string> }): Promise<Ended> {
  // A group of its own, so that whatever a failed page leaves running can be ended with it.
  const shell = spawn('bash', ['-s'], { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
  const endGroup = () => {
    try {
      process.kill(-(shell.pid as number), 'SIGKILL')
    } catch {
      // Nothing of it is left.
    }
  }
  let output = ''
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  shell.stdin.end(script)
  const timer = setTimeout(endGroup, PAGE_WITHIN_MS)
  shell.on('exit', endGroup)
  return new Promise((resolve, reject) => {
    shell.on('error', reject)
    shell.on('close', (code) => {
      clearTimeout(timer)
      resolve({ code, output })
    })
  })
}

function writeCommands(bin: string): string {
  mkdirSync(bin)
  writeCommand(bin, 'node', `exec ${process.execPath} "$@"`)
  // `run` and `trace` look at the port of the pages; the other commands find the service by its data folder.
  const base =
    '{ [ "$1" = run ] || [ "$1" = trace ] || [ "$1" = provider-keys ]; } && export ATELIER_BASE_URL="$SERVICE_URL"'
  writeCommand(bin, 'npx', `[ "$1" = atelier ] || exit 127; shift; ${base}; exec node "$PWD/scripts/atelier.js" "$@"`)
  // Takes ComfyUI's command line and starts a fake server that behaves like ComfyUI.
  const comfy = path.join(project, 'test/support/engines/fake-comfyui/main.ts')
  writeCommand(bin, 'python', `[ "$1" = main.py ] || exit 127; shift; exec node ${comfy} "$@"`)
  for (const name of STAND_INS) {
    const program = path.join(project, `test/docs/stand-ins/${name}.ts`)
    if (findInPath(name) === null) writeCommand(bin, name, `exec node ${program} "$@"`)
  }
  return bin
}

function writeCommand(bin: string, name: string, body: string): void {
  writeFileSync(path.join(bin, name), `#!/bin/sh\n${body}\n`)
  chmodSync(path.join(bin, name), 0o755)
}

/** Where this machine has the program, or null. */
export function findInPath(name: string): string | null {
  for (const directory of (process.env['PATH'] ?? '').split(':')) {
    const file = path.join(directory, name)
    try {
      accessSync(file, constants.X_OK)
      return file
    } catch {
      // Further on, perhaps.
    }
  }
  return null
}

export function readPage(name: string): string {
  return readFileSync(path.join(project, name), 'utf8')
}
