/**
 * Which tests belong to which run, and which of them share a process.
 *
 * `npm test` takes every file that is not in `LEFT_TO_ALL`; it must stay below four minutes on two cores, so it has no Postgres, no
 * browser and no process that is started or killed. `npm run test:all` takes every file. A new test is part of both unless it is listed.
 */
import { globSync, statSync } from 'node:fs'
import path from 'node:path'

/** Left to `npm run test:all`, and why: what the tests need, or that they take minutes. The longest come first, so that they start first. */
const LEFT_TO_ALL: readonly (readonly [pattern: string, why: string])[] = [
  ['test/e2e/fleet/**', 'whole services'],
  ['test/crash/**', 'kills processes'],
  ['test/console/*', 'a browser'],
  ['test/deploy/**', 'images, proxies and judges of deployment files'],
  ['test/docs/pages.test.ts', 'runs the commands of every page'],
  ['test/examples/examples.test.ts', 'asks whole services for everything, in three languages'],
  ['test/conformance/**', 'hundreds of generated requests'],
  ['test/e2e/cluster/**', 'Postgres and processes'],
  ['test/package/**', 'packs and installs the package'],
  ['test/chaos/chaos.test.ts', 'Postgres and processes that are killed'],
  ['engine/test/{runs,custom,media,parity}/**', 'large pictures, videos and the threads of a whole engine'],
  ['test/hostile/**', 'whole services that are starved'],
  ['test/e2e/{router,service,sdk,processes,comfyui}/**', 'whole services'],
  ['test/e2e/{jobs,assets}/**', 'whole services, on both stores'],
  ['test/e2e/deployments/**', 'processes that are started and killed'],
  ['test/e2e/endpoints/doors.test.ts', 'processes'],
  ['test/isolation/**', 'whole services, on both stores'],
  ['test/comfyui-frontend/**', 'a browser'],
  ['test/adapters/store/postgres/**', 'Postgres'],
  ['test/adapters/store/{transfer*,described-tables.test.ts}', 'Postgres'],
  ['test/adapters/store/sqlite/kill.test.ts', 'kills processes'],
  ['test/adapters/blobs/s3*', 'Postgres'],
  ['test/adapters/bus/postgres-notify.test.ts', 'Postgres'],
  ['test/adapters/bus/nats/**', 'a server of NATS'],
  ['test/adapters/comfyui-engine/supervision.test.ts', 'kills processes'],
  ['test/domain/assets/direct-upload.test.ts', 'Postgres'],
  ['test/accounts/limits.test.ts', 'kills processes'],
  ['test/adapters/builders/{bad,killed}-builds.test.ts', 'makes dozens of environments, and kills processes'],
  ['test/support/**', 'Postgres'],
  ['test/architecture/left-out.test.ts', 'starts a copy of the whole from its sources'],
  ['test/cli/**', 'processes'],
  ['src/surfaces/partner-nodes/test/kill.test.ts', 'kills processes'],
]

/** In a process of their own: they measure its memory, change what belongs to the whole process, or take minutes by themselves. */
const ALONE = [
  'test/{crash,chaos,package,conformance}/**',
  'test/deploy/{image-folder,restore}.test.ts',
  'test/docs/pages.test.ts',
  'test/examples/examples.test.ts',
  'test/e2e/fleet/{faults,joined-faults,sick-servers}.test.ts',
  'test/e2e/service/hot-path.test.ts',
  'test/console/{accessible,tasks}.test.ts',
  'test/hostile/{data-directory,others-wait,turns}.test.ts',
  'engine/test/{runs,custom}/**',
]

/** Whoever asks over HTTP must not notice which store there is: these run a second time on Postgres. */
const ON_BOTH_STORES = ['test/e2e/jobs/**', 'test/e2e/assets/**', 'test/isolation/**']

/** But not these: they refuse before anything is stored, or look at what engines and files make of it. */
const ON_ONE_STORE = [
  'test/e2e/jobs/{absent-classes,convert,outputs,reuse-bytes,submit-refusals,tracebacks,url-files}.test.ts',
  'test/e2e/assets/{input-folders,models,output-rights,transfer-gc}.test.ts',
]

const EVERYTHING = ['lib', 'engine', 'src', 'test'].map((folder) => `${folder}/**`)
const FILES_PER_PROCESS = 16
// Starting a process takes longer than the tests of a module.
const MODULES_PER_PROCESS = 80

/** Test files that run one after the other in one process. */
export interface Batch {
  readonly files: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export class NoSuchTests extends Error {}

export function quickBatches(project: string): Batch[] {
  const leftOut = new Set(LEFT_TO_ALL.flatMap(([pattern]) => testsOf(project, pattern)))
  return gather(
    project,
    everyTest(project).filter((file) => !leftOut.has(file)),
  )
}

export function allBatches(project: string): Batch[] {
  const slow = [...new Set(LEFT_TO_ALL.flatMap(([pattern]) => testsOf(project, pattern)))]
  const onOne = new Set(ON_ONE_STORE.flatMap((pattern) => testsOf(project, pattern)))
  const onPostgres = ON_BOTH_STORES.flatMap((pattern) => testsOf(project, pattern)).filter((file) => !onOne.has(file))
  const again = gather(project, onPostgres).map(({ files }) => ({ files, env: { ATELIER_TEST_STORE: 'postgres' } }))
  return [...gather(project, slow), ...again, ...quickBatches(project)]
}

/** Of files, folders and globs. */
export function namedBatches(project: string, names: readonly string[]): Batch[] {
  const files = names.flatMap((name) => {
    const isFolder = statSync(path.join(project, name), { throwIfNoEntry: false })?.isDirectory() ?? false
    return testsOf(project, isFolder ? `${name.replace(/\/+$/, '')}/**` : name)
  })
  return gather(project, [...new Set(files)])
}

function everyTest(project: string): string[] {
  return EVERYTHING.flatMap((pattern) => testsOf(project, pattern))
}

/** A pattern without any test is an error: it would leave out nothing, unseen. */
function testsOf(project: string, pattern: string): string[] {
  const found = globSync(pattern, { cwd: project }).filter((file) => file.endsWith('.test.ts'))
  if (found.length === 0) throw new NoSuchTests(`no test file matches ${pattern}`)
  return found.sort()
}

/** Tests lie beside their modules; a surface or a house that may be left out also has a folder `test` with its tests of the whole. */
const isTestOfModule = (file: string) => /^(lib|engine|src)\//.test(file) && !file.includes('/test/')

function gather(project: string, files: readonly string[]): Batch[] {
  const alone = new Set(ALONE.flatMap((pattern) => testsOf(project, pattern)))
  const kinds = Object.groupBy(files, (file) => {
    if (alone.has(file)) return 'alone'
    return isTestOfModule(file) ? 'modules' : 'shared'
  })
  return [
    ...chunks(kinds.alone ?? [], 1),
    ...chunks(kinds.shared ?? [], FILES_PER_PROCESS),
    ...chunks(kinds.modules ?? [], MODULES_PER_PROCESS),
  ]
}

function chunks(files: readonly string[], most: number): Batch[] {
  const count = Math.ceil(files.length / most)
  const size = Math.ceil(files.length / count)
  return Array.from({ length: count }, (_, index) => ({ files: files.slice(index * size, (index + 1) * size) }))
}
