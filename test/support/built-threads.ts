/**
 * Loaded before the tests: threads run from the build when it was made of these very sources, as they do for users. From the sources
 * each thread of each service under test would load a hundred modules anew, which was most of what the start of a service took.
 */
import { existsSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import threads from 'node:worker_threads'

const project = fileURLToPath(new URL('../..', import.meta.url))

function toBuilt(build: string, script: string | URL): string | URL {
  if (!(script instanceof URL) || !script.pathname.endsWith('-thread.ts')) return script
  const name = path.relative(project, fileURLToPath(script)).replaceAll(path.sep, '.')
  const built = path.join(build, name.replace(/\.ts$/, '.js'))
  return existsSync(built) ? pathToFileURL(built) : script
}

function startBuilt(build: string): void {
  threads.Worker = class extends threads.Worker {
    constructor(script: string | URL, options?: threads.WorkerOptions) {
      // Without the flags of the test runner: a thread would load this file, too.
      super(toBuilt(build, script), { execArgv: [], ...options })
    }
  }
  syncBuiltinESMExports()
}

// Not in a thread, where finding the build would take as long as the thread's own start.
if (threads.isMainThread) {
  const { PROGRAM } = await import('./app/program.ts')
  if (PROGRAM.endsWith('.js')) startBuilt(path.dirname(PROGRAM))
}
