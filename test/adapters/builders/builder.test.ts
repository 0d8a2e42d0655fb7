import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { BuildRequest, Staging } from '../../../src/domain/environments/builder.ts'
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
  assert.ok((await bench.keepOnly(async () => false)) > 0)
  assert.equal(await bench.builder.find('release-1', CPU), null)
  bench.blobs.set('blob-model', tinyModel('one'))
  const staged: Staging[] = []
  const again = await bench.build(definition, { lock: built.lock, stage: (staging) => void staged.push(staging) })
  const bytes = tinyModel('one').length
  const facts = { modelsTotal: 1, bytesTotal: bytes }
  assert.deepEqual(staged, [
    { ...facts, modelsDone: 0, bytesDone: 0, currentModel: 'a.safetensors' },
    { ...facts, modelsDone: 0, bytesDone: bytes, currentModel: 'a.safetensors' },
    { ...facts, modelsDone: 1, bytesDone: bytes, currentModel: null },
  ])
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
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-packs-'))
  try {
    const packFolder = path.join(folder, 'packs')
    const published = path.join(folder, 'published')
    await writeFolder(path.join(packFolder, 'plain'), packFiles('Plain'))
    await writeFile(path.join(packFolder, 'zipped.zip'), zipOf(packFiles('Zipped')))
    await mkdir(path.join(published, 'glow'), { recursive: true })
    await writeFile(path.join(published, 'glow/1.0.0.zip'), registry.published[0]?.zip ?? '')
    await using bench = await openBuildBench({ packFolder, registry: { kind: 'address', address: registry.origin } })

    const glow = (registryVersion: string) => ({ name: 'Glow-Pack', id: 'glow', registryVersion })
    const definition = { customNodes: [glow('1.0.0'), { name: 'plain' }, { name: 'zipped' }] }
    const built = await bench.build(definition)
    assert.deepEqual(built.classes, { 'Glow-Pack': ['Glow100'], plain: ['Plain'], zipped: ['Zipped'] })
    assert.deepEqual(
      built.lock.packs.map(({ name, wanted, from }) => [name, wanted, from]),
      [
        ['Glow-Pack', 'glow@1.0.0', 'registry'],
        ['plain', 'plain', 'folder'],
        ['zipped', 'zipped', 'folder'],
      ],
    )
    const refuse = async (pack: { readonly name: string }, reason: RegExp, more: Partial<BuildRequest> = {}) => {
      await assert.rejects(bench.build({ customNodes: [pack] }, { releaseId: 'refused', ...more }), reason)
      assert.equal(await bench.builder.find('refused', CPU), null)
    }
    await refuse(
      glow('2.0.0'),
      /^Error: freeze: pack Glow-Pack: the registry 127\.0\.0\.1:\d+ has no glow@2\.0\.0; take/,
    )
    await refuse(glow('1.1.0'), /has withdrawn glow@1\.1\.0.*take another version/)
    await refuse(
      { name: 'absent' },
      /which has plain, zipped, has none of this name; name its repository with a commit/,
    )
    // Other bytes under the same version are not what was locked.
    registry.published.splice(0, 1, { id: 'glow', version: '1.0.0', zip: zipOf(packFiles('Evil')) })
    await refuse(glow('1.0.0'), /pack Glow-Pack: its content has changed since/, { lock: built.lock })
    await registry[Symbol.asyncDispose]()
    await refuse(glow('1.0.0'), /the registry .* cannot be reached: .*cut the release again when it answers, or name/)

    const request = { definition: { baseComfyVersion: 'v0.3.40', ...definition }, target: CPU, lock: built.lock }
    const quiet = { openBlob: () => assert.fail(), note: async () => {}, say: () => {} }
    const signal = new AbortController().signal
    await using offline = await bench.reopen({ registry: { kind: 'folder', path: published } })
    const again = await offline.build({ ...request, ...quiet, signal, releaseId: 'again' })
    assert.deepEqual(again.lock, built.lock, 'a folder in place of the registry')
    await using bare = await bench.reopen({ registry: null, packFolder: null })
    for (const pack of definition.customNodes.slice(0, 2)) {
      const one = { ...request.definition, customNodes: [pack] }
      const building = bare.build({ ...request, ...quiet, signal, definition: one, lock: null, releaseId: 'bare' })
      await assert.rejects(
        building,
        /no (?:registry|folder) of packs.*name its repository with a commit, or upload it as a zip/,
      )
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
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
    for (const [name, version, needed] of [
      ['torch', '2.9.0', 'plain'],
      ['torchvision', '0.24.0', 'torch==2.9.0'],
    ] as const) {
      const file = await writeWheel(folder, { name, version: `${version}+${variant}`, requires: [needed] })
      // As an index has it.
      const link = encodeURIComponent(path.basename(file))
      await writeFolder(path.join(folder, name), { 'index.html': `<a href="../${link}">${path.basename(file)}</a>` })
    }
  }
  await writeWheel(bench.wheels, { name: 'torch', version: '2.10.0', requires: ['plain'] })
  await writeWheel(bench.wheels, { name: 'torchvision', version: '0.25.0', requires: ['torch==2.10.0'] })
  await writeWheel(bench.wheels, { name: 'plain', version: '1.0' })
  await using server = await serveFolder(torch)
  const packages = { indexes: [], wheelFolders: [bench.wheels], torch: path.join(torch, '{variant}') }
  await using here = await bench.reopen({ packages })
  await using onOldDriver = await bench.reopen({ packages, cuda: 12 })
  await using served = await bench.reopen({ packages: { ...packages, torch: `${server.origin}/{variant}` } })
  const variantsOf = ({ baseImages }: typeof here) => [...new Set(baseImages.map((image) => image.torch))]
  assert.deepEqual(variantsOf(here), ['cu130', 'cu128', 'cpu'])
  assert.deepEqual(variantsOf(onOldDriver), ['cu128', 'cpu'])
  assert.deepEqual(variantsOf(served), ['cu130', 'cu128', 'cu126', 'cpu'])

  const build = (builder: typeof here, releaseId: string, request: Partial<BuildRequest>) =>
    builder.build({
      ...{ definition: { baseComfyVersion: 'v0.3.40' }, target: CPU, lock: null, releaseId },
      ...{ openBlob: () => assert.fail(), note: async () => {}, say: () => {}, signal: new AbortController().signal },
      ...request,
    })
  const { lock } = await build(here, 'on-cpu', {})
  assert.deepEqual(lock.torch, { variant: 'cpu', version: '2.9.0+cpu' })
  assert.match(lock.wheels, /^torchvision==0\.24\.0\+cpu/m)
  const baseImage = served.baseImages.find((image) => image.torch === 'cu128')?.id ?? ''
  const definition = { baseComfyVersion: 'v0.3.40', baseImage }
  const older = await build(served, 'served', { definition, target: NVIDIA })
  assert.deepEqual(older.lock.torch, { variant: 'cu128', version: '2.9.0+cu128' })
  // From its lock it is the same again, though another variant is the usual one.
  const remade = await build(here, 'remade', { target: NVIDIA, lock: older.lock })
  assert.deepEqual(remade.lock, older.lock)
  const newer = { ...older.lock, torch: { variant: 'cu130', version: '2.9.0+cu130' } }
  const tooNew = build(onOldDriver, 'too-new', { target: NVIDIA, lock: newer })
  await assert.rejects(tooNew, /^Error: start: the release is locked to torch for cu130, which this builder cannot get/)

  const few = path.join(bench.folder, 'few')
  await mkdir(few)
  await writeWheel(few, { name: 'plain', version: '1.0' })
  await using others = await bench.reopen({
    packages: { indexes: [], wheelFolders: [path.join(torch, 'cu130'), few], torch: null },
  })
  const wrong = build(others, 'wrong', {})
  await assert.rejects(
    wrong,
    /^Error: freeze: torch 2\.9\.0\+cu130 is for cu130, and the base image is for cpu: .*"torch" of builder/,
  )
})
