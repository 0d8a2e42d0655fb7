import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { SETTINGS } from '../../src/config/settings/settings.ts'
import { project, read, readImage } from './files.ts'
import { runTool, without } from './tools.ts'

const image = readImage()

test('the Dockerfile passes hadolint', without('hadolint'), () => {
  const { code, output } = runTool('hadolint', [path.join(project, 'deploy/Dockerfile')])
  assert.deepEqual({ code, output }, { code: 0, output: '' })
})

test('the image runs as a numbered user that is not root', () => {
  // By number: only then can a cluster see before the start that it is not root.
  assert.match(image.user, /^[1-9]\d*:[1-9]\d*$/)
})

test('the data lie in a folder of their own below the volume', () => {
  // The program closes its data folder to others, which only the owner of a folder may do.
  assert.equal(path.dirname(image.env['ATELIER_DATA_DIR']), '/data')
})

test('the program is started without a shell in between, and serves', () => {
  const [, flags = ''] = /NODE_FLAGS = \[(.+)\]/.exec(read('scripts/atelier.js')) ?? []
  const nodeFlags = flags.split(', ').map((flag) => flag.replaceAll("'", ''))
  assert.deepEqual(image.command, ['/usr/local/bin/node', ...nodeFlags, '/usr/local/bin/atelier', 'serve'])
  assert.match(read('deploy/docker/atelier'), /^#!\/usr\/local\/bin\/node\n/)
})

test('the health check asks for what never depends on others, on the port that the program listens on', () => {
  assert.deepEqual(image.healthCommand, ['/usr/local/bin/node', '/app/is-alive.js'])
  const script = read('deploy/docker/is-alive.js')
  assert.ok(script.includes('/healthz'))
  assert.ok(script.includes(`process.env.ATELIER_PORT ?? '${SETTINGS.port.fallback}'`))
  assert.ok(image.ports.includes(Number(SETTINGS.port.fallback)))
})

test('everything that a stage copies from the checkout is there and is let through', () => {
  const allowed = read('deploy/Dockerfile.dockerignore').split('\n')
  const copied = image.stages
    .flatMap(({ instructions }) => instructions)
    .filter(({ word, flags }) => word === 'COPY' && flags['from'] === undefined)
    .flatMap(({ text }) => text.split(' ').slice(0, -1))
    .filter((name) => name !== '.')
  for (const name of copied) {
    assert.ok(existsSync(path.join(project, name)), `${name} is copied`)
    assert.ok(
      allowed.some((line) => line.startsWith('!') && name.startsWith(line.slice(1))),
      `${name} is let through`,
    )
  }
  for (const name of ['client', 'engine', 'lib', 'migrations', 'models', 'scripts', 'spec', 'src']) {
    assert.ok(allowed.includes(`!${name}`), `${name} is needed for the build`)
  }
})

test('every stage is named once and every COPY names one that came before', () => {
  const names = image.stages.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  for (const [index, { instructions }] of image.stages.entries()) {
    for (const { flags } of instructions) {
      if (flags['from'] !== undefined) assert.ok(names.slice(0, index).includes(flags['from']), flags['from'])
    }
  }
})
