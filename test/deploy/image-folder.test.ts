/**
 * What is in the image, built by the Dockerfile's own steps in plain folders and used as a user does. `npm ci` links the packages that are
 * installed here instead of fetching them; deploy/check-image.ts does the whole of it, as root.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { buildStages } from '../../deploy/image/build-stages.ts'
import { readConsole } from '../../deploy/image/read-console.ts'
import { spawnServer } from '../support/app/spawn-server.ts'
import { project, readImage } from './files.ts'

const work = mkdtempSync(path.join(tmpdir(), 'atelier-image-folder-'))
let root: string
after(() => rmSync(work, { recursive: true, force: true }))

/** Folders with the packages of the lockfile as links: `all`, and `run` without those for development. */
function linkPackages(): void {
  const lock = JSON.parse(readFileSync(path.join(project, 'package-lock.json'), 'utf8')) as {
    readonly packages: Record<string, { readonly dev?: boolean; readonly optional?: boolean }>
  }
  const places = Object.keys(lock.packages).filter((place) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(place))
  for (const place of places) {
    const isForBoth = lock.packages[place]?.dev !== true
    for (const folder of isForBoth ? ['all', 'run'] : ['all']) linkPackage(place, path.join(work, folder, place))
  }
  for (const folder of ['all', 'run']) writeFileSync(path.join(work, folder, 'node_modules/.package-lock.json'), '{}')
}

function linkPackage(place: string, target: string): void {
  mkdirSync(path.dirname(target), { recursive: true })
  if (place.startsWith('node_modules/node-linux-')) {
    // A step moves the runtime out of its package: a link to the folder would let it take away ours.
    mkdirSync(path.join(target, 'bin'), { recursive: true })
    symlinkSync(process.execPath, path.join(target, 'bin/node'))
  } else symlinkSync(path.join(project, place), target)
}

const NPM = `#!/bin/sh
case "$*" in
ci*--omit=dev*) cp -RP "$PACKAGES/run/node_modules" . ;;
ci*) cp -RP "$PACKAGES/all/node_modules" . ;;
"exec -- "*) shift 2; exec "$@" ;;
*) echo "npm $*: not a step that this test knows"; exit 1 ;;
esac
`

before(() => {
  linkPackages()
  const bin = path.join(work, 'bin')
  mkdirSync(bin)
  writeFileSync(path.join(bin, 'npm'), NPM, { mode: 0o755 })
  const args = {
    PACKAGES: work,
    PATH: [bin, path.dirname(process.execPath), process.env['PATH']].join(path.delimiter),
    TARGETARCH: process.arch === 'x64' ? 'amd64' : process.arch,
  }
  const ignoreFile = path.join(project, 'deploy/Dockerfile.dockerignore')
  root = buildStages(readImage().stages, { context: project, ignoreFile, work, args, inFolders: true })
})

test('the command of the image starts a service whose root is the console, and whose banner is true', async () => {
  const launcher = readFileSync(
    path.join(root, readImage().command.find((word) => word.endsWith('/atelier')) ?? ''),
    'utf8',
  )
  const [, program] = /^import '(\/[^']+)'$/m.exec(launcher) ?? []
  const flags = ['--data-dir', path.join(work, 'data')]
  await using server = await spawnServer(flags, {}, { bin: path.join(root, program ?? 'no program') })
  assert.deepEqual(await readConsole(server.url), { page: true, missing: [] })
  assert.ok(server.output().includes(`in a browser  ${server.url}/\n`), server.output())
  assert.equal(await server.terminate(), 0)
})

test('without its page a service says so, and its root is the reference', async () => {
  const [, program] = /^import '(\/[^']+)'$/m.exec(readFileSync(path.join(root, 'usr/local/bin/atelier'), 'utf8')) ?? []
  rmSync(path.join(root, 'app/dist/console'), { recursive: true })
  const flags = ['--data-dir', path.join(work, 'data')]
  await using server = await spawnServer(flags, {}, { bin: path.join(root, program ?? 'no program') })
  assert.equal((await readConsole(server.url)).page, false)
  assert.match(server.output(), /in a browser {2}nothing: the console was not built/)
  assert.equal(await server.terminate(), 0)
})

test('a build without a part fails', () => {
  const ignoreFile = path.join(work, 'ignore')
  const complete = readFileSync(path.join(project, 'deploy/Dockerfile.dockerignore'), 'utf8')
  for (const part of ['client', 'console', 'spec', 'models', 'migrations']) {
    writeFileSync(ignoreFile, complete.replace(`!${part}\n`, ''))
    const build = () =>
      buildStages(readImage().stages.slice(0, 1), {
        ...{ context: project, ignoreFile, inFolders: true, work: mkdtempSync(path.join(work, `without-${part}-`)) },
        args: { PACKAGES: work, PATH: [path.join(work, 'bin'), process.env['PATH']].join(path.delimiter) },
      })
    assert.throws(build, new RegExp(part))
  }
})
