import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { RunClient } from '../server/client.ts'
import { saveOutput, toSafeName } from './save-outputs.ts'

const NEVER = new AbortController().signal

function clientThatAnswers(...bodies: string[]): RunClient {
  const download = async () => new Response(bodies.shift() ?? '')
  return { download } as Partial<RunClient> as RunClient
}

test('a name never leaves its folder', () => {
  assert.equal(toSafeName('a_00001_.png'), 'a_00001_.png')
  assert.equal(toSafeName('../../etc/passwd'), 'passwd')
  assert.equal(toSafeName('C:\\x\\y.png'), 'y.png')
  assert.equal(toSafeName('..'), '_')
  assert.equal(toSafeName(''), 'output')
  assert.equal(toSafeName('.bashrc'), '_bashrc')
  assert.equal(toSafeName('a\u0000b\nc?.png'), 'a_b_c_.png')
  assert.ok(toSafeName(`${'x'.repeat(900)}.png`).length < 255)
})

test('an existing file is never overwritten, and no partial file is left', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'atelier-save-'))
  try {
    const output = { id: '1', name: 'a.txt', url: 'http://127.0.0.1/x', sizeBytes: 3 }
    const client = clientThatAnswers('one', 'two')
    assert.equal(await saveOutput(client, output, folder, NEVER), path.join(folder, 'a.txt'))
    assert.equal(await saveOutput(client, output, folder, NEVER), path.join(folder, 'a-2.txt'))
    assert.equal(readFileSync(path.join(folder, 'a.txt'), 'utf8'), 'one')
    await assert.rejects(saveOutput(clientThatAnswers('1', '2', '3'), output, folder, NEVER), /1 of 3 bytes/)
    assert.equal(
      await saveOutput(clientThatAnswers('!', 'six'), output, folder, NEVER),
      path.join(folder, 'a-3.txt'),
      'tried again',
    )
    assert.deepEqual(readdirSync(folder).sort(), ['a-2.txt', 'a-3.txt', 'a.txt'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
