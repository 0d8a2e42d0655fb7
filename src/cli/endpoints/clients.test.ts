/** Texts of others in generated clients: whatever they hold, the file is still the client. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ClientFacts } from './client-facts.ts'
import { toPythonClient } from './client-python.ts'
import { toTypescriptClient } from './client-typescript.ts'
import type { InputWire } from './endpoint-api.ts'

const TRICKS = [
  ...[
    '*/ evil() /*',
    '"""',
    "'''",
    '\\',
    '"',
    "'",
    '`',
    '$' + '{evil()}',
    '\n',
    '\r',
    '\u2028',
    '\u2029',
    '\u0085',
    '\f',
    '\v',
    '\0',
  ],
  ...['# coding: rot13', '\u202e', '\ud800', '//', '</script>', '\\u0022', '*\u0000/', 'import os'],
]
const hostile = fc
  .array(fc.oneof(fc.constantFrom(...TRICKS), fc.string({ unit: 'binary', maxLength: 8 })), { maxLength: 6 })
  .map((parts) => parts.join(''))
const name = fc.oneof(fc.constantFrom('class', 'from', 'constructor', 'prompt', 'lambda', 'import'), hostile)
const input = fc.record({
  ...{ name, title: hostile, description: hostile, required: fc.boolean(), example: fc.constant('') },
  type: fc.constantFrom('text', 'integer', 'number', 'seed', 'boolean', 'choice', 'file'),
  choices: fc.array(fc.oneof(hostile, fc.integer(), fc.boolean(), fc.double({ noNaN: true })), { maxLength: 4 }),
  pattern: fc.oneof(fc.constant(null), hostile),
}) as fc.Arbitrary<InputWire>
const facts: fc.Arbitrary<ClientFacts> = fc.record({
  ...{ reference: fc.constant('card@stable'), baseUrl: hostile },
  endpoint: fc.record({ name: fc.constant('card'), title: hostile, description: hostile }),
  version: fc.record({
    version: fc.constant(1),
    inputs: fc.uniqueArray(input, { selector: (each) => each.name, maxLength: 5 }),
    outputs: fc.uniqueArray(fc.record({ name, title: hostile, kind: hostile }), {
      selector: (each) => each.name,
      maxLength: 3,
    }),
  }),
})

test('hostile texts stay texts in TypeScript', () => {
  fc.assert(
    fc.property(facts, (each) => {
      const code = stripTypeScriptTypes(toTypescriptClient(each))
      assert.ok(!/^\s*evil\(\)/m.test(code))
    }),
    { numRuns: 300 },
  )
})

const python = spawnSync('python3', ['--version']).status === 0

test('hostile texts stay texts in Python', { skip: python ? false : 'this machine has no python3' }, () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'atelier-clients-'))
  try {
    const samples = fc.sample(facts, 100)
    const files = samples.map((each, index) => {
      const file = path.join(folder, `client_${index}.py`)
      writeFileSync(file, toPythonClient(each))
      return file
    })
    const { status, stderr } = spawnSync('python3', ['-m', 'py_compile', ...files], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
