#!/usr/bin/env node
/** The entry point: checks the runtime, hands the command line over, ends the process. The only file that may end it. */
import { enableCompileCache } from 'node:module'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'

const REQUIRED_MAJOR = 24
const SERVICE_WAIT_MS = 1000

if (Number(process.versions.node.split('.')[0]) < REQUIRED_MAJOR) {
  process.stderr.write(
    `atelier: needs Node ${REQUIRED_MAJOR} or newer, and this is ${process.version}. ` +
      'Use `npm start` or `npx atelier` in the project folder: they bring the right one along on Linux.\n',
  )
  process.exit(1)
}

// Caching compiled code between starts, for this thread and the threads that it starts, halves the time until the service is ready.
const cache = fileURLToPath(new URL('../node_modules/.cache/atelier', import.meta.url))
process.env['NODE_COMPILE_CACHE'] ??= cache
enableCompileCache(process.env['NODE_COMPILE_CACHE'])

// Node starts four threads for file work, however few cores there are, and keeps them. On two cores three do as much.
if (availableParallelism() <= 2) process.env['UV_THREADPOOL_SIZE'] ??= '3'

// Imported only now: an older Node would fail on their syntax before it could print the message above.
const { main } = await import('./cli/main.ts')
const code = await main({
  program: fileURLToPath(import.meta.url),
  args: process.argv.slice(2),
  env: process.env,
  cwd: process.cwd(),
  get stdin() {
    // Only asked for by the command that reads it: the getter of Node opens it.
    return process.stdin
  },
  stdout: process.stdout,
  stderr: process.stderr,
  onSignal(listener) {
    process.on('SIGINT', listener)
    process.on('SIGTERM', listener)
    return () => {
      process.off('SIGINT', listener)
      process.off('SIGTERM', listener)
    }
  },
  onHangup(listener) {
    process.on('SIGHUP', listener)
    return () => process.off('SIGHUP', listener)
  },
  exitNow: (status) => process.exit(status),
})
await untilTaken()
process.exit(code)

/** An end before a slow reader has taken everything would cut it off. A service does not wait for long: its lines may have no reader. */
async function untilTaken(): Promise<void> {
  const isService = ['serve', 'work'].includes(process.argv[2] ?? 'serve')
  if (isService) setTimeout(() => process.exit(code), SERVICE_WAIT_MS)
  for (const stream of [process.stdout, process.stderr]) {
    // One that has gone takes nothing more.
    stream.on('error', () => {})
    if (stream.writableLength > 0) await new Promise((resolve) => stream.write('', resolve))
  }
}
