/** Builds whose process is killed, at each of their steps. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { CPU, openBuildBench, withoutUv } from '../../support/builds/bench.ts'
import { serveFolder } from '../../support/builds/file-server.ts'
import { packFiles, tinyModel, writeWheel, zipOf } from '../../support/builds/packages.ts'
import { waitUntil } from '../../support/wait-until.ts'

const CHILD = fileURLToPath(new URL('../../support/builds/build-child.ts', import.meta.url))
// What its log says when it gets there; at the install script and at the start of ComfyUI it stays until it is killed.
const STEPS = [
  '== freeze',
  'fetching it from',
  'installing 1 packages',
  'the script waits',
  'To see the GUI',
  '== hash',
] as const

test('a build that is killed leaves no process and nothing that is found, and the next one makes the release', {
  skip: withoutUv,
}, async () => {
  const served = await mkdtemp(path.join(tmpdir(), 'atelier-far-'))
  await writeFile(path.join(served, 'far.safetensors'), tinyModel('far'.repeat(1_000_000)))
  await using server = await serveFolder(served)
  await using bench = await openBuildBench({ origins: [server.origin] })
  await writeWheel(bench.wheels, { name: 'lib', version: '1.0' })
  const pids = path.join(bench.folder, 'pids')
  const hold = path.join(bench.folder, 'hold')
  const script = `import os, time
open(${JSON.stringify(pids)}, "a").write(str(os.getpid()) + "\\n")
print("the script waits", flush=True)
while os.path.exists(${JSON.stringify(hold)}):
    time.sleep(0.05)
`
  await writeFile(
    path.join(bench.folder, 'pack'),
    zipOf({ ...packFiles('Stubborn', { requirements: 'lib' }), 'install.py': script }),
  )
  await writeFile(path.join(bench.folder, 'model'), tinyModel('kept'))
  const definition = {
    baseComfyVersion: 'v0.3.40',
    customNodes: [{ name: 'stubborn', blobId: 'pack' }],
    models: [
      { type: 'vae', filename: 'v.safetensors', blobId: 'model' },
      { type: 'loras', filename: 'far.safetensors', sourceUri: `${server.origin}/far.safetensors` },
    ],
  }
  const parts = path.join(bench.folder, 'builder/models/parts')
  const partBytes = async () => {
    const names = (await readdir(parts)).filter((name) => !name.endsWith('.tag'))
    const sizes = await Promise.all(names.map(async (name) => (await stat(path.join(parts, name))).size))
    return sizes.reduce((sum, size) => sum + size, 0)
  }
  for (const step of STEPS) {
    if (step === 'the script waits') await writeFile(hold, '')
    const isFetching = step === 'fetching it from'
    // Until it was killed there, the beginning of the model comes and nothing more.
    server.holds = isFetching || step === '== freeze'
    server.cutAfter = server.holds ? 1_000_000 : null
    const child = spawn(process.execPath, [CHILD, bench.folder, JSON.stringify(definition), server.origin], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let said = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    const exited = once(child, 'exit')
    await waitUntil(
      async () => (said.includes(step) && (!isFetching || (await partBytes()) > 0)) || child.exitCode !== null,
      () => `${step} in ${said}`,
    )
    child.kill('SIGKILL')
    await exited
    assert.equal(said.includes('built'), false, `${step} was reached in time`)
    assert.equal(await bench.builder.find('release-1', CPU), null)
    for (const pid of (await readFile(pids, 'utf8').catch(() => '')).split('\n').filter(Boolean))
      await waitUntil(() => !isAlive(Number(pid)))
    if (step === 'the script waits') await rm(hold)
  }
  const ranges = server.asked.map(({ headers }) => headers.range).filter((range) => range !== undefined)
  assert.match(ranges.join(), /^bytes=[1-9]\d*-/, 'a fetch goes on where the killed one was')
  bench.blobs.set('pack', await readFile(path.join(bench.folder, 'pack')))
  bench.blobs.set('model', tinyModel('kept'))
  const built = await bench.build(definition)
  assert.deepEqual(built.classes, { stubborn: ['Stubborn'] })
  const left = await readdir(path.join(bench.folder, 'builder/releases/release-1/linux-cpu'))
  assert.equal(left.length, 2, 'the release and its mark are all that there is')
  await bench.keepOnly(async (id) => id === 'release-1')
  assert.deepEqual(await readdir(path.join(bench.folder, 'builder/scratch')), [])
  assert.ok(await bench.builder.find('release-1', CPU))
  await rm(served, { recursive: true, force: true })
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
