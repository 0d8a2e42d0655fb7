/**
 * Makes `dist/`, the program as plain JavaScript with its types beside it: what `npm pack` packs. Node runs the sources of a
 * checkout as they are, but refuses TypeScript inside node_modules, where an installed package lies. The folder has the layout
 * of the checkout, so that every relative path in the code means the same in both. The service itself runs from a build in few
 * files; its modules are not packed a second time. A part that is missing, or cannot be built, fails the build.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { digestConsole, isConsoleBuilt, packedProgram } from './built-parts.js'
import { bundleProgram } from './bundle-program.ts'

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const dist = path.join(project, 'dist')
const DATA = ['spec', 'models', 'migrations', 'console/dist', 'package.json']

function runScript(args: readonly string[], complaint: string): void {
  const { status } = spawnSync(process.execPath, args, { cwd: project, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) throw new Error(`${complaint}; see above`)
}

function compile(settings: string): void {
  const compiler = path.join(project, 'node_modules/typescript/bin/tsc')
  runScript([compiler, '-p', path.join(project, settings)], 'the compiler refused the sources')
}

function buildConsole(): void {
  const digest = digestConsole(project)
  if (digest === null) throw new Error('the sources of the console are missing: there is no folder console/src')
  if (isConsoleBuilt(project, digest)) return
  runScript([path.join(project, 'scripts/build-console.ts')], 'the console could not be built')
}

/** The compiler rewrites the endings of imports. The URLs of modules that are started as threads or processes are rewritten here. */
function renameThreadModules(): void {
  for (const file of globSync('**/*.js', { cwd: dist })) {
    const name = path.join(dist, file)
    const text = readFileSync(name, 'utf8')
    const renamed = text.replace(/(new URL\((['`])\.{1,2}\/[^'`]+)\.ts(\2, import\.meta\.url\))/g, '$1.js$3')
    if (renamed !== text) writeFileSync(name, renamed)
  }
}

rmSync(dist, { recursive: true, force: true })
buildConsole()
// Before the compiler, which takes longer.
for (const name of DATA) accessSync(path.join(project, name))
compile('tsconfig.build.json')
// Types only of what other programs may import.
compile('tsconfig.types.json')
renameThreadModules()
rmSync(path.join(dist, 'src'), { recursive: true })
await bundleProgram(path.dirname(packedProgram(project)), { hasPackages: false })
for (const name of DATA) cpSync(path.join(project, name), path.join(dist, name), { recursive: true })
