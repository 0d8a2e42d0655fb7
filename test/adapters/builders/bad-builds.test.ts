/** What can be wrong with a build, each told with what to do, and nothing of it left behind. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { BuildFailure } from '../../../src/domain/environments/builder.ts'
import type { BuildDefinition, DefinedModel } from '../../../src/domain/environments/definition.ts'
import type { ReleaseLock } from '../../../src/domain/environments/lock.ts'
import { type BuildBench, CPU, openBuildBench, withoutUv } from '../../support/builds/bench.ts'
import { type FileServer, serveFolder } from '../../support/builds/file-server.ts'
import { packFiles, tinyModel, writeRepository, writeWheel, zipOf } from '../../support/builds/packages.ts'
import { type RawEntry, rawZip } from '../../support/builds/raw-zip.ts'

describe('a build that cannot be made', { skip: withoutUv }, () => {
  let bench: BuildBench
  let server: FileServer
  let commit = ''

  before(async () => {
    const models = path.join(await mkdtemp(path.join(tmpdir(), 'atelier-served-')), 'served')
    await mkdir(models, { recursive: true })
    served = models
    commit = await writeRepository(path.join(models, 'pack'), packFiles('GitNode'))
    server = await serveFolder(models)
    bench = await openBuildBench({
      origins: [server.origin],
      headers: new Map([['127.0.0.1', { authorization: 'Bearer hush-hush-hush' }]]),
    })
    await writeWheel(bench.wheels, { name: 'shared', version: '1.0' })
    await writeWheel(bench.wheels, { name: 'shared', version: '2.0' })
    await writeWheel(bench.wheels, { name: 'fine', version: '1.0' })
  })
  after(async () => {
    await bench[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
    await rm(path.dirname(served), { recursive: true, force: true })
  })
  let served = ''

  async function fails(definition: BuildDefinition, releaseId = 'bad'): Promise<string> {
    bench.log.length = 0
    const failure = await bench.build(definition, { releaseId }).then(
      () => assert.fail('it was made'),
      (error: unknown) => error,
    )
    assert.ok(failure instanceof BuildFailure, String((failure as Error).stack))
    assert.equal(await bench.builder.find(releaseId, CPU), null)
    const left = await readdir(path.join(bench.folder, 'builder', 'releases', releaseId, 'linux-cpu')).catch(() => [])
    assert.deepEqual(left, [], 'nothing half-made is left')
    assert.deepEqual(await readdir(path.join(bench.folder, 'builder', 'scratch')), [])
    const told = [failure.message, ...bench.log].join('\n')
    assert.doesNotMatch(told, /hush-hush/)
    return failure.message
  }

  const zipped = (name: string, files: Parameters<typeof zipOf>[0]) => {
    bench.blobs.set(name, zipOf(files))
    return { name, blobId: name }
  }

  test('a pack that cannot be resolved is named', async () => {
    const packs = [
      zipped('good', packFiles('A', { requirements: 'fine' })),
      zipped('broken', packFiles('B', { requirements: 'nosuchpackage==9' })),
    ]
    assert.match(
      await fails({ customNodes: packs }),
      /^freeze: pack broken: .*cannot be had.*pipDependencies[\s\S]*nosuchpackage/,
    )
  })

  test('two packs that exclude each other are both named, whatever stands between them', async () => {
    const packs = [
      zipped('old', packFiles('A', { requirements: 'shared==1.0' })),
      zipped('fine-one', packFiles('B', { requirements: 'fine' })),
      zipped('new', packFiles('C', { requirements: 'shared>=2' })),
    ]
    assert.match(await fails({ customNodes: packs }), /^freeze: the packs old and new exclude each other; remove one/)
    // The build's own pin decides.
    await bench.build({ customNodes: packs, pipDependencies: 'shared==2.0' }, { releaseId: 'pinned' })
    assert.ok(await bench.builder.find('pinned', CPU))
  })

  test('a package that is not the locked one any more is refused by its hash', async () => {
    const pack = zipped('locked', packFiles('A', { requirements: 'changing' }))
    await writeWheel(bench.wheels, { name: 'changing', version: '1.0' })
    const { lock } = await bench.build({ customNodes: [pack] }, { releaseId: 'first' })
    await bench.keepOnly(async (id) => id === 'pinned')
    await rm(path.join(bench.folder, 'builder', 'cache'), { recursive: true, force: true })
    await writeWheel(bench.wheels, { name: 'changing', version: '1.0', code: 'EVIL = True' })
    const failure = await bench
      .build({ customNodes: [pack] }, { releaseId: 'first', lock })
      .catch((error: unknown) => error as Error)
    assert.ok(failure instanceof BuildFailure)
    assert.match(failure.message, /^assemble: changing==1\.0 is not the one that was locked: its hash is another/)
  })

  test('a pack whose import fails is told with its module and the last lines', async () => {
    const message = await fails({
      customNodes: [
        zipped('good', packFiles('A')),
        zipped('bad-import', packFiles('B', { imports: ['nowhere_to_be_found'] })),
      ],
    })
    assert.match(
      message,
      /^validate: pack bad-import: its import failed: module custom_nodes\.bad-import: No module named 'nowhere_to_be_found'[\s\S]*Traceback[\s\S]*import nowhere_to_be_found/,
    )
  })

  test('a class that a pack promises and does not bring is missed', async () => {
    const files = {
      '__init__.py': 'from .nodes import NODE_CLASS_MAPPINGS\nNODE_CLASS_MAPPINGS = {}\n',
      'nodes.py': 'NODE_CLASS_MAPPINGS = {"Promised": object}\n',
    }
    const kept = {
      ...files,
      '__init__.py': 'from .nodes import NODE_CLASS_MAPPINGS\nNODE_CLASS_MAPPINGS.pop("Promised")\n',
    }
    assert.match(
      await fails({ customNodes: [zipped('empty-hands', kept)] }),
      /^validate: pack empty-hands: ComfyUI does not list Promised/,
    )
  })

  test('a pack that ends the server is blamed', async () => {
    const message = await fails({
      customNodes: [zipped('bomb', { '__init__.py': 'import sys\nprint("File custom_nodes/bomb/x")\nsys.exit(3)\n' })],
    })
    assert.match(
      message,
      /^validate: ComfyUI does not start in the new environment, at pack bomb: it ended with code 3/,
    )
  })

  test('an install script runs in the environment; one that fails, or changes what was locked, fails the build', async () => {
    const script =
      'import sys, pathlib\nassert sys.prefix.endswith("venv"), sys.prefix\npathlib.Path("made.txt").write_text("x")\n'
    const files = { ...packFiles('A'), 'install.py': script }
    await bench.build({ customNodes: [zipped('scripted', files)] }, { releaseId: 'scripted' })
    const folder = await bench.builder.find('scripted', CPU)
    assert.ok((await readdir(path.join(folder?.comfyui ?? '', 'custom_nodes/scripted'))).includes('made.txt'))
    const failing = { ...packFiles('A'), 'install.py': 'print("the reason"); raise SystemExit(4)\n' }
    assert.match(
      await fails({ customNodes: [zipped('failing', failing)] }),
      /^assemble: pack failing: its install script failed[\s\S]*code 4[\s\S]*the reason/,
    )
    const rename =
      'import pathlib, shared\nfor info in pathlib.Path(shared.__file__).parent.glob("shared-*.dist-info"):\n  meta = info / "METADATA"\n  meta.write_text(meta.read_text().replace("1.0", "2.0"))\n  info.rename(info.parent / "shared-2.0.dist-info")\n'
    const greedy = { ...packFiles('A', { requirements: 'shared==1.0' }), 'install.py': rename }
    assert.match(
      await fails({ customNodes: [zipped('greedy', greedy)] }),
      /^assemble: the install script of pack greedy has shared 2\.0 where the lock says 1\.0/,
    )
  })

  test('what a script does to the packages of its release reaches no other release', async () => {
    const script = 'import fine, pathlib\npathlib.Path(fine.__file__).write_text("VERSION = 0")\n'
    const vandal = { ...packFiles('Vandal', { requirements: 'fine' }), 'install.py': script }
    await bench.build({ customNodes: [zipped('vandal', vandal)] }, { releaseId: 'vandal' })
    const careful = packFiles('Careful', { requirements: 'fine' })
    const files = { ...careful, '__init__.py': `import fine\nassert fine.VERSION == "1.0"\n${careful['__init__.py']}` }
    await bench.build({ customNodes: [zipped('careful', files)] }, { releaseId: 'careful' })
  })

  test('zips that lead out, lie, link or are none are refused', async () => {
    const evil: Record<string, readonly RawEntry[]> = {
      slip: [{ name: '../../evil.py', data: 'x' }],
      absolute: [{ name: '/tmp/evil.py', data: 'x' }],
      backslash: [{ name: '..\\evil.py', data: 'x' }],
      link: [{ name: 'link', data: '/etc/passwd', mode: 0o120777 }],
      bomb: [{ name: '__init__.py', data: Buffer.alloc(1_000_000), isDeflated: true, says: { sizeBytes: 10 } }],
      huge: Array.from({ length: 3 }, (_, index) => ({
        name: `${index}.py`,
        data: 'x',
        says: { sizeBytes: 0xfffffff0 },
      })),
      damaged: [{ name: '__init__.py', data: 'x', says: { crc: 7 } }],
      twice: [
        { name: 'a.py', data: 'x' },
        { name: 'A.py', data: 'y' },
      ],
      'file-and-folder': [
        { name: 'a', data: 'x' },
        { name: 'a/b.py', data: 'y' },
      ],
    }
    for (const [name, entries] of Object.entries(evil)) {
      bench.blobs.set(name, rawZip(entries))
      assert.match(
        await fails({ customNodes: [{ name, blobId: name }] }),
        new RegExp(`^freeze: pack ${name}: its zip is not taken: `),
      )
    }
    bench.blobs.set('text', Buffer.from('this is no zip'))
    assert.match(await fails({ customNodes: [{ name: 'text', blobId: 'text' }] }), /no zip archive/)
  })

  test('a pack from git is taken by its commit; whatever git could be tricked with is refused', async () => {
    const repository = `${server.origin}/pack/.git`
    const { lock } = await bench.build(
      { customNodes: [{ name: 'from-git', repository, gitRef: 'main' }] },
      { releaseId: 'git' },
    )
    assert.equal(lock.packs[0]?.commit, commit)
    const refused: [BuildDefinition['customNodes'], RegExp][] = [
      [[{ name: 'p', repository: 'ext::sh -c id' }], /https address/],
      [[{ name: 'p', repository: 'file:///etc' }], /https address/],
      [[{ name: 'p', repository: 'ssh://git@example.com/x' }], /https address/],
      [[{ name: 'p', repository: 'https://me:sesame@example.com/x' }], /user name or password/],
      [[{ name: 'p', repository: 'https://127.0.0.1/x' }], /no public address/],
      [[{ name: 'p', repository: '--upload-pack=id' }], /https address/],
      [[{ name: 'p', repository, gitRef: '--upload-pack=id' }], /no name of a branch/],
      [[{ name: 'p', repository, gitRef: 'main:x' }], /no name of a branch/],
      [[{ name: 'p', repository, gitRef: 'missing' }], /has no branch or tag missing/],
      [[{ name: 'p', repository, commit: '1'.repeat(40) }], /has no commit 1111/],
      [[{ name: 'p', repository: `${server.origin}/gone` }], /cannot be read/],
      [[{ name: '../p', repository }], /^start: pack \.\.\/p: its name cannot be/],
    ]
    for (const [customNodes, pattern] of refused) assert.match(await fails({ customNodes: customNodes ?? [] }), pattern)
  })

  test('a model comes with what the operator gives its host, goes on after a cut, and must have its hash', async () => {
    const bytes = tinyModel('served'.repeat(500_000))
    await writeFile(path.join(served, 'm.safetensors'), bytes)
    const model: DefinedModel = {
      type: 'loras',
      filename: 'm.safetensors',
      sourceUri: `${server.origin}/m.safetensors?token=hush-hush-query`,
    }
    server.cutAfter = 1_000_000
    server.asked.length = 0
    const { lock } = await bench.build({ models: [model] }, { releaseId: 'model' })
    server.cutAfter = null
    assert.equal(lock.models[0]?.sha256, createHash('sha256').update(bytes).digest('hex'))
    assert.equal(server.asked[0]?.headers.authorization, 'Bearer hush-hush-hush')
    assert.match(server.asked[1]?.headers.range ?? '', /^bytes=[1-9]\d*-$/)
    const wrong = { ...model, sha256: 'a'.repeat(64) }
    assert.match(
      await fails({ models: [wrong] }),
      /^freeze: model loras\/m\.safetensors: its sha256 is [0-9a-f]{64}, and a{64} was wanted/,
    )
    // What an address gave at first it must give again, even when the model itself is gone.
    await bench.keepOnly(async () => false)
    await writeFile(path.join(served, 'm.safetensors'), tinyModel('another'))
    assert.match(await fails({ models: [model] }), /the file was changed where it lies/)
    await rm(path.join(served, 'm.safetensors'))
    assert.match(await fails({ models: [model] }), /has it no longer \(404\); give another address, or upload it/)
    assert.match(
      await fails({ models: [{ ...model, filename: 'm.ckpt' }] }),
      /^start: model loras\/m\.ckpt: .*weightPickles/,
    )
    assert.match(await fails({ models: [{ ...model, type: '../x' }] }), /leads elsewhere/)
    await writeFile(path.join(served, 'fake.safetensors'), 'this is not what its name says, at all')
    const fake = { type: 'loras', filename: 'fake.safetensors', sourceUri: `${server.origin}/fake.safetensors` }
    assert.match(await fails({ models: [fake] }), /the file is not what its name says/)
    for (const inner of [
      'https://127.0.0.1/x.safetensors',
      'http://example.com/x.safetensors',
      'https://169.254.169.254/x.safetensors',
    ])
      assert.match(await fails({ models: [{ ...model, sourceUri: inner }] }), /is refused/)
  })

  test('an uploaded model that is gone fails the build, and nothing else', async () => {
    const models: DefinedModel[] = [{ type: 'vae', filename: 'gone.safetensors', blobId: 'gone' }]
    const openBlob = () => Promise.reject(new BuildFailure('freeze', 'the uploaded file gone is gone'))
    await assert.rejects(bench.build({ models }, { releaseId: 'gone', openBlob }), /the uploaded file gone is gone/)
  })

  test('a model that names no source is the one in a folder of models, as it was when the release was frozen', async () => {
    const models: DefinedModel[] = [{ type: 'loras/own', filename: 'mine.safetensors' }]
    assert.match(await fails({ models }), /^freeze: model loras\/own\/mine\.safetensors: .*"models" of builder/)
    const [empty, full] = [path.join(bench.folder, 'empty'), path.join(bench.folder, 'full')]
    await mkdir(path.join(full, 'loras/own'), { recursive: true })
    const file = path.join(full, 'loras/own/mine.safetensors')
    await writeFile(file, tinyModel('mine'))
    await using builder = await bench.reopen({ modelFolders: [empty, full] })
    const build = (lock: ReleaseLock | null = null) => bench.build({ models }, { releaseId: 'folder', lock, builder })
    const { lock } = await build()
    const [locked] = lock.models
    assert.deepEqual([locked?.from, locked?.sizeBytes], ['fleet', tinyModel('mine').length])
    const made = await builder.find('folder', CPU)
    assert.deepEqual(
      await readFile(path.join(made?.comfyui ?? '', 'models/loras/own/mine.safetensors')),
      tinyModel('mine'),
    )
    await bench.keepOnly(async () => false)
    await writeFile(file, tinyModel('changed'))
    await assert.rejects(build(lock), /its sha256 is .* and .* was wanted/)
    await rm(file)
    await assert.rejects(build(lock), /none of the builder's folders of models has it/)
  })

  test('nothing is kept of a model that is larger than any that is taken', async () => {
    await writeFile(path.join(served, 'huge.safetensors'), tinyModel('huge'.repeat(500_000)))
    const models = [{ type: 'loras', filename: 'huge.safetensors', sourceUri: `${server.origin}/huge.safetensors` }]
    const parts = () => readdir(path.join(bench.folder, 'builder/models/parts'))
    const before = await parts()
    server.cutAfter = 300_000
    await fails({ models })
    server.cutAfter = null
    assert.ok((await parts()).length > before.length)
    await using strict = await bench.reopen({ maxModelBytes: 1000 })
    await assert.rejects(bench.build({ models }, { builder: strict }), /at most 1000 are taken/)
    assert.deepEqual(await parts(), before)
  })

  test('a download that breaks again and again goes on with the next build, also when the builder tidies in between', async () => {
    await writeFile(path.join(served, 'long.safetensors'), tinyModel('long'.repeat(3_000_000)))
    const sourceUri = `${server.origin}/long.safetensors`
    const models = [{ type: 'loras', filename: 'long.safetensors', sourceUri }]
    server.cutAfter = 1_000_000
    assert.match(await fails({ models }), /^freeze: model loras\/long\.safetensors: .* cut the release again to go on/)
    server.cutAfter = null
    const tidied = { finished: new Date('9999-01-01'), fetched: new Date(Date.now() - 60_000) }
    await bench.builder.keepOnly(async () => false, tidied)
    server.asked.length = 0
    await bench.build({ models }, { releaseId: 'long' })
    assert.match(server.asked[0]?.headers.range ?? '', /^bytes=[1-9]\d*-$/)
    await using small = await bench.reopen({ maxBytes: 1 })
    assert.ok((await small.keepOnly(async () => false, tidied)) > 12_000_000, 'a full folder does not wait')
  })

  test('a Python, a version or a target that is not here is told with what there is', async () => {
    assert.match(
      await fails({ baseImage: 'cpu-py207' }),
      /^start: the base image cpu-py207 cannot be made here: there is no Python 2\.07|2\.7/,
    )
    await writeFile(path.join(bench.comfyui, 'comfyui_version.py'), '__version__ = "0.3.40"\n')
    assert.match(
      await fails({ baseComfyVersion: 'v0.3.41' }),
      /the builder has version 0\.3\.40 alone, and the build wants v0\.3\.41/,
    )
    await rm(path.join(bench.comfyui, 'comfyui_version.py'))
    await assert.rejects(
      bench.build({}, { target: { os: 'linux', gpu: 'nvidia' } }),
      /cannot make linux\/nvidia; it makes linux\/cpu/,
    )
  })

  test('an account takes no more of the disk than it may, whether for packages, models or what scripts write', async () => {
    const writes = { ...packFiles('A'), 'install.py': 'open("large", "w").write("x" * 300_000)\n' }
    bench.blobs.set('large-model', tinyModel('m'.repeat(300_000)))
    const model = { type: 'vae', filename: 'm.safetensors', blobId: 'large-model' }
    const [before] = [{ releaseId: 'before', sizeBytes: 10_000_000, models: [] }]
    const build = (definition: BuildDefinition, maxBytes: number) =>
      bench.build(definition, { releaseId: 'quota', quota: { maxBytes, held: [before] } })
    await assert.rejects(build({}, 9_000_000), /^Error: start: the releases of this account take 10000000 bytes/)
    await assert.rejects(build({ models: [model] }, 10_200_000), /^Error: freeze: .*"max_account_size" of builder/)
    await assert.rejects(build({}, 10_000_100), /^Error: assemble: the releases of this account take/)
    const { sizeBytes } = await bench.build({}, { releaseId: 'quota-size' })
    const written = build({ customNodes: [zipped('writes', writes)] }, 10_000_000 + sizeBytes + 200_000)
    await assert.rejects(written, /^Error: hash: the releases of this account take/)
    assert.equal(await bench.builder.find('quota', CPU), null)
  })

  test('what failed builds have fetched makes room for the next build', async () => {
    const parts = path.join(bench.folder, 'builder/models/parts')
    await mkdir(parts, { recursive: true })
    await writeFile(path.join(parts, 'of-a-failed-build'), '')
    await truncate(path.join(parts, 'of-a-failed-build'), 8 * 2 ** 30)
    await using small = await bench.reopen({ maxBytes: 4 * 2 ** 30 })
    await bench.build({}, { releaseId: 'roomy', builder: small })
    assert.notEqual(await small.find('roomy', CPU), null)
    assert.deepEqual(await readdir(parts), [])
  })

  test('a folder that is full fails the build, and leaves nothing', async () => {
    await using small = await bench.reopen({ maxBytes: 1 })
    const request = { releaseId: 'full', definition: { baseComfyVersion: 'x' }, target: CPU, lock: null }
    const failure = small.build({
      ...request,
      openBlob: () => assert.fail(),
      note: async () => {},
      say: () => {},
      signal: new AbortController().signal,
    })
    await assert.rejects(failure, /^Error: start: the disk of the builder is full; delete releases/)
    assert.equal(await small.find('full', CPU), null)
  })
})
