/**
 * Makes the clients from the specification, into `client/dist`: modules for each API with their types, and one file for Python.
 * A folder of its own first, so that of two builds at once each is whole, and the later one stays.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { APIS, MAIN_DOOR } from '../client/generate/apis.ts'
import { toPythonFile } from '../client/generate/python.ts'
import { toModule } from '../client/generate/typescript.ts'
import type { Document } from '../lib/openapi/operations.ts'
import { digestClient } from './built-parts.js'

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const home = path.join(project, 'client')
const RUNTIME = ['core', 'events', 'waiting', 'webhooks']

const readText = (file: string) => readFileSync(path.join(project, file), 'utf8')

function writeSources(folder: string, apis: readonly { readonly door: string; readonly module: string }[]): void {
  for (const name of RUNTIME) cpSync(path.join(home, `${name}.ts`), path.join(folder, `${name}.ts`))
  for (const { door, module } of apis) writeFileSync(path.join(folder, `${door}.ts`), module)
  const doors = [...RUNTIME, MAIN_DOOR].map((name) => `export * from './${name}.ts'`)
  writeFileSync(path.join(folder, 'index.ts'), `${doors.join('\n')}\n`)
}

function compile(sources: string, folder: string): void {
  const compiler = path.join(project, 'node_modules/typescript/bin/tsc')
  const settings = path.join(sources, 'tsconfig.json')
  writeFileSync(settings, JSON.stringify({ extends: '../../tsconfig.build.json', include: ['.'], exclude: [] }))
  const args = [compiler, '-p', settings, '--rootDir', sources, '--outDir', folder]
  const { status } = spawnSync(process.execPath, args, { cwd: project, stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('the client could not be compiled; see above')
}

function build(): void {
  // Before the sources are read: whatever changes meanwhile makes the next start build again.
  const digest = digestClient(project)
  const { version } = JSON.parse(readText('package.json')) as { readonly version: string }
  const apis = APIS.map((api) => ({ ...api, document: JSON.parse(readText(`spec/${api.source}`)) as Document }))
  const aside = mkdtempSync(path.join(home, 'dist-'))
  try {
    const sources = path.join(aside, 'sources')
    mkdirSync(sources)
    writeSources(
      sources,
      apis.map((api) => ({ door: api.door, module: toModule(api, api.document) })),
    )
    compile(sources, aside)
    rmSync(sources, { recursive: true })
    mkdirSync(path.join(aside, 'python'))
    writeFileSync(path.join(aside, 'python/atelier_client.py'), toPythonFile(version, apis))
    writeFileSync(path.join(aside, 'sources.txt'), `${digest}\n`)
    // A temporary folder is its maker's alone.
    chmodSync(aside, 0o755)
    const dist = path.join(home, 'dist')
    rmSync(dist, { recursive: true, force: true })
    renameSync(aside, dist)
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}

build()
