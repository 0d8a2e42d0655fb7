/**
 * What `npm test` runs: lint and format, types, then every test file. Stops at the first stage that fails. Arguments go on to
 * the test runner: files, folders or globs replace the default set, flags (`--test-name-pattern=…`) are added to it.
 *
 * A test is skipped only for want of a tool. The run ends with a list of those; with CI=true there must be none, because a test that
 * nobody runs proves nothing.
 */
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type PostgresServer, startPostgres } from '../test/support/postgres/postgres-server.ts'
import { type FileTime, listOfSkipped, type SkippedTest, type TestSummary } from './test-summary.ts'

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const ALL_TESTS = ['lib', 'engine', 'src', 'test'].map((folder) => `${folder}/**/*.test.ts`)
const ON_BOTH_STORES = ['test/e2e/jobs/**/*.test.ts', 'test/e2e/assets/**/*.test.ts', 'test/isolation/**/*.test.ts']
// Unit tests lie beside their modules. A surface that may be left out also has a folder with its tests of the whole service.
const isTestOfModule = (file: string) => /^(lib|engine|src)\//.test(file) && !file.includes('/test/')
// Ends a run that hangs, and nothing else: the slowest files start and kill whole servers, which takes minutes on a busy machine.
const TEST_TIMEOUT_MS = 900_000
// While one file waits for disk, a timer or a child process, others compute: most files leave a core idle for half of their time.
const FILES_PER_CORE = 2
const MAX_CONCURRENCY = 4
const SLOWEST_SHOWN = 20

interface Stage {
  readonly title: string
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly command: string
  readonly args: readonly string[]
}

function seconds(sinceMs: number): string {
  return `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`
}

function runStage(stage: Stage): boolean {
  console.log(`\n=== ${stage.title}`)
  const startedAt = performance.now()
  const env = { ...process.env, ...stage.env }
  const result = spawnSync(stage.command, stage.args, { cwd: project, env, stdio: ['ignore', 'inherit', 'inherit'] })
  const ok = result.status === 0
  const why = result.error?.message ?? `exit ${result.status ?? result.signal}`
  console.log(`=== ${stage.title}: ${ok ? 'ok' : `FAILED (${why})`} in ${seconds(startedAt)}`)
  return ok
}

function isDirectory(name: string): boolean {
  return statSync(path.join(project, name), { throwIfNoEntry: false })?.isDirectory() ?? false
}

interface TestSet {
  readonly title: string
  readonly env?: Readonly<Record<string, string>>
  readonly flags: readonly string[]
  readonly patterns: readonly string[]
}

function toTestSets(extra: readonly string[]): TestSet[] {
  const flags = extra.filter((arg) => arg.startsWith('-'))
  const named = extra.filter((arg) => !arg.startsWith('-'))
  const patterns = named.map((name) => (isDirectory(name) ? `${name.replace(/\/+$/, '')}/**/*.test.ts` : name))
  if (patterns.length > 0) return [{ title: 'tests', flags, patterns }]
  const files = ALL_TESTS.flatMap((pattern) => globSync(pattern, { cwd: project }))
  const { modules = [], parts = [] } = Object.groupBy(files, (file) => (isTestOfModule(file) ? 'modules' : 'parts'))
  return [
    // One process for all: starting one for each would take most of their time.
    { title: 'tests of modules', flags: ['--test-isolation=none', ...flags], patterns: modules },
    { title: 'tests of parts and of the whole', flags, patterns: parts },
    // Whoever asks over HTTP must not notice which store there is.
    { title: 'the whole on Postgres', flags, patterns: ON_BOTH_STORES, env: { ATELIER_TEST_STORE: 'postgres' } },
  ]
}

function testArguments({ flags, patterns }: TestSet, summaryFile: string): string[] {
  const concurrency = Math.min(MAX_CONCURRENCY, FILES_PER_CORE * availableParallelism())
  return [
    '--test',
    `--test-concurrency=${concurrency}`,
    `--test-timeout=${TEST_TIMEOUT_MS}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${pathToFileURL(path.join(project, 'scripts', 'test-summary.ts'))}`,
    `--test-reporter-destination=${summaryFile}`,
    ...flags,
    ...patterns,
  ]
}

function readSummary(summaryFile: string): TestSummary {
  return JSON.parse(readFileSync(summaryFile, 'utf8').trim() || '{"count":0,"files":[],"skipped":[]}') as TestSummary
}

function printSlowest(files: readonly FileTime[]): void {
  const slowest = files.toSorted((a, b) => b.ms - a.ms).slice(0, SLOWEST_SHOWN)
  if (slowest.length < 2) return
  console.log(`\n=== the slowest ${slowest.length} of ${files.length} files, each in a process of its own`)
  for (const { file, ms } of slowest) {
    console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${path.relative(project, file)}`)
  }
}

function runTests(extra: readonly string[]): boolean {
  const directory = mkdtempSync(path.join(tmpdir(), 'atelier-test-run-'))
  const files: FileTime[] = []
  const skipped: SkippedTest[] = []
  try {
    let count = 0
    for (const set of toTestSets(extra)) {
      const summaryFile = path.join(directory, 'summary')
      const args = testArguments(set, summaryFile)
      const ok = runStage({ title: set.title, command: process.execPath, args, env: set.env })
      const summary = readSummary(summaryFile)
      files.push(...summary.files)
      skipped.push(...summary.skipped)
      if (!ok) return false
      count += summary.count
    }
    if (skipped.length > 0 && process.env['CI'] === 'true') {
      console.log('=== tests: FAILED (with CI=true no test may be skipped; the list below says what is missing)')
      return false
    }
    if (count > 0) return true
    // A glob that matches nothing would pass, so a run without any test counts as failed.
    console.log('=== tests: FAILED (no test ran; check the paths given to `npm test -- …`)')
    return false
  } finally {
    printSlowest(files)
    if (skipped.length > 0) console.log(listOfSkipped(skipped, project))
    rmSync(directory, { recursive: true, force: true })
  }
}

/** One server for all files; each makes databases of its own. Without one nothing is proven, so the run fails. */
async function runTestsOnPostgres(extra: readonly string[]): Promise<boolean> {
  let server: PostgresServer
  try {
    server = await startPostgres()
  } catch (error) {
    console.log(`=== tests: FAILED (no Postgres: ${error instanceof Error ? error.message : String(error)})`)
    return false
  }
  await using _ = server
  process.env['ATELIER_TEST_POSTGRES'] = server.url
  // Reading and compiling the sources is half of what a short file does. Every process and thread of the run shares the result, and
  // so does the next run: an entry counts only for the very text that it was made of.
  process.env['NODE_COMPILE_CACHE'] ??= path.join(project, 'node_modules', '.cache', 'atelier')
  return runTests(extra)
}

async function main(extra: readonly string[]): Promise<number> {
  const startedAt = performance.now()
  const modules = path.join(project, 'node_modules')
  const colors = process.stdout.isTTY ? [] : ['--colors=off']
  const checks: Stage[] = [
    {
      title: 'lint and format',
      command: process.execPath,
      args: [path.join(modules, '@biomejs/biome/bin/biome'), 'ci', ...colors, '.'],
    },
    {
      title: 'types of the console',
      command: process.execPath,
      args: [path.join(modules, 'typescript/bin/tsc'), '-p', 'console'],
    },
    { title: 'types', command: process.execPath, args: [path.join(modules, 'typescript/bin/tsc'), '--noEmit'] },
  ]
  const ok = checks.every(runStage) && (await runTestsOnPostgres(extra))
  console.log(`\n=== ${ok ? 'everything passed' : 'FAILED'} in ${seconds(startedAt)}`)
  return ok ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2))
