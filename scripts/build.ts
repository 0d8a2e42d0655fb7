/**
 * Makes `dist/`, what `npm pack` packs: the service in few files, the engine as modules that other programs may import, the console,
 * the data and the papers; and the clients, which have a folder of their own. A part that is missing, or cannot be built, fails the build.
 */
import { accessSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { digestClient, digestConsole, isClientBuilt, isConsoleBuilt, packedProgram } from './built-parts.js'
import { bundleProgram } from './bundle-program.ts'
import { compileEngine, project, runScript } from './compile-engine.ts'
import { writePapers } from './write-papers.ts'

const dist = path.join(project, 'dist')
const DATA = ['spec', 'models', 'migrations', 'console/dist', 'client/dist/python']

function buildConsole(): void {
  const digest = digestConsole(project)
  if (digest === null) throw new Error('the sources of the console are missing: there is no folder console/src')
  if (isConsoleBuilt(project, digest)) return
  runScript([path.join(project, 'scripts/build-console.ts')], 'the console could not be built')
}

function buildClient(): void {
  const digest = digestClient(project)
  if (digest === null) throw new Error('the sources of the client are missing: there is no folder client')
  if (isClientBuilt(project, digest)) return
  runScript([path.join(project, 'scripts/build-client.ts')], 'the client could not be built')
}

function readJson(file: string): Readonly<Record<string, unknown>> {
  return JSON.parse(readFileSync(path.join(project, file), 'utf8')) as Readonly<Record<string, unknown>>
}

rmSync(dist, { recursive: true, force: true })
buildConsole()
buildClient()
// Before the compiler, which takes longer.
for (const name of DATA) accessSync(path.join(project, name))
compileEngine(dist)
await bundleProgram(path.dirname(packedProgram(project)), { hasPackages: false })
for (const name of DATA) cpSync(path.join(project, name), path.join(dist, name), { recursive: true })
const { name, version, type, dependencies } = readJson('package.json')
// What the program reads of it, and no doors: those of the package are in its root.
writeFileSync(path.join(dist, 'package.json'), `${JSON.stringify({ name, version, type, dependencies }, null, 2)}\n`)
writePapers(project, dist, readJson('console/dist/manifest.json')['packages'] as readonly string[])
