import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readFile, readlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import type { BuilderOptions } from '../../../src/adapters/builders/open-builder.ts'
import { CPU, openBuildBench, withoutUv } from '../../support/builds/bench.ts'
import { serveFolder } from '../../support/builds/file-server.ts'
import { packFiles, tinyModel, writeFolder, writeWheel, zipOf } from '../../support/builds/packages.ts'
import { serveRegistry } from '../../support/builds/registry-server.ts'

test('a release is an environment of its own, with everything that its packs ask for, and with nothing that was not locked', {
  skip: withoutUv,
}, async () => {
  await using bench = await openBuildBench({}, { requirements: 'corelib>=1\n' })
  await writeWheel(bench.wheels, { name: 'corelib', version: '1.5', requires: ['deeplib'] })
  await writeWheel(bench.wheels, { name: 'deeplib', version: '3.0' })
  await writeWheel(bench.wheels, { name: 'packlib', version: '2.0' })
  await writeWheel(bench.wheels, { name: 'packlib', version: '2.1' })
  const zip = zipOf(packFiles('HelloNode', { imports: ['packlib', 'corelib'], requirements: 'packlib # any\n' }))
  bench.blobs.set('blob-pack', zip)
  bench.blobs.set('blob-model', tinyModel('one'))

  const definition = {
    customNodes: [{ name: 'hello', blobId: 'blob-pack' }],
    models: [{ type: 'checkpoints', filename: 'a.safetensors', blobId: 'blob-model' }],
    pipDependencies: 'packlib==2.0\ntorch==1.0\n-e git+https://example.com/x\n',
  }
  assert.equal(await bench.builder.find('release-1', CPU), null)
  const built = await bench.build(definition)
  assert.deepEqual(built.classes, { hello: ['HelloNode'] })
  assert.match(built.lock.wheels, /corelib==1\.5 .*\n\s+--hash=sha256:[0-9a-f]{64}/)
  assert.match(built.lock.wheels, /packlib==2\.0 /)
  assert.equal(built.lock.torch.variant, 'cpu')
  assert.equal(built.lock.models[0]?.sizeBytes, tinyModel('one').length)
  assert.ok(built.sizeBytes > 0)

  const folder = await bench.builder.find('release-1', CPU)
  assert.ok(folder)
  const code = 'import packlib, corelib, deeplib; print(packlib.VERSION, corelib.VERSION, deeplib.VERSION)'
  assert.equal(execFileSync(folder.python, ['-c', code], { encoding: 'utf8' }).trim(), '2.0 1.5 3.0')
  const model = path.join(folder.comfyui, 'models/checkpoints/a.safetensors')
  assert.deepEqual(await readFile(model), tinyModel('one'))
  assert.match(await readlink(model), new RegExp(`${built.lock.models[0]?.sha256}$`))
  assert.ok(
    bench.log.some((line) => /torch belongs|belong to the base image: torch==1.0/.test(line)),
    bench.log.join('\n'),
  )

  // The same release again is the same folder, and asks for nothing.
  bench.blobs.clear()
  assert.deepEqual(await bench.build(definition), built)
  assert.deepEqual(await bench.builder.find('release-1', CPU), folder)

  // What else it was made from may be gone: the lock makes the same again from what is left.
  bench.blobs.set('blob-pack', zip)
  assert.ok((await bench.builder.keepOnly(async () => false, new Date())) > 0)
  assert.equal(await bench.builder.find('release-1', CPU), null)
  bench.blobs.set('blob-model', tinyModel('one'))
  const again = await bench.build(definition, { lock: built.lock })
  assert.deepEqual(again.lock, built.lock)
})

test('packs come from a registry by id and version, and by their name alone from the operator’s folder', {
  skip: withoutUv,
}, async () => {
  await using registry = await serveRegistry()
  const publish = (version: string, more = {}) =>
    registry.published.push({
      id: 'glow',
      version,
      zip: zipOf(packFiles(`Glow${version.replaceAll('.', '')}`)),
      ...more,
    })
  publish('1.0.0')
  publish('1.1.0', { status: 'Banned' })
  await using bench = await openBuildBench({ registry: { kind: 'address', address: registry.origin } })
  const packFolder = path.join(bench.folder, 'packs')
  await writeFolder(path.join(packFolder, 'plain'), packFiles('Plain'))
  await writeFile(path.join(packFolder, 'zipped.zip'), zipOf(packFiles('Zipped')))
  await mkdir(path.join(bench.folder, 'published/glow'), { recursive: true })
  await writeFile(path.join(bench.folder, 'published/glow/1.0.0.zip'), registry.published[0]?.zip ?? '')

  const glow = (registryVersion: string) => ({ name: 'Glow-Pack', id: 'glow', registryVersion })
  const definition = { customNodes: [glow('1.0.0'), { name: 'plain' }, { name: 'zipped' }] }
  const asked = { definition: { baseComfyVersion: 'v0.3.40', ...definition }, target: CPU, lock: null }
  const quietly = { openBlob: () => assert.fail(), note: async () => {}, say: () => {}, signal: AbortSignal.abort() }
  const signal = new AbortController().signal
  await using builder = await bench.reopen({ packFolder })
  const built = await builder.build({ ...asked, ...quietly, signal, releaseId: 'by-name' })
  assert.deepEqual(built.classes, { 'Glow-Pack': ['Glow100'], plain: ['Plain'], zipped: ['Zipped'] })
  const sources = built.lock.packs.map(({ name, wanted, from }) => [name, wanted, from])
  const expected = [
    ['Glow-Pack', 'glow@1.0.0', 'registry'],
    ['plain', 'plain', 'folder'],
    ['zipped', 'zipped', 'folder'],
  ]
  assert.deepEqual(sources, expected)

  // The same from a folder in place of the registry: what was locked is what comes.
  const path1 = path.join(bench.folder, 'published')
  await using offline = await bench.reopen({ packFolder, registry: { kind: 'folder', path: path1 } })
  const again = await offline.build({ ...asked, ...quietly, signal, lock: built.lock, releaseId: 'by-name-again' })
  assert.deepEqual(again.lock, built.lock)

  const refused = async (
    customNodes: readonly object[],
    others: Parameters<typeof bench.reopen>[0],
    reason: RegExp,
  ) => {
    await using other = await bench.reopen(others)
    const wrong = { ...asked.definition, customNodes: customNodes as typeof definition.customNodes }
    const building = other.build({ ...asked, ...quietly, signal, definition: wrong, releaseId: 'refused' })
    await assert.rejects(building, reason)
    assert.equal(await other.find('refused', CPU), null)
  }
  const otherwise = /name its repository with a commit, or upload it as a zip/
  await refused(
    [glow('2.0.0')],
    {},
    /^Error: freeze: pack Glow-Pack: the registry 127\.0\.0\.1:\d+ has no glow@2\.0\.0/,
  )
  await refused([glow('1.1.0')], {}, /has withdrawn glow@1\.1\.0.*take another version/)
  await refused([glow('1.0.0')], { registry: null }, otherwise)
  await refused([{ name: 'plain' }], { packFolder: null }, otherwise)
  await refused(
    [{ name: 'absent' }],
    { packFolder },
    /which has plain, zipped, has none of this name; name its repository/,
  )
  await registry[Symbol.asyncDispose]()
  await refused(
    [glow('1.0.0')],
    {},
    /the registry .* cannot be reached: .*cut the release again when it answers, or name/,
  )
})

test('torch comes in the variant of the base image from where the operator says, whatever else has a newer one', {
  skip: withoutUv,
}, async () => {
  const NVIDIA = { os: 'linux', gpu: 'nvidia' } as const
  await using bench = await openBuildBench({ targets: [NVIDIA, CPU] }, { requirements: 'torch\ntorchvision\nplain\n' })
  const torch = path.join(bench.folder, 'torch')
  for (const variant of ['cpu', 'cu128', 'cu130', 'notes']) {
    const folder = path.join(torch, variant)
    await mkdir(folder, { recursive: true })
    await writeWheel(folder, { name: 'torch', version: `2.9.0+${variant}`, requires: ['plain'] })
    await writeWheel(folder, { name: 'torchvision', version: `0.24.0+${variant}`, requires: ['torch==2.9.0'] })
    // As an index has it.
    for (const [name, version] of [
      ['torch', '2.9.0'],
      ['torchvision', '0.24.0'],
    ]) {
      const file = `${name}-${version}+${variant}-py3-none-any.whl`
      await writeFolder(path.join(folder, name ?? ''), {
        'index.html': `<a href="../${encodeURIComponent(file)}">${file}</a>`,
      })
    }
  }
  await writeWheel(bench.wheels, { name: 'torch', version: '2.10.0', requires: ['plain'] })
  await writeWheel(bench.wheels, { name: 'torchvision', version: '0.25.0', requires: ['torch==2.10.0'] })
  await writeWheel(bench.wheels, { name: 'plain', version: '1.0' })
  await using server = await serveFolder(torch)
  const packages = { indexes: [], wheelFolders: [bench.wheels] }
  const ids = async (more: Parameters<typeof bench.reopen>[0]) => {
    await using builder = await bench.reopen(more)
    return [...new Set(builder.baseImages.map(({ id }) => id.replace(/-py\d+$/, '')))]
  }
  const own = { ...packages, torch: path.join(torch, '{variant}') }
  assert.deepEqual(await ids({ packages: own }), ['cuda130', 'cuda128', 'cpu'])
  assert.deepEqual(await ids({ packages: own, cuda: 12 }), ['cuda128', 'cpu'])

  const build = async (
    given: BuilderOptions['packages'],
    request: Partial<Parameters<typeof bench.builder.build>[0]>,
    cuda = 13,
  ) => {
    await using builder = await bench.reopen({ packages: given, cuda })
    return builder.build({
      ...{ definition: { baseComfyVersion: 'v0.3.40' }, target: CPU, lock: null, releaseId: 'torch' },
      ...{ openBlob: () => assert.fail(), note: async () => {}, say: () => {}, signal: new AbortController().signal },
      ...request,
    })
  }
  const { lock } = await build(own, {})
  assert.deepEqual(lock.torch, { variant: 'cpu', version: '2.9.0+cpu' })
  assert.match(lock.wheels, /^torchvision==0\.24\.0\+cpu/m)
  const served = { ...packages, torch: `${server.origin}/{variant}` }
  const [image] = bench.builder.baseImages.filter(({ id }) => id.startsWith('cuda128-'))
  const definition = { baseComfyVersion: 'v0.3.40', baseImage: image?.id ?? '' }
  const older = await build(served, { definition, target: NVIDIA })
  assert.deepEqual(older.lock.torch, { variant: 'cu128', version: '2.9.0+cu128' })
  // From its lock it is the same again, though another variant is the usual one; on a machine that does not run it, it is refused.
  const remade = await build(own, { definition: {}, target: NVIDIA, lock: older.lock, releaseId: 'torch-again' })
  assert.deepEqual(remade.lock, older.lock)
  const onOld = build(own, { target: NVIDIA, lock: older.lock, releaseId: 'torch-on-old' }, 11)
  await assert.rejects(onOld, /^Error: start: the builder has no torch for linux\/nvidia: its driver is too old/)
  const newest = await build(own, { target: NVIDIA, releaseId: 'torch-newest' })
  const tooNew = build(own, { target: NVIDIA, lock: newest.lock, releaseId: 'torch-too-new' }, 12)
  await assert.rejects(tooNew, /start: the release is locked to torch for cu130, which this builder cannot get/)

  const few = path.join(bench.folder, 'few')
  await mkdir(few)
  await writeWheel(few, { name: 'plain', version: '1.0' })
  const others = { indexes: [], wheelFolders: [path.join(torch, 'cu130'), few], torch: null }
  const wrong = build(others, { releaseId: 'torch-wrong' })
  await assert.rejects(
    wrong,
    /^Error: freeze: torch 2\.9\.0\+cu130 is for cu130, and the base image is for cpu: .*"torch" of builder/,
  )
})
