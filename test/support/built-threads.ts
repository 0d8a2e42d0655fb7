/**
 * Loaded before the tests: threads, and the engine's process, run from the build when it was made of these very sources, as they do for
 * users. From the sources each thread of each service under test would load a hundred modules anew, which was most of what the start of
 * a service took.
 */
import processes from 'node:child_process'
import { existsSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import threads from 'node:worker_threads'
import { WarmThread } from './warm-threads.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))
const STORE_THREAD = /\/src\.adapters\.store\.sqlite\.threads\.(reader|writer)-thread\.js$/
const WARM_THREAD = new URL('./warm-thread.ts', import.meta.url)

function toBuilt(build: string, script: string | URL): string | URL {
  if (!(script instanceof URL) || !/-(thread|process)\.ts$/.test(script.pathname)) return script
  const name = path.relative(project, fileURLToPath(script)).replaceAll(path.sep, '.')
  const built = path.join(build, name.replace(/\.ts$/, '.js'))
  return existsSync(built) ? pathToFileURL(built) : script
}

function startBuilt(build: string): void {
  const RealWorker = threads.Worker
  // Without the flags of the test runner: a thread would load this file, too.
  const start = (script: string | URL, options: threads.WorkerOptions) =>
    new RealWorker(script, { execArgv: [], ...options })
  threads.Worker = new Proxy(RealWorker, {
    construct(_, [script, options = {}]: [string | URL, threads.WorkerOptions?]) {
      const built = toBuilt(build, script)
      if (!(built instanceof URL) || !STORE_THREAD.test(built.href)) return start(built, options)
      return new WarmThread(built, options, () => start(WARM_THREAD, { resourceLimits: options.resourceLimits }))
    },
  })
  processes.fork = new Proxy(processes.fork, {
    // Only a service gives its engine an environment, or else the environment says so (engine/test/support/harness.ts).
    apply(fork, _, [script, options, ...rest]) {
      const isOfService = options?.env !== undefined && options.env['ATELIER_TEST_ENGINE'] !== 'sources'
      return fork(isOfService ? toBuilt(build, script) : script, options, ...rest)
    },
  })
  syncBuiltinESMExports()
}

// Not in a thread, where finding the build would take as long as the thread's own start.
if (threads.isMainThread) {
  const { PROGRAM } = await import('./app/program.ts')
  if (PROGRAM.endsWith('.js')) startBuilt(path.dirname(PROGRAM))
}
