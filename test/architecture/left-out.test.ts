/**
 * Optional surfaces can really be left out: nothing needs them, and a copy of the project without them starts and answers on the
 * other surfaces. Their tests are in their folders.
 */
import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { project, readSources } from './sources.ts'

const LEFT_OUT = [
  'legacy-v1',
  'console',
  'partner-nodes',
  'mcp',
  'images-v1',
  'chat-v1',
  'replicate-v1',
  'share',
  'deploy-v1',
  'builder-v1',
]
const NEEDED = ['engine', 'lib', 'src', 'test', 'scripts', 'spec', 'models', 'migrations', 'package.json']

let copy: string
before(() => {
  copy = mkdtempSync(path.join(tmpdir(), 'atelier-left-out-'))
  for (const name of NEEDED) cpSync(path.join(project, name), path.join(copy, name), { recursive: true })
  symlinkSync(path.join(project, 'node_modules'), path.join(copy, 'node_modules'))
  for (const folder of LEFT_OUT) rmSync(path.join(copy, 'src/surfaces', folder), { recursive: true, force: true })
})
after(() => rmSync(copy, { recursive: true, force: true }))

const isInside = (file: string) => LEFT_OUT.some((folder) => file.startsWith(`src/surfaces/${folder}/`))

// Who imports nothing of it, and for whom it declares nothing, compiles without it as it compiles with it.
test('nothing imports a surface that may be left out, nor lives by what it declares for all', () => {
  const sources = readSources(
    ...['engine', 'lib', 'src', 'test', 'bench', 'scripts', 'deploy', 'examples'].map((folder) => `${folder}/**/*.ts`),
  )
  const [inside, outside] = [
    sources.filter(({ file }) => isInside(file)),
    sources.filter(({ file }) => !isInside(file)),
  ]
  assert.deepEqual(
    outside
      .filter(({ imports }) => imports.some((to) => to.file !== null && isInside(to.file)))
      .map(({ file }) => file),
    [],
  )
  assert.deepEqual(
    inside.filter(({ text }) => /^\s*declare (global|module)\b/m.test(text)).map(({ file }) => file),
    [],
  )
})

test('the service runs without it, and its routes are not there', async () => {
  assert.equal(existsSync(path.join(copy, 'src/surfaces/legacy-v1')), false)
  const { startTestApp } = (await import(
    pathToFileURL(path.join(copy, 'test/support/app/start-app.ts')).href
  )) as typeof import('../support/app/start-app.ts')
  await using app = await startTestApp()
  assert.equal((await fetch(`${app.url}/api/v2/health`)).status, 200)
  assert.equal((await fetch(`${app.url}/prompt`)).status, 404)
})
