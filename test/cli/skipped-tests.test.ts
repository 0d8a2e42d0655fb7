/** The end of a test run: which tests did not run, and why. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { listOfSkipped, type TestSummary } from '../../scripts/test-summary.ts'

const REPORTER = fileURLToPath(new URL('../../scripts/test-summary.ts', import.meta.url))

const TESTS = `
import { describe, test } from 'node:test'
test('runs', () => {})
test('wants a tool', { skip: 'no hammer' }, () => {})
test('finds out later', (t) => t.skip('no saw'))
test('says nothing', { skip: true }, () => {})
describe('a suite', () => test('inside', { skip: 'no nail' }, () => {}))
describe('a whole suite', { skip: 'no bench' }, () => test('never seen', () => {}))
`

test('each skipped test, and each skipped suite, is listed once with its file, title and reason', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'atelier-skipped-'))
  try {
    writeFileSync(path.join(folder, 'tools.test.mjs'), TESTS)
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const summaryFile = path.join(folder, 'summary')
    for (const isolation of ['process', 'none']) {
      const args = ['--test', `--test-isolation=${isolation}`, `--test-reporter=${REPORTER}`]
      const run = spawnSync(
        process.execPath,
        [...args, `--test-reporter-destination=${summaryFile}`, path.join(folder, 'tools.test.mjs')],
        { env, encoding: 'utf8' },
      )
      assert.equal(run.status, 0, run.stderr)
      const { skipped } = JSON.parse(readFileSync(summaryFile, 'utf8')) as TestSummary
      assert.deepEqual(listOfSkipped(skipped, folder).trim().split('\n'), [
        '=== skipped for want of a tool: 5 (a suite counts as one)',
        'tools.test.mjs: wants a tool: no hammer',
        'tools.test.mjs: finds out later: no saw',
        'tools.test.mjs: says nothing: no reason given',
        'tools.test.mjs: inside: no nail',
        'tools.test.mjs: a whole suite: no bench',
      ])
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})
