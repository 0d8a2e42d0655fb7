/**
 * Loaded before the tests: threads run from the build when it was made of these very sources, as they do for users. From the sources
 * each thread of each service under test would load a hundred modules anew, which was most of what the start of a service took.
 */
import { existsSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import threads from 'node:worker_threads'
import { PROGRAM } from './app/program.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))
const build = path.dirname(PROGRAM)

function toBuilt(script: string | URL): string | URL {
  if (!(script instanceof URL) || !script.pathname.endsWith('-thread.ts')) return script
  const name = path.relative(project, fileURLToPath(script)).replaceAll(path.sep, '.')
  const built = path.join(build, name.replace(/\.ts$/, '.js'))
  return existsSync(built) ? pathToFileURL(built) : script
}

if (threads.isMainThread && PROGRAM.endsWith('.js')) {
  threads.Worker = class extends threads.Worker {
    constructor(script: string | URL, options?: threads.WorkerOptions) {
      super(toBuilt(script), options)
    }
  }
  syncBuiltinESMExports()
}
