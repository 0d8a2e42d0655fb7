/** What somebody has who was given the packed file and nothing else. */
import assert from 'node:assert/strict'
import { cpSync, globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { publint } from 'publint'
import sharp from 'sharp'
import { readConsole } from '../../deploy/image/read-console.ts'
import { spawnServer } from '../support/app/spawn-server.ts'
import { findFreePort } from '../support/network/free-port.ts'
import { findOldNode } from '../support/old-node.ts'
import { type PackedPackage, packProject, project, runIn } from './packed.ts'
import { openRegistry, readInstalled } from './registry.ts'
import { writeTypeCheck } from './released-types.ts'

const { version } = JSON.parse(readFileSync(path.join(project, 'package.json'), 'utf8')) as { version: string }

let packed: PackedPackage
let bin: string
before(() => {
  packed = packProject()
  bin = path.join(packed.folder, 'node_modules/atelier/scripts/atelier.js')
})
after(() => packed[Symbol.dispose]())

test('the packed file is named by its version and holds the program, its data and its papers, and no sources or tests', () => {
  assert.equal(path.basename(packed.file), `atelier-${version}.tgz`)
  for (const name of [
    'dist/build/program/bin.js',
    'dist/engine/graph/graph.js',
    'dist/spec/jobs-v2.openapi.json',
    'dist/console/dist/manifest.json',
    'dist/client/dist/python/atelier_client.py',
    'client/dist/index.js',
    'client/dist/admin.d.ts',
    'LICENSE',
    'dist/NOTICE',
    'dist/sbom.cdx.json',
  ]) {
    assert.ok(packed.names.includes(name), name)
  }
  const unwanted = packed.names.filter(
    (name) =>
      (/\.ts$/.test(name) && !/\.d\.ts$/.test(name) && !name.startsWith('examples/')) ||
      /(^|\/)(test|bench|node_modules)\/|\.test\./.test(name),
  )
  assert.deepEqual(unwanted, [])
})

test('every page and example that the program names to its users is in the package', () => {
  const programs = globSync('dist/build/program/*.js', { cwd: path.join(packed.folder, 'node_modules/atelier') })
  const named = programs.flatMap((file) => {
    const text = readFileSync(path.join(packed.folder, 'node_modules/atelier', file), 'utf8')
    return text.match(/(?<![\w/.-])(?:docs|examples)\/[\w/-]+\.(?:md|json|ts|ya?ml)/g) ?? []
  })
  assert.ok(named.includes('docs/accounts.md'))
  assert.deepEqual(
    [...new Set(named)].filter((name) => !packed.names.includes(name)),
    [],
  )
})

test('the list of parts names every package that an installed program needs, and the notice those inside the console', () => {
  const readPacked = (name: string) => readFileSync(path.join(packed.folder, 'node_modules/atelier/dist', name), 'utf8')
  const { components } = JSON.parse(readPacked('sbom.cdx.json')) as {
    readonly components: readonly { readonly name: string; readonly version: string; readonly scope: string }[]
  }
  const needed = [...readInstalled()].flatMap(([name, versions]) =>
    [...versions.keys()].map((each) => `${name}@${each}`),
  )
  const { packages } = JSON.parse(readPacked('console/dist/manifest.json')) as { readonly packages: readonly string[] }
  assert.ok(packages.includes('preact'), packages.join(', '))
  const listed = components
    .filter(({ scope, name }) => scope === 'required' && !packages.includes(name))
    .map((part) => `${part.name}@${part.version}`)
  assert.deepEqual([...new Set(listed)].sort(), needed.sort())
  const notice = readPacked('NOTICE')
  for (const name of packages) assert.match(notice, new RegExp(`^---- ${name} \\d`, 'm'))
  assert.match(notice, /^fastify \d\S* \(MIT\)$/m)
})

test('whoever packs the same sources elsewhere gets the same bytes', () => {
  using again = packProject()
  assert.ok(readFileSync(again.file).equals(readFileSync(packed.file)))
})

test('tools that read the package as others do find nothing wrong with it', async () => {
  const { messages } = await publint({
    pkgDir: path.join(packed.folder, 'node_modules/atelier'),
    pack: false,
    strict: true,
  })
  assert.deepEqual(messages, [])
})

test('the installed command tells its version and finds everything in place', async () => {
  assert.deepEqual(await runIn(packed.folder, [process.execPath, bin, '--version']), {
    code: 0,
    output: `${version}\n`,
  })
  const doctor = await runIn(packed.folder, [process.execPath, bin, 'doctor'])
  assert.match(doctor.output, /packages\W+\d+ dependencies in place/)
  assert.match(doctor.output, /pictures\W+sharp/)
})

test('the installed command serves, and runs a workflow with a node of the user into a picture', async () => {
  const nodes = path.join(packed.folder, 'nodes')
  cpSync(path.join(project, 'examples/nodes'), nodes, { recursive: true })
  const flags = ['--data-dir', path.join(packed.folder, 'data'), '--nodes', nodes]
  await using server = await spawnServer(flags, {}, { bin })
  assert.deepEqual(await readConsole(server.url), { page: true, missing: [] })
  const workflow = path.join(project, 'examples/vignette.json')
  const results = path.join(packed.folder, 'results')
  const run = await runIn(packed.folder, [process.execPath, bin, 'run', workflow, '--out', results], {
    ATELIER_BASE_URL: server.url,
  })
  assert.equal(run.code, 0, run.output)
  const pictures = readdirSync(results).filter((name) => name.endsWith('.png'))
  assert.ok(pictures.length > 0, run.output)
  assert.equal(readFileSync(path.join(results, pictures[0])).subarray(1, 4).toString(), 'PNG')
  assert.equal(await server.terminate(), 0)
})

test('started by a Node that is too old, the installed command runs on the one that it brought along', async (t) => {
  const old = findOldNode()
  if (old === null) return t.skip('this machine has no Node older than 24 to try it with')
  const [data, results] = [path.join(packed.folder, 'old-data'), path.join(packed.folder, 'old-results')]
  const given = { ATELIER_DATA_DIR: data, ATELIER_PORT: String(await findFreePort()) }
  const ask = (...args: readonly string[]) => runIn(packed.folder, [old, bin, ...args], given)
  const started = await ask('start')
  try {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(started.output)?.[0]
    assert.ok(started.code === 0 && url !== undefined, started.output)
    const workflow = path.join(packed.folder, 'node_modules/atelier/examples/colour-card.json')
    const run = await ask('run', workflow, '--base-url', url, '--out', results)
    assert.equal(run.code, 0, run.output)
    assert.deepEqual(readdirSync(results), ['colour-card_00001_.png'])
  } finally {
    assert.equal((await ask('stop')).code, 0)
  }
})

test('the client runs on a Node that is too old for the service', async (t) => {
  const old = findOldNode()
  if (old === null) return t.skip('this machine has no Node older than 24 to try it with')
  const lines = [
    "import { connect, getHealth } from 'atelier/client'",
    'const client = connect({ fetch: async (url) => Response.json({ asked: String(url) }) })',
    'console.log((await getHealth(client)).asked)',
  ]
  writeFileSync(path.join(packed.folder, 'client.mjs'), lines.join('\n'))
  const asked = { code: 0, output: 'http://127.0.0.1:8189/api/v2/health\n' }
  assert.deepEqual(await runIn(packed.folder, [old, 'client.mjs']), asked)
})

test('the example of the engine makes a picture in a folder that has only the package', async () => {
  cpSync(path.join(project, 'examples/engine/make-picture.ts'), path.join(packed.folder, 'make-picture.ts'))
  const made = await runIn(packed.folder, [process.execPath, 'make-picture.ts', 'pictures'])
  assert.equal(made.code, 0, made.output)
  const { width, height } = await sharp(path.join(packed.folder, made.output.trim())).metadata()
  assert.deepEqual({ width, height }, { width: 512, height: 384 })
})

test('the engine by itself, as the package that its build makes, runs a graph', async () => {
  const folder = packed.installEngine()
  const program = readFileSync(path.join(project, 'examples/engine/make-picture.ts'), 'utf8')
  writeFileSync(path.join(folder, 'make-picture.ts'), program.replace("'atelier/engine'", "'@atelier/engine'"))
  const made = await runIn(folder, [process.execPath, 'make-picture.ts', 'pictures'])
  assert.equal(made.code, 0, made.output)
  assert.equal(readFileSync(path.join(folder, made.output.trim())).subarray(1, 4).toString(), 'PNG')
})

test('a program in TypeScript finds the types of `atelier/engine`, `atelier/nodes` and `atelier/client`', async () => {
  const settings = {
    compilerOptions: { module: 'nodenext', target: 'esnext', strict: true, noEmit: true, types: ['node'] },
  }
  writeFileSync(path.join(packed.folder, 'tsconfig.json'), JSON.stringify({ ...settings, files: ['types.ts'] }))
  const lines = [
    "import { openEngine, type EngineEvent } from 'atelier/engine'",
    "import { defineNode } from 'atelier/nodes'",
    "import { connect, getBatch, type Batch } from 'atelier/client'",
    "import { getRequestStatus } from 'atelier/client/router'",
    "import { listAccounts } from 'atelier/client/admin'",
    "export const batch: Promise<Batch> = getBatch(connect(), { id: 'x' })",
    'export const others = [getRequestStatus, listAccounts]',
    '// @ts-expect-error a batch has an id',
    'void getBatch(connect())',
    'export const define: (...parts: never[]) => unknown = defineNode',
    'export async function first(graph: string): Promise<EngineEvent | null> {',
    '  await using engine = await openEngine()',
    '  for await (const event of engine.run(graph)) return event',
    '  return null',
    '}',
    '// @ts-expect-error an engine is opened with options, not with a number',
    'export const wrong = openEngine(7)',
  ]
  writeFileSync(path.join(packed.folder, 'types.ts'), `${lines.join('\n')}\n`)
  const compiler = path.join(project, 'node_modules/typescript/bin/tsc')
  assert.deepEqual(await runIn(packed.folder, [process.execPath, compiler, '-p', '.']), { code: 0, output: '' })
})

test('a program that was written for the last release compiles, unless the version says that it may not', async () => {
  const folder = path.join(packed.folder, 'released')
  const program = writeTypeCheck(folder, path.join(packed.folder, 'node_modules/atelier'), version)
  if (program === null) return
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'esnext', lib: ['esnext', 'dom'], strict: true, noEmit: true, types: ['node'] },
    allowImportingTsExtensions: true,
  }
  writeFileSync(
    path.join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: [path.basename(program)] }),
  )
  const compiler = path.join(project, 'node_modules/typescript/bin/tsc')
  assert.deepEqual(await runIn(folder, [process.execPath, compiler, '-p', '.']), { code: 0, output: '' })
})

test('`npx` runs the packed file', async () => {
  const folder = path.dirname(packed.file)
  await using registry = await openRegistry()
  const command = ['npx', '--yes', '--', path.basename(packed.file), '--version']
  const ran = await runIn(folder, command, {
    ...{ npm_config_registry: registry.url, npm_config_cache: path.join(folder, 'cache') },
    // Native code of other systems, and a Node of our own: nothing that tells a version.
    ...{ npm_config_omit: 'optional', npm_config_audit: 'false', npm_config_update_notifier: 'false' },
  })
  assert.equal(ran.code, 0, ran.output)
  assert.match(ran.output, new RegExp(`^${version.replaceAll('.', '\\.')}$`, 'm'))
})
