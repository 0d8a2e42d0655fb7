import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFile, readlink } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { CPU, openBuildBench, withoutUv } from '../../support/builds/bench.ts'
import { packFiles, tinyModel, writeWheel, zipOf } from '../../support/builds/packages.ts'

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
