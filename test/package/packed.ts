/**
 * The package as `npm pack` makes it from a clean checkout, and a folder outside of the project in which it is installed. Its
 * dependencies are links to those of this checkout: nothing is fetched.
 */
import { execFileSync, spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const project = fileURLToPath(new URL('../..', import.meta.url))

// What a checkout has and the package does not need stays behind: tests, benches.
const COPIED = [
  'client',
  'engine',
  'exports',
  'lib',
  'src',
  'spec',
  'models',
  'migrations',
  'docs',
  'examples',
  'console',
  'scripts',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.engine.json',
  'README.md',
  'CHANGELOG.md',
  'LICENSE',
]

export interface PackedPackage extends Disposable {
  /** The packed file. */
  readonly file: string
  /** What it holds, without the leading `package/`. */
  readonly names: readonly string[]
  /** A folder with nothing in it but the installed package. */
  readonly folder: string
  /** Builds the engine's own package, and answers a folder with nothing else in it. */
  installEngine(): string
}

export function packProject(): PackedPackage {
  const home = mkdtempSync(path.join(tmpdir(), 'atelier-package-'))
  const checkout = path.join(home, 'checkout')
  mkdirSync(checkout)
  for (const name of COPIED) cpSync(path.join(project, name), path.join(checkout, name), { recursive: true })
  symlinkSync(path.join(project, 'node_modules'), path.join(checkout, 'node_modules'))
  const packed = execFileSync('npm', ['pack', '--silent', '--pack-destination', home], {
    cwd: checkout,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const file = path.join(home, packed.trim().split('\n').at(-1) ?? '')
  const listed = execFileSync('tar', ['-tzf', file], { encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 })
  const names = listed.trim().split('\n')
  return {
    file,
    names: names.map((name) => name.replace(/^package\//, '')),
    folder: installInto(path.join(home, 'app'), 'atelier', (to) => {
      execFileSync('tar', ['-xzf', file, '-C', to, '--strip-components=1'])
    }),
    installEngine: () =>
      installInto(path.join(home, 'engine-app'), '@atelier/engine', (to) => {
        execFileSync(process.execPath, ['scripts/build-engine.ts'], {
          cwd: checkout,
          stdio: ['ignore', 'inherit', 'inherit'],
        })
        cpSync(path.join(checkout, 'dist-engine'), to, { recursive: true })
      }),
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  }
}

function installInto(folder: string, packageName: string, unpack: (to: string) => void): string {
  const modules = path.join(folder, 'node_modules')
  mkdirSync(path.join(modules, packageName), { recursive: true })
  writeFileSync(path.join(folder, 'package.json'), '{"name":"app","version":"1.0.0","type":"module"}')
  unpack(path.join(modules, packageName))
  for (const name of readdirSync(path.join(project, 'node_modules'))) {
    if (!name.startsWith('.') && name !== '@atelier')
      symlinkSync(path.join(project, 'node_modules', name), path.join(modules, name))
  }
  return folder
}

export interface Ended {
  readonly code: number | null
  readonly output: string
}

/** A program in the folder of the installed package, run to its end. */
export function runIn(folder: string, command: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const [program, ...args] = command
  const child = spawn(program, args, {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}
