import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readFile, readlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { CPU, openBuildBench, withoutUv } from '../../support/builds/bench.ts'
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
