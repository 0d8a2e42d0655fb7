/**
 * What `npm test` and `npm run test:all` (`--all`) run: lint, format and types, then the tests of `test-sets.ts`. Files, folders or
 * globs as arguments replace the tests, and then nothing is checked first; `--coverage` says at the end how much of the sources the tests
 * ran; other flags go on to `node --test`.
 *
 * A test is skipped only for want of a tool. The run ends with a list of those; with CI=true there must be none, because a test that
 * nobody runs proves nothing.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { lendPostgres } from '../test/support/postgres/lend-postgres.ts'
import { findProgram } from './built-parts.js'
import { allBatches, type Batch, NoSuchTests, namedBatches, quickBatches } from './test-sets.ts'
import { type FileTime, listOfFailed, listOfSkipped, type TestSummary } from './test-summary.ts'

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const REPORTER = pathToFileURL(path.join(project, 'scripts', 'test-summary.ts')).href
const BUILT_THREADS = pathToFileURL(path.join(project, 'test', 'support', 'built-threads.ts')).href
// Ends a run that hangs, and nothing else: the slowest files start and kill whole servers, which takes minutes on a busy machine.
const TEST_TIMEOUT_MS = 900_000
// While one process waits for disk, a timer or a child, others compute: most leave a core idle for half of their time.
const PROCESSES_PER_CORE = 2
const MAX_PROCESSES = 4
const SLOWEST_SHOWN = 20
// The runner watches every promise, which makes garbage by the million: with more room it is collected less often, for a quarter less time.
const YOUNG_MIB = 64
const COVERAGE = [
  '--experimental-test-coverage',
  '--test-coverage-include={lib,engine,src}/**/*.ts',
  '--test-coverage-exclude=**/*.test.ts',
  '--test-coverage-exclude=**/test/**',
]
const OWN_FLAGS = ['--all', '--coverage']

interface Stage {
  readonly title: string
  readonly args: readonly string[]
}

function seconds(sinceMs: number): string {
  return `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`
}

/** Resolves with the exit code, or what ended the process. */
function run(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number | string> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd: project, env, stdio: ['ignore', 'inherit', 'inherit'] })
    child.on('error', ({ message }) => resolve(message))
    child.on('close', (code, signal) => resolve(code ?? signal ?? 'no code'))
  })
}

async function passes({ title, args }: Stage): Promise<boolean> {
  const startedAt = performance.now()
  const code = await run(args, process.env)
  console.log(`=== ${title}: ${code === 0 ? 'ok' : `FAILED (exit ${code})`} in ${seconds(startedAt)}`)
  return code === 0
}

async function check(): Promise<boolean> {
  const inModules = (file: string) => path.join(project, 'node_modules', file)
  const colors = process.stdout.isTTY ? [] : ['--colors=off']
  const isBuilt = findProgram(project).endsWith('.js')
  const passed = await Promise.all(
    [
      ...(isBuilt
        ? []
        : [{ title: 'build of the program', args: [path.join(project, 'scripts', 'build-program.ts')] }]),
      { title: 'lint and format', args: [inModules('@biomejs/biome/bin/biome'), 'ci', ...colors, '.'] },
      { title: 'types', args: [inModules('typescript/bin/tsc'), '--noEmit'] },
      { title: 'types of the console', args: [inModules('typescript/bin/tsc'), '-p', 'console'] },
    ].map(passes),
  )
  return passed.every(Boolean)
}

/**
 * The file that one process runs: each test file is a suite, so that its hooks are its own. The runner starts files in the order of
 * their names.
 */
function writeBatch(directory: string, batch: Batch, index: number): string {
  const { files, env = {} } = batch
  const titles = titlesOf(batch)
  const lines = files.map((file, place) => {
    const url = pathToFileURL(path.resolve(project, file)).href
    return `suite(${JSON.stringify(titles[place])}, () => import(${JSON.stringify(url)}))`
  })
  const name = path.join(directory, `${String(index).padStart(3, '0')}.test.mjs`)
  const head = `import { suite } from 'node:test'\nObject.assign(process.env, ${JSON.stringify(env)})\n`
  writeFileSync(name, `${head}${lines.join('\n')}\n`)
  return name
}

function titlesOf({ files, env = {} }: Batch): string[] {
  return files.map((file) => (env['ATELIER_TEST_STORE'] === 'postgres' ? `${file} on Postgres` : file))
}

function readSummary(file: string): TestSummary {
  return JSON.parse(
    readFileSync(file, 'utf8').trim() || '{"count":0,"files":[],"skipped":[],"failed":[]}',
  ) as TestSummary
}

function printSlowest(files: readonly FileTime[]): void {
  const slowest = files.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST_SHOWN)
  if (slowest.length < 2) return
  console.log(`\n=== the slowest ${slowest.length} of ${files.length} files`)
  for (const { file, ms } of slowest) console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${file}`)
}

/** A process that ends early, or hangs, takes the files behind along. */
function printUnfinished(batches: readonly Batch[], files: readonly FileTime[]): void {
  const finished = new Set(files.map(({ file }) => file))
  const unfinished = batches.flatMap(titlesOf).filter((title) => !finished.has(title))
  if (unfinished.length > 0) console.log(`\n=== not run to their end: ${unfinished.join(', ')}`)
}

/** Null: all passed. */
function findFault(code: number | string, { count, skipped }: TestSummary): string | null {
  if (code !== 0) return `exit ${code}`
  if (skipped.length > 0 && process.env['CI'] === 'true')
    return 'with CI=true no test may be skipped; the list above says what is missing'
  // A name pattern that matches nothing would pass, so a run without any test counts as failed.
  return count > 0 ? null : 'no test ran; check what was given to `npm test -- …`'
}

async function runTests(batches: readonly Batch[], options: RunOptions): Promise<boolean> {
  const startedAt = performance.now()
  const directory = mkdtempSync(path.join(tmpdir(), 'atelier-test-run-'))
  try {
    await using postgres = await lendPostgres()
    const summaryFile = path.join(directory, 'summary')
    const args = [
      '--test',
      `--max-semi-space-size=${YOUNG_MIB}`,
      // Of the build no line of the sources would be counted.
      ...(options.isCovered ? COVERAGE : ['--import', BUILT_THREADS]),
      `--test-concurrency=${Math.min(MAX_PROCESSES, PROCESSES_PER_CORE * availableParallelism())}`,
      `--test-timeout=${TEST_TIMEOUT_MS}`,
      ...(options.showsEachTest ? ['--test-reporter=spec', '--test-reporter-destination=stdout'] : []),
      `--test-reporter=${REPORTER}`,
      `--test-reporter-destination=${summaryFile}`,
      ...options.flags,
      ...batches.map((batch, index) => writeBatch(directory, batch, index)),
    ]
    const env = {
      ...process.env,
      ...(options.isQuick ? { ATELIER_TEST_QUICK: '1' } : postgres.env),
      // Reading and compiling the sources is half of what a short file does. Every process and thread of the run shares the result, and
      // so does the next run: an entry counts only for the very text that it was made of.
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? path.join(project, 'node_modules', '.cache', 'atelier'),
    }
    const code = await run(args, env)
    const summary = readSummary(summaryFile)
    printSlowest(summary.files)
    // A pattern of names leaves whole files out.
    if (code !== 0 && options.flags.length === 0) printUnfinished(batches, summary.files)
    if (summary.skipped.length > 0) console.log(listOfSkipped(summary.skipped, project))
    if (summary.failed.length > 0) console.log(listOfFailed(summary.failed, project))
    const fault = findFault(code, summary)
    console.log(`\n=== tests: ${fault === null ? `${summary.count} ok` : `FAILED (${fault})`} in ${seconds(startedAt)}`)
    return fault === null
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

interface RunOptions {
  /** Counts lines and branches. */
  readonly isCovered: boolean
  readonly flags: readonly string[]
  /** Without Postgres, browsers and further processes. */
  readonly isQuick: boolean
  readonly showsEachTest: boolean
}

async function main(args: readonly string[]): Promise<number> {
  const startedAt = performance.now()
  const isAll = args.includes('--all')
  const given = args.filter((arg) => !OWN_FLAGS.includes(arg))
  const flags = given.filter((arg) => arg.startsWith('-'))
  const names = given.filter((arg) => !arg.startsWith('-'))
  const isNamed = names.length > 0
  const batches = isNamed ? namedBatches(project, names) : isAll ? allBatches(project) : quickBatches(project)
  const isSound = given.length > 0 || (await check())
  const ok =
    isSound &&
    (await runTests(batches, {
      flags,
      isCovered: args.includes('--coverage'),
      isQuick: !isAll && !isNamed,
      showsEachTest: isNamed,
    }))
  console.log(`=== ${ok ? 'everything passed' : 'FAILED'} in ${seconds(startedAt)}`)
  return ok ? 0 : 1
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof NoSuchTests)) throw error
  console.log(`=== FAILED (${error.message})`)
  process.exitCode = 1
}
