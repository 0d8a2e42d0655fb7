/**
 * Loaded by `scripts/walk.ts` into every thread of the service and of its engine: counts the calls of functions, and hands the
 * counts since the last time out whenever the walk asks. Question and answer are files in a folder, because a thread of another process
 * cannot be reached in any other way.
 */
import childProcess from 'node:child_process'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { type Profiler, Session } from 'node:inspector'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { threadId } from 'node:worker_threads'

const LOOK_EVERY_MS = 10

const own = new URL(import.meta.url)
const folder = own.searchParams.get('folder') ?? ''
const name = `${process.pid}-${threadId}`
const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

// The engine's process inherits no settings of Node's: it gets this one here.
const { fork } = childProcess
const forkWithProbe = (program: string | URL, options: childProcess.ForkOptions) =>
  fork(program, [], { ...options, env: { ...options.env, NODE_OPTIONS: `--import=${own.href}` } })
childProcess.fork = forkWithProbe as typeof fork
syncBuiltinESMExports()

let answered = readQuestion()
write('alive', '')
setInterval(() => {
  const question = readQuestion()
  if (question === answered) return
  answered = question
  session.post('Profiler.takePreciseCoverage', (_error, { result }) => write(question, toText(result)))
}, LOOK_EVERY_MS).unref()

function readQuestion(): string {
  return readFileSync(join(folder, 'question'), 'utf8')
}

/** Each function that was called, as file, name and place, with its calls. What begins with its file is the loading of it. */
function toText(scripts: readonly Profiler.ScriptCoverage[]): string {
  const counts = scripts
    .filter(({ url }) => url.startsWith('file:'))
    .flatMap(({ url, functions }) =>
      functions
        .filter(({ ranges: [{ startOffset }] }) => startOffset > 0)
        .map(({ functionName, ranges: [{ startOffset, count }] }) => {
          const key = [fileURLToPath(url), functionName, startOffset].join('\n')
          return [key, count] as const
        }),
    )
  return JSON.stringify(counts.filter(([, count]) => count > 0))
}

function write(question: string, text: string): void {
  const file = join(folder, `${question}.${name}`)
  writeFileSync(`${file}.part`, text)
  renameSync(`${file}.part`, file)
}
