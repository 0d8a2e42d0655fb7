/**
 * The engine, and what it uses of `lib`, as plain JavaScript with its types beside it: Node runs the sources of a checkout as they are,
 * but refuses TypeScript inside node_modules, where an installed package lies. The folder has the layout of the checkout, so that
 * every relative path in the code means the same in both.
 */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

export function runScript(args: readonly string[], complaint: string): void {
  const { status } = spawnSync(process.execPath, args, { cwd: project, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) throw new Error(`${complaint}; see above`)
}

export function compileEngine(folder: string): void {
  const compiler = path.join(project, 'node_modules/typescript/bin/tsc')
  const settings = path.join(project, 'tsconfig.engine.json')
  runScript([compiler, '-p', settings, '--outDir', folder], 'the compiler refused the sources')
  renameThreadModules(folder)
}

/** The compiler rewrites the endings of imports. The URLs of modules that are started as threads or processes are rewritten here. */
function renameThreadModules(folder: string): void {
  for (const file of globSync('**/*.js', { cwd: folder })) {
    const name = path.join(folder, file)
    const text = readFileSync(name, 'utf8')
    const renamed = text.replace(/(new URL\((['`])\.{1,2}\/[^'`]+)\.ts(\2, import\.meta\.url\))/g, '$1.js$3')
    if (renamed !== text) writeFileSync(name, renamed)
  }
}
