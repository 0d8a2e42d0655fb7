/**
 * Optional surfaces can really be left out: a copy of the project without them compiles, starts, and answers on the other
 * surfaces. Their tests are in their folders, so nothing else has to be removed but those of the console's page.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { project, readSources } from './sources.ts'

const LEFT_OUT = ['legacy-v1', 'console', 'partner-nodes', 'mcp']
const NEEDED = [
  'engine',
  'exports',
  'lib',
  'src',
  'test',
  'bench',
  'examples',
  'scripts',
  'spec',
  'models',
  'migrations',
  'deploy',
  'tsconfig.json',
  'package.json',
]

let copy: string
before(() => {
  copy = mkdtempSync(path.join(tmpdir(), 'atelier-left-out-'))
  for (const name of NEEDED) cpSync(path.join(project, name), path.join(copy, name), { recursive: true })
  symlinkSync(path.join(project, 'node_modules'), path.join(copy, 'node_modules'))
  for (const folder of LEFT_OUT) rmSync(path.join(copy, 'src/surfaces', folder), { recursive: true, force: true })
  // The page is a house of its own, which is left out with its surface; its tests import its pure code.
  rmSync(path.join(copy, 'test/console'), { recursive: true, force: true })
})
after(() => rmSync(copy, { recursive: true, force: true }))

test('nothing imports a surface that may be left out', () => {
  const isInside = (file: string) => LEFT_OUT.some((folder) => file.startsWith(`src/surfaces/${folder}/`))
  const importers = readSources(
    'engine/**/*.ts',
    'src/**/*.ts',
    'test/**/*.ts',
    'bench/**/*.ts',
    'scripts/**/*.ts',
  ).filter(({ file, imports }) => !isInside(file) && imports.some((to) => to.file !== null && isInside(to.file)))
  assert.deepEqual(
    importers.map(({ file }) => file),
    [],
  )
})

test('the project compiles without it', () => {
  const compiler = path.join(project, 'node_modules/typescript/bin/tsc')
  execFileSync(process.execPath, [compiler, '--noEmit', '-p', copy], { stdio: 'pipe' })
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
