/**
 * Makes `dist/`, what `npm pack` packs: the service in few files, the engine as modules that other programs may import, the console
 * and the data. A part that is missing, or cannot be built, fails the build.
 */
import { accessSync, cpSync, rmSync } from 'node:fs'
import path from 'node:path'
import { digestConsole, isConsoleBuilt, packedProgram } from './built-parts.js'
import { bundleProgram } from './bundle-program.ts'
import { compileEngine, project, runScript } from './compile-engine.ts'

const dist = path.join(project, 'dist')
const DATA = ['spec', 'models', 'migrations', 'console/dist', 'package.json']

function buildConsole(): void {
  const digest = digestConsole(project)
  if (digest === null) throw new Error('the sources of the console are missing: there is no folder console/src')
  if (isConsoleBuilt(project, digest)) return
  runScript([path.join(project, 'scripts/build-console.ts')], 'the console could not be built')
}

rmSync(dist, { recursive: true, force: true })
buildConsole()
// Before the compiler, which takes longer.
for (const name of DATA) accessSync(path.join(project, name))
compileEngine(dist)
await bundleProgram(path.dirname(packedProgram(project)), { hasPackages: false })
for (const name of DATA) cpSync(path.join(project, name), path.join(dist, name), { recursive: true })
