import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { project, read, readUnit, UNITS } from './files.ts'
import { openFolder, runTool, without } from './tools.ts'

test('systemd takes every unit without a complaint', without('systemd-analyze'), () => {
  using folder = openFolder()
  for (const unit of UNITS) {
    const file = path.join(folder.path, unit)
    // It also looks whether the command is there.
    writeFileSync(file, read(`deploy/systemd/${unit}`).replaceAll('/opt/atelier/', project))
    const { code, output } = runTool('systemd-analyze', ['verify', '--man=no', file])
    const complaints = output.split('\n').filter((line) => line.includes('atelier'))
    assert.deepEqual({ code, complaints }, { code: 0, complaints: [] })
  }
})

test('systemd finds little that a unit could do to its machine', without('systemd-analyze'), (t) => {
  for (const unit of UNITS) {
    const file = path.join(project, 'deploy/systemd', unit)
    const { code, output } = runTool('systemd-analyze', ['security', '--offline=true', '--threshold=20', file])
    if (/unrecognized option|Unknown option/i.test(output)) return t.skip('this systemd cannot judge files')
    assert.equal(code, 0, output)
  }
})

test('a unit is killed only after the longest drain, and is told to end once', () => {
  for (const unit of UNITS) {
    const found = readUnit(unit)
    const environment = (found.get('Environment') ?? []).join(' ')
    const seconds = (name: string, otherwise: number) =>
      Number(new RegExp(`${name}=(\\d+)s`).exec(environment)?.[1] ?? otherwise)
    const longest =
      seconds('ATELIER_DRAIN_DELAY', 0) +
      seconds('ATELIER_DRAIN_TIMEOUT', 30) +
      // For canceled runs to stop, and for the last answers.
      20
    assert.deepEqual(found.get('TimeoutStopSec'), [String(longest)], unit)
    // The launcher hands signals on. To all processes at once, the program would get two, and the second ends it at once.
    assert.deepEqual(found.get('KillMode'), ['mixed'], unit)
  }
})
